#include "measure/residue.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "record/recorded_number.h"

namespace plumbline::measure {
namespace {

// Something that is added: its size, and how much of it is rounding.
struct Term {
  double size = 0, residue = 0;
};

// Of its forward call.
bool IsModule(std::string_view call_name) {
  const bool is_forward = call_name.find(".forward.") != std::string_view::npos;
  return is_forward && (call_name.starts_with("Module.") || call_name.starts_with("Cell."));
}

double RootMeanSquare(const Item& item) { return RmsOf(item).value_or(0); }
double NormOf(const Item& item) { return RootMeanSquare(item) * std::sqrt(ElementsOf(item)); }

double LargestMagnitude(const Item& item) {
  const double max = NumberOf(item.statistics[0]).value_or(0);
  const double min = NumberOf(item.statistics[1]).value_or(0);
  return std::max(std::abs(max), std::abs(min));
}

// Of divisors of one sign; 0 where some may be zero.
double LeastMagnitude(const Item& item) {
  const double max = NumberOf(item.statistics[0]).value_or(0);
  const double min = NumberOf(item.statistics[1]).value_or(0);
  return max * min > 0 ? std::min(std::abs(max), std::abs(min)) : 0;
}

// What a term adds to the relative error of the result. It is no larger than the result and all
// other terms together, whatever factors it has.
double ShareOf(const Term& term, double all, double result) {
  return term.residue * std::min(term.size, result + all - term.size) / result;
}

double OfTerms(std::span<const Term> terms, double result) {
  double all = 0, error = 0;
  for (const Term& term : terms) all += term.size;
  for (const Term& term : terms) error += ShareOf(term, all, result);
  return error;
}

Term ProductOf(const InputError& a, const InputError& b) {
  const double size = std::min(RootMeanSquare(*a.golden) * LargestMagnitude(*b.golden),
                               LargestMagnitude(*a.golden) * RootMeanSquare(*b.golden));
  return {size, a.residue + b.residue};
}

Term QuotientOf(const InputError& a, const InputError& b) {
  const double least = LeastMagnitude(*b.golden);
  return least > 0 ? Term{RootMeanSquare(*a.golden) / least, a.residue + b.residue} : Term();
}

std::vector<Term> TermsOf(Mixing mixing, std::span<const InputError> operands, double factor) {
  std::vector<Term> terms;
  switch (mixing) {
    case Mixing::kNone:
    case Mixing::kFactors:
      break;
    case Mixing::kSelection:
      for (const InputError& operand : operands) {
        terms.push_back({NormOf(*operand.golden), operand.residue});
      }
      break;
    case Mixing::kSum:
      for (const InputError& operand : operands) {
        const double times = terms.empty() ? 1 : std::abs(factor);
        terms.push_back({RootMeanSquare(*operand.golden) * times, operand.residue});
      }
      break;
    case Mixing::kQuotient:
      if (operands.size() == 2) terms.push_back(QuotientOf(operands[0], operands[1]));
      break;
    case Mixing::kAddedProduct:
    case Mixing::kAddedQuotient: {
      if (operands.size() != 3) break;
      Term added = mixing == Mixing::kAddedProduct ? ProductOf(operands[1], operands[2])
                                                   : QuotientOf(operands[1], operands[2]);
      added.size *= std::abs(factor);
      terms = {{RootMeanSquare(*operands[0].golden), operands[0].residue}, added};
      break;
    }
    case Mixing::kBias:
      if (operands.size() == 3) {
        terms.push_back({RootMeanSquare(*operands[2].golden), operands[2].residue});
      }
      break;
  }
  return terms;
}

// What a module adds to its result, as the bias of a layer: parameters that are rounding alone.
double OfParameters(std::span<const InputError> operands, double result) {
  double error = 0;
  for (const InputError& operand : operands) {
    if (operand.golden->role != ItemRole::kParameter) continue;
    error += operand.residue * RootMeanSquare(*operand.golden);
  }
  return result > 0 ? error / result : 0;
}

}  // namespace

bool HasResidue(std::span<const InputError> operands) {
  return std::any_of(operands.begin(), operands.end(),
                     [](const InputError& operand) { return operand.residue > 0; });
}

double ResidueError(const Item& output, std::string_view call_name,
                    std::span<const InputError> operands, double factor) {
  if (!HasResidue(operands)) return 0;
  if (IsModule(call_name)) return OfParameters(operands, RootMeanSquare(output));
  // What is done to a residue alone changes its size, not its error.
  if (operands.size() == 1) return operands.front().residue;
  const Mixing mixing = MixingOfCall(call_name);
  if (mixing == Mixing::kFactors) {
    double error = 0;
    for (const InputError& operand : operands) error += operand.residue;
    return error;
  }
  const std::vector<Term> terms = TermsOf(mixing, operands, factor);
  const double result = mixing == Mixing::kSelection ? NormOf(output) : RootMeanSquare(output);
  if (mixing == Mixing::kBias && !terms.empty()) {
    return result > 0 ? terms.front().residue * terms.front().size / result : 0;
  }
  const double error = terms.empty() || !(result > 0) ? 0 : OfTerms(terms, result);
  return std::isfinite(error) ? error : 0;
}

double HiddenByElements(const Item& output, std::string_view call_name,
                        std::span<const InputError> operands, double factor) {
  if (!call_name.ends_with(".forward") || operands.empty()) return 0;
  if (IsSign(call_name)) {
    // The largest elements make the norm; all others may be small.
    const Item& item = *operands.front().golden;
    const double large = NormOf(item) / LargestMagnitude(item);
    const double count = ElementsOf(item);
    const double share = (count - large * large) / count;
    return share > 0 ? 2 * std::sqrt(share) : 0;
  }
  if (MixingOfCall(call_name) != Mixing::kAddedQuotient || operands.size() != 3) return 0;
  const Item& a = *operands[1].golden;
  const Item& b = *operands[2].golden;
  const double least = LeastMagnitude(b);
  const double size = RootMeanSquare(output);
  if (!(least > 0) || !(size > 0)) return 0;
  // The largest quotient is about that of the largest elements: b is the size of a.
  const double quotient = LargestMagnitude(a) / LargestMagnitude(b);
  const double error =
      operands[1].error * RootMeanSquare(a) + quotient * operands[2].error * RootMeanSquare(b);
  return std::abs(factor) * std::min(error / least, 2 * quotient) / size;
}

bool ShareResidues(const Item& output, std::string_view call_name, double factor,
                   std::span<InputError> operands) {
  const Mixing mixing = MixingOfCall(call_name);
  const bool adds = mixing == Mixing::kSum || mixing == Mixing::kSelection;
  const bool adds_two = mixing == Mixing::kAddedProduct || mixing == Mixing::kAddedQuotient;
  if (!(adds || adds_two) || operands.size() < 2 || !HasResidue(operands)) return false;
  const std::vector<Term> terms = TermsOf(mixing, operands, factor);
  if (terms.empty()) return false;
  const double result = mixing == Mixing::kSelection ? NormOf(output) : RootMeanSquare(output);
  if (!(result > 0)) return false;
  double all = 0;
  for (const Term& term : terms) all += term.size;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!(operands[i].residue > 0)) continue;
    const Term& term = terms[adds_two ? std::min<size_t>(i, 1) : i];
    operands[i].error = std::min(operands[i].error, ShareOf(term, all, result));
  }
  return true;
}

}  // namespace plumbline::measure
