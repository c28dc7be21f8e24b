#include "pipeline/culprit/gradient_sums.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"

namespace plumbline::pipeline {
namespace {

// A value is read by calls that stand near each other; older gradients only coincide.
constexpr size_t kRecent = 12;
// Adding rounds once; means are summed over all elements.
constexpr double kMeanRoundoffs = 8;

int64_t CountOf(const Item& item) { return static_cast<int64_t>(measure::ElementsOf(item)); }

template <typename Term>
void Keep(const Term& term, std::vector<Term>& recent) {
  if (recent.size() == kRecent) recent.erase(recent.begin());
  recent.push_back(term);
}

struct Side {
  double mean, norm;
};

std::optional<Side> SideOf(const Item& item) {
  const std::optional<double> mean = NumberOf(item.statistics[2]);
  const std::optional<double> norm = NumberOf(item.statistics[3]);
  if (!mean || !norm || !std::isfinite(*mean) || !std::isfinite(*norm)) return std::nullopt;
  return Side{*mean, std::abs(*norm)};
}

bool AddUp(const Item& sum, std::span<const Item* const> terms, double roundoff) {
  const std::optional<Side> total = SideOf(sum);
  if (!total) return false;
  double mean = 0, sizes = 0, norms = 0, longest = 0;
  for (const Item* term : terms) {
    const std::optional<Side> side = SideOf(*term);
    if (!side) return false;
    mean += side->mean;
    sizes += std::abs(side->mean);
    norms += side->norm;
    longest = std::max(longest, side->norm);
  }
  const double tolerance = kMeanRoundoffs * roundoff * norms;
  const bool is_possible =
      total->norm <= norms + tolerance && total->norm + norms - longest + tolerance >= longest;
  return is_possible && std::abs(mean - total->mean) <= kMeanRoundoffs * roundoff * sizes;
}

GradientSums::Sum SumOf(const ComparedRow& row, std::span<const ComparedRow* const> terms,
                        double roundoff) {
  GradientSums::Sum sum;
  const double total = measure::RmsOf(*row.golden).value_or(0);
  for (const ComparedRow* term : terms) {
    if (measure::Severity(term->verdict) > measure::Severity(sum.worst)) sum.worst = term->verdict;
    const double error = std::isfinite(term->error) ? term->error : 0;
    const double rms = measure::RmsOf(*term->golden).value_or(0);
    if (total > 0) sum.explained += (error + roundoff) * rms / total;
  }
  return sum;
}

// What is no larger than the rounding of a gradient of that form on both sides may be what is left
// of it after one was taken away that is not recorded (the second node of `normalize`).
std::optional<GradientSums::Sum> ResidueOf(const ComparedRow& row, const ComparedRow& term,
                                           double roundoff) {
  const std::optional<double> target = measure::RmsOf(*row.target);
  const std::optional<double> golden = measure::RmsOf(*row.golden);
  const std::optional<double> whole = measure::RmsOf(*term.golden);
  const bool is_good = !measure::IsBad(term.verdict) && std::isfinite(term.error);
  if (!target || !golden || !whole || !is_good) return std::nullopt;
  const double rounding = measure::kNoiseFactor * (term.error + roundoff) * *whole;
  if (!(std::max(*target, *golden) <= rounding)) return std::nullopt;
  return GradientSums::Sum{Verdict::kSame, (*target + *golden) / *golden};
}

}  // namespace

void GradientSums::Remember(uint32_t row) {
  Keep(row, recent_[CountOf(*comparison_.rows[row].golden)]);
}

void GradientSums::RememberAlone(const ComparedCall& call) {
  std::vector<measure::InputError> read;
  for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
    if (!row.target || !row.target->is_tensor) continue;
    const Item& item = *row.target;
    if (measure::IsInput(item)) {
      read.push_back({&item, 0});
      continue;
    }
    const double roundoff = measure::RoundoffOf(item, item);
    const double condition = measure::PropagationTo(item, call.target_name, read).cancellation;
    Keep(Alone{&item, condition * roundoff * measure::RmsOf(item).value_or(0)},
         alone_[CountOf(item)]);
  }
}

std::optional<GradientSums::Sum> GradientSums::FindAlone(const ComparedRow& row) const {
  const auto found = alone_.find(CountOf(*row.target));
  const std::optional<double> target = measure::RmsOf(*row.target);
  const std::optional<double> golden = measure::RmsOf(*row.golden);
  if (found == alone_.end() || !target || !golden) return std::nullopt;
  const std::vector<Alone>& recent = found->second;
  const double roundoff = measure::RoundoffOf(*row.target, *row.target);
  const double largest = std::max(*target, *golden);
  const auto fits = [&](std::span<const Item* const> terms, double rounding) {
    return largest <= measure::kNoiseFactor * rounding && AddUp(*row.target, terms, roundoff);
  };
  const Sum residue{Verdict::kSame, (*target + *golden) / *golden};
  for (size_t i = 0; i < recent.size(); ++i) {
    const Alone& a = recent[i];
    if (fits(std::array{a.item}, a.rounding)) return residue;
    for (size_t j = 0; j < i; ++j) {
      const Alone& b = recent[j];
      if (fits(std::array{a.item, b.item}, a.rounding + b.rounding)) return residue;
    }
  }
  return std::nullopt;
}

std::optional<GradientSums::Sum> GradientSums::FindTerms(const ComparedRow& row) const {
  if (recent_.empty() && alone_.empty()) return std::nullopt;
  const auto found = recent_.find(CountOf(*row.golden));
  if (found == recent_.end()) return FindAlone(row);
  const std::vector<uint32_t>& recent = found->second;
  const double roundoff = measure::RoundoffOf(*row.target, *row.golden);
  const auto fits = [&](std::span<const ComparedRow* const> terms) {
    std::vector<const Item*> target, golden;
    for (const ComparedRow* term : terms) {
      target.push_back(&*term->target);
      golden.push_back(&*term->golden);
    }
    return AddUp(*row.golden, golden, roundoff) && AddUp(*row.target, target, roundoff);
  };
  for (size_t i = 0; i < recent.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const ComparedRow* two[] = {&comparison_.rows[recent[i]], &comparison_.rows[recent[j]]};
      if (fits(two)) return SumOf(row, two, roundoff);
      for (size_t k = 0; k < j; ++k) {
        const ComparedRow* three[] = {two[0], two[1], &comparison_.rows[recent[k]]};
        if (fits(three)) return SumOf(row, three, roundoff);
      }
    }
  }
  return FindAlone(row);
}

std::optional<GradientSums::Sum> GradientSums::Find(const ComparedRow& row) const {
  if (const auto sum = FindTerms(row)) return sum;
  const auto found = recent_.find(CountOf(*row.golden));
  if (found == recent_.end()) return std::nullopt;
  const double roundoff = measure::RoundoffOf(*row.target, *row.golden);
  for (const uint32_t term : found->second) {
    if (const auto residue = ResidueOf(row, comparison_.rows[term], roundoff)) return residue;
  }
  return std::nullopt;
}

}  // namespace plumbline::pipeline
