#include "pipeline/culprit/running_mean.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "pipeline/culprit/call_arguments.h"
#include "record/recorded_number.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

constexpr size_t kMeanPlace = 1;  // of the running mean, in torch.nn.functional

// What a call in training reads, of which it makes the next running mean.
struct Update {
  const ComparedRow* x = nullptr;
  const ComparedRow* mean = nullptr;
  double momentum = 0;
  bool is_training = false;
};

Update UpdateOf(const Comparison& comparison, const ComparedCall& call) {
  Update update;
  const auto rows = measure::RowsOf(comparison, call);
  const std::string_view name = call.target_name;
  for (const ComparedRow& row : rows) {
    if (!row.target || !row.golden) continue;
    if (IsArgument(row, name, 0, "input")) update.x = &row;
    if (IsArgument(row, name, kMeanPlace, "running_mean")) update.mean = &row;
  }
  update.is_training = TakesOwnStatistics(rows, name, false);
  const Item* momentum = ArgumentOf(rows, name, false, 6, "momentum");
  if (momentum != nullptr) update.momentum = NumberOf(momentum->statistics[0]).value_or(0);
  return update;
}

bool HasGoodTensors(const ComparedRow* row) {
  return row != nullptr && measure::HasTensors(*row) && !measure::IsBad(row->verdict);
}

double MeanOf(const Item& item) { return NumberOf(item.statistics[2]).value_or(std::nan("")); }
double SizeOf(const Item& item) { return measure::RmsOf(item).value_or(0); }
double ErrorOf(const ComparedRow& row) { return std::isfinite(row.error) ? row.error : 0; }

// Whether `item` has the mean that the update makes on that side: the mean of all elements is that
// of the channels' means.
bool IsMadeBy(const Update& update, const Item& item, bool of_target) {
  const Item& x = *measure::SideOf(*update.x, of_target);
  const Item& old = *measure::SideOf(*update.mean, of_target);
  const double kept = 1 - update.momentum;
  const double mean = kept * MeanOf(old) + update.momentum * MeanOf(x);
  const double size = SizeOf(item) + kept * SizeOf(old) + update.momentum * SizeOf(x);
  const double most = measure::kNoiseFactor * measure::RoundoffOf(item, item) * size;
  return std::abs(MeanOf(item) - mean) <= most;  // false for NaN
}

}  // namespace

std::optional<double> ExplainedAsRunningMean(const Comparison& comparison, const ComparedRow& row) {
  const ComparedCall& own = comparison.calls[row.call];
  const std::string_view api = measure::ApiOfCall(own.target_name);
  const bool is_known = api == "batch_norm" || api == "instance_norm";
  if (!is_known ||
      std::string_view(own.target_name).find("Functional.") == std::string_view::npos ||
      !row.golden->is_tensor || !IsArgument(row, own.target_name, kMeanPlace, "running_mean")) {
    return std::nullopt;
  }
  const double size = SizeOf(*row.golden);
  for (uint32_t i = row.call; size > 0 && i-- > 0;) {
    const ComparedCall& call = comparison.calls[i];
    if (!call.paired() || KindOfCall(call.target_name) != CallKind::kForward ||
        measure::ApiOfCall(call.target_name) != api) {
      continue;
    }
    const Update update = UpdateOf(comparison, call);
    if (!update.is_training || !HasGoodTensors(update.x) || !HasGoodTensors(update.mean) ||
        update.mean->golden->shape != row.golden->shape || !(update.momentum > 0) ||
        !IsMadeBy(update, *row.target, true) || !IsMadeBy(update, *row.golden, false)) {
      continue;
    }
    const double kept = 1 - update.momentum;
    return (kept * ErrorOf(*update.mean) * SizeOf(*update.mean->golden) +
            update.momentum * ErrorOf(*update.x) * SizeOf(*update.x->golden)) /
           size;
  }
  return std::nullopt;
}

}  // namespace plumbline::pipeline
