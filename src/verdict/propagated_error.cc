#include "verdict/propagated_error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <unordered_set>

#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"
#include "record/value.h"
#include "verdict/choose_culprit.h"

namespace plumbline::verdict {

namespace {

constexpr size_t kMostCalls = 16;       // that are followed back
constexpr double kMostCondition = 1e3;  // of all of them

// A value that is looked for before a call, and how much of its error arrives.
struct Step {
  ContentKey key;
  uint32_t call = 0;
  double condition = 1;
};

// How a call of the target magnifies errors of what it reads.
double ConditionOf(const Comparison& comparison, const ComparedRow& result) {
  const ComparedCall& call = comparison.calls[result.call];
  std::vector<measure::InputError> read;
  for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
    if (!row.target || !row.target->is_tensor || !measure::IsInput(*row.target)) continue;
    read.push_back({&*row.target, 1});
  }
  return measure::PropagationTo(*result.target, call.target_name, read).from_inputs;
}

}  // namespace

void ErrorsBefore::Prepare() {
  is_prepared_ = true;
  for (uint32_t i = 0; i < comparison_.rows.size(); ++i) {
    const ComparedRow& row = comparison_.rows[i];
    if (!row.target || !row.target->is_tensor || !IsTelling(*row.target)) continue;
    if (const auto key = KeyOf(*row.target)) rows_[*key].push_back(i);
  }
}

bool ErrorsBefore::FindAgreeing(const std::vector<uint32_t>& rows, uint32_t call,
                                double& error) const {
  bool any = false;
  for (const uint32_t index : rows) {
    const ComparedRow& row = comparison_.rows[index];
    if (row.call > call || (row.call == call && !measure::IsInput(row))) continue;
    if (!row.target || !row.golden || !measure::IsGood(row.verdict)) continue;
    if (std::isfinite(row.error)) error = std::max(error, row.error);
    any = true;
  }
  return any;
}

double ErrorsBefore::Through(const ComparedRow& result) {
  if (!result.target || !result.target->is_tensor) return 0;
  double largest = 0;
  for (const ComparedRow& row : measure::RowsOf(comparison_, comparison_.calls[result.call])) {
    if (!row.target || !row.target->is_tensor || !measure::IsInput(*row.target)) continue;
    const bool is_good = measure::IsGood(row.verdict) && std::isfinite(row.error);
    largest = std::max(largest, is_good ? row.error : LeadingTo(row));
  }
  return largest * std::min(ConditionOf(comparison_, result), kMostCondition);
}

double ErrorsBefore::LeadingTo(const ComparedRow& row) {
  const std::optional<ContentKey> first = row.target ? KeyOf(*row.target) : std::nullopt;
  if (!first) return 0;
  if (!is_prepared_) Prepare();
  std::vector<Step> steps{{*first, row.call, 1}};
  std::unordered_set<uint32_t> met;
  double largest = 0;
  for (size_t next = 0; next < steps.size() && met.size() < kMostCalls; ++next) {
    const Step step = steps[next];
    const auto found = rows_.find(step.key);
    double error = 0;
    if (found == rows_.end()) continue;
    if (FindAgreeing(found->second, step.call, error)) {
      largest = std::max(largest, step.condition * error);
      continue;
    }
    const auto maker =
        std::find_if(found->second.rbegin(), found->second.rend(), [&](const uint32_t index) {
          const ComparedRow& made = comparison_.rows[index];
          return made.call < step.call && !measure::IsInput(*made.target);
        });
    if (maker == found->second.rend()) continue;
    const ComparedRow& made = comparison_.rows[*maker];
    if (!met.insert(made.call).second) continue;
    const double condition =
        std::min(step.condition * ConditionOf(comparison_, made), kMostCondition);
    for (const ComparedRow& read : measure::RowsOf(comparison_, comparison_.calls[made.call])) {
      if (!read.target || !read.target->is_tensor || !measure::IsInput(*read.target)) continue;
      if (const auto key = KeyOf(*read.target)) steps.push_back({*key, made.call, condition});
    }
  }
  return largest;
}

namespace {

// A value is read by calls that stand near each other; older gradients only coincide.
constexpr size_t kRecent = 12;
// Adding rounds once; means are summed over all elements.
constexpr double kMeanRoundoffs = 8;

int64_t ElementCountOf(const Item& item) { return static_cast<int64_t>(measure::ElementsOf(item)); }

template <typename Term>
void Keep(const Term& term, std::vector<Term>& recent) {
  if (recent.size() == kRecent) recent.erase(recent.begin());
  recent.push_back(term);
}

struct ReadSide {
  double mean, norm;
};

std::optional<ReadSide> SideOf(const Item& item) {
  const std::optional<double> mean = NumberOf(item.statistics[2]);
  const std::optional<double> norm = NumberOf(item.statistics[3]);
  if (!mean || !norm || !std::isfinite(*mean) || !std::isfinite(*norm)) return std::nullopt;
  return ReadSide{*mean, std::abs(*norm)};
}

bool AddUp(const Item& sum, std::span<const Item* const> terms, double roundoff) {
  const std::optional<ReadSide> total = SideOf(sum);
  if (!total) return false;
  double mean = 0, sizes = 0, norms = 0, longest = 0;
  for (const Item* term : terms) {
    const std::optional<ReadSide> side = SideOf(*term);
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
  Keep(row, recent_[ElementCountOf(*comparison_.rows[row].golden)]);
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
         alone_[ElementCountOf(item)]);
  }
}

std::optional<GradientSums::Sum> GradientSums::FindAlone(const ComparedRow& row) const {
  const auto found = alone_.find(ElementCountOf(*row.target));
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
  const auto found = recent_.find(ElementCountOf(*row.golden));
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
  const auto found = recent_.find(ElementCountOf(*row.golden));
  if (found == recent_.end()) return std::nullopt;
  const double roundoff = measure::RoundoffOf(*row.target, *row.golden);
  for (const uint32_t term : found->second) {
    if (const auto residue = ResidueOf(row, comparison_.rows[term], roundoff)) return residue;
  }
  return std::nullopt;
}

namespace {

// What a backward call of one side got, and whether it returned a gradient of that many elements.
struct Incoming {
  const ComparedRow* row = nullptr;
  bool is_returned = false;
};

Incoming IncomingOf(std::span<const ComparedRow> rows, bool of_target, int64_t elements) {
  Incoming incoming;
  for (const ComparedRow& row : rows) {
    const Slot<Item>& item = measure::SideOf(row, of_target);
    if (!item || !item->is_tensor) continue;
    if (measure::IsInput(*item)) {
      if (incoming.row == nullptr) incoming.row = &row;
    } else if (ElementCountOf(*item) == elements) {
      incoming.is_returned = true;
    }
  }
  return incoming;
}

}  // namespace

void BiasGradients::Remember(const ComparedCall& call) {
  if (KindOfCall(call.name()) != CallKind::kBackward) return;
  if (!is_prepared_) Prepare();
  for (const bool of_target : {true, false}) AddTerms(call, of_target);
}

// Golden's own calls may stand behind the pair that reads what they made.
void BiasGradients::Prepare() {
  is_prepared_ = true;
  for (const bool of_target : {true, false}) {
    for (const ComparedCall& call : comparison_.calls) RememberBias(call, of_target);
    for (const ComparedCall& call : comparison_.calls) {
      if (!call.paired()) AddTerms(call, of_target);
    }
  }
}

void BiasGradients::RememberParameters(const ComparedCall& call, bool of_target) {
  const std::string backward = BackwardNameOf(measure::NameOn(call, of_target));
  if (backward.empty()) return;
  const Item* weight = nullptr;
  std::vector<const Item*> vectors;
  for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
    const Slot<Item>& item = measure::SideOf(row, of_target);
    if (!item || item->role != ItemRole::kParameter || !item->is_tensor) continue;
    if (item->shape.size() == 1) {
      vectors.push_back(&*item);
    } else if (weight == nullptr) {
      weight = &*item;
    }
  }
  for (const Item* each : vectors) {
    biases_[of_target][backward].push_back({weight == nullptr ? each : weight, each});
  }
}

void BiasGradients::RememberBias(const ComparedCall& call, bool of_target) {
  const Text& name = measure::NameOn(call, of_target);
  if (measure::ApiOfCall(name).empty()) RememberParameters(call, of_target);
  if (measure::MixingOfCall(name) != measure::Mixing::kBias) return;
  constexpr size_t kPlaceOfBias = 2;
  const Item* weight = nullptr;
  size_t place = 0;
  for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
    const Slot<Item>& item = measure::SideOf(row, of_target);
    if (!item || !item->is_tensor || !measure::IsInput(*item)) continue;
    if (place + 1 == kPlaceOfBias) weight = &*item;
    if (place++ != kPlaceOfBias) continue;
    if (item->shape.size() == 1) {
      biases_[of_target][BackwardNameOf(name)] = {{weight, &*item}};
    }
    return;
  }
}

void BiasGradients::AddTerms(const ComparedCall& call, bool of_target) {
  const auto found = biases_[of_target].find(measure::NameOn(call, of_target));
  if (found == biases_[of_target].end()) return;
  for (const Operands& each : found->second) AddTerms(call, of_target, each);
}

void BiasGradients::AddTerms(const ComparedCall& call, bool of_target, const Operands& operands) {
  const Item& bias = *operands.bias;
  const int64_t elements = ElementCountOf(bias);
  const Incoming incoming = IncomingOf(measure::RowsOf(comparison_, call), of_target, elements);
  if (incoming.row == nullptr || incoming.is_returned) return;
  const bool is_paired = call.paired();
  if (is_paired && measure::IsBad(incoming.row->verdict)) return;  // explains nothing
  const Item& item = *measure::SideOf(*incoming.row, of_target);
  const std::optional<double> rms = measure::RmsOf(item);
  const double count = measure::ElementsOf(item), own = measure::ElementsOf(bias);
  if (!rms || !(own > 0) || !(count > own)) return;
  const double roundoff = measure::RoundoffOf(item, item);
  const double error = is_paired && std::isfinite(incoming.row->error)
                           ? incoming.row->error
                           : measure::kUnseenCalls * roundoff;
  const std::optional<ContentKey> own_key = KeyOf(bias), key = KeyOf(*operands.weight);
  std::vector<Sum>& sums = sums_[of_target][elements];
  auto sum = std::ranges::find_if(
      sums, [&](const Sum& each) { return each.weight == key && each.bias == own_key; });
  if (sum == sums.end()) sum = sums.insert(sum, Sum{key, own_key});
  sum->total += count * measure::MeanOf(item);
  sum->tolerance += kMeanRoundoffs * count * (error + roundoff) * *rms;
  sum->rounding += std::sqrt(count / own) * (error + roundoff) * *rms;
}

std::optional<double> BiasGradients::ExplainedFor(const ComparedRow& row) {
  if (row.golden->shape.size() != 1) return std::nullopt;
  if (!is_prepared_) Prepare();
  double rounding = 0;
  for (const bool of_target : {true, false}) {
    const Item& item = *measure::SideOf(row, of_target);
    const auto found = sums_[of_target].find(ElementCountOf(item));
    if (found == sums_[of_target].end() || item.shape.size() != 1) return std::nullopt;
    const double total = measure::ElementsOf(item) * measure::MeanOf(item);
    double largest = 0;
    for (const Sum& sum : found->second) {
      if (std::abs(sum.total - total) <= sum.tolerance) largest = std::max(largest, sum.rounding);
    }
    if (!(largest > 0)) return std::nullopt;
    rounding += largest;
  }
  const std::optional<double> golden = measure::RmsOf(*row.golden);
  const std::optional<double> size = golden ? golden : measure::RmsOf(*row.target);
  return size ? std::optional(rounding / *size) : std::nullopt;
}

bool OtherFills::Take(uint32_t call, uint32_t index, ComparedRow& row) {
  if (!measure::AreOtherFills(*row.target, *row.golden)) return false;
  row.verdict = Verdict::kNotComparable;
  row.reason = kReason;
  row.expected = 0;
  row.error = 1;
  const auto kind =
      row.golden->is_tensor ? CulpritEvent::Kind::kInput : CulpritEvent::Kind::kArgument;
  if (!first_) first_ = CulpritEvent{call, index, kind, 1, 0};
  return true;
}

}  // namespace plumbline::verdict
