#include "pipeline/culprit/running_mean.h"

#include <cmath>
#include <cstdint>
#include <string_view>
#include <variant>

#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

bool IsAt(const ComparedRow& row, std::string_view name, std::string_view place,
          std::string_view keyword) {
  const std::string_view own = measure::ShortName(*row.target, name);
  return own == place || own.ends_with(keyword);
}

// What a call in training reads, of which it makes the next running mean.
struct Update {
  const ComparedRow* x = nullptr;
  const ComparedRow* mean = nullptr;
  double momentum = 0;
  bool is_training = false;
};

Update UpdateOf(const Comparison& comparison, const ComparedCall& call) {
  Update update;
  for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
    if (!row.target || !row.golden || !measure::IsInput(row)) continue;
    const std::string_view name = call.target_name;
    if (IsAt(row, name, "input.0", ".input")) update.x = &row;
    if (IsAt(row, name, "input.1", ".running_mean")) update.mean = &row;
    if (IsAt(row, name, "input.5", ".training") || IsAt(row, name, "input.5", ".use_input_stats")) {
      const bool* training = std::get_if<bool>(&row.golden->statistics[0]);
      update.is_training = training != nullptr && *training;
    }
    if (IsAt(row, name, "input.6", ".momentum")) {
      update.momentum = NumberOf(row.golden->statistics[0]).value_or(0);
    }
  }
  return update;
}

bool HasTensors(const ComparedRow* row) {
  return row != nullptr && row->target->is_tensor && row->golden->is_tensor &&
         !measure::IsBad(row->verdict);
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
      !row.golden->is_tensor || !IsAt(row, own.target_name, "input.1", ".running_mean")) {
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
    if (!update.is_training || !HasTensors(update.x) || !HasTensors(update.mean) ||
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
