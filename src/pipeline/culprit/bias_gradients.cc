#include "pipeline/culprit/bias_gradients.h"

#include <algorithm>
#include <cmath>

#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "pipeline/culprit/culprit_text.h"
#include "record/recorded_number.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

// Means of recorders are kept in float32, too.
constexpr double kMeanRoundoffs = 8;

int64_t CountOf(const Item& item) { return static_cast<int64_t>(measure::ElementsOf(item)); }

double MeanOf(const Item& item) { return NumberOf(item.statistics[2]).value_or(std::nan("")); }

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
    } else if (CountOf(*item) == elements) {
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
  const std::string& name = measure::NameOn(call, of_target);
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
  const int64_t elements = CountOf(bias);
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
  sum->total += count * MeanOf(item);
  sum->tolerance += kMeanRoundoffs * count * (error + roundoff) * *rms;
  sum->rounding += std::sqrt(count / own) * (error + roundoff) * *rms;
}

std::optional<double> BiasGradients::ExplainedFor(const ComparedRow& row) {
  if (row.golden->shape.size() != 1) return std::nullopt;
  if (!is_prepared_) Prepare();
  double rounding = 0;
  for (const bool of_target : {true, false}) {
    const Item& item = *measure::SideOf(row, of_target);
    const auto found = sums_[of_target].find(CountOf(item));
    if (found == sums_[of_target].end() || item.shape.size() != 1) return std::nullopt;
    const double total = measure::ElementsOf(item) * MeanOf(item);
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

}  // namespace plumbline::pipeline
