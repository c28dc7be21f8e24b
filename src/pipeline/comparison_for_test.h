// Comparisons for tests, row by row, without dumps behind them.

#ifndef PLUMBLINE_PIPELINE_COMPARISON_FOR_TEST_H_
#define PLUMBLINE_PIPELINE_COMPARISON_FOR_TEST_H_

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

using StatisticsForTest = std::array<double, 4>;  // max, min, mean, norm

inline Item TensorForTest(const StatisticsForTest& statistics, Shape shape = {4, 4},
                          const std::string& dtype = "torch.float32") {
  Item item;
  item.is_tensor = true;
  item.dtype = dtype;
  item.shape = std::move(shape);
  for (size_t i = 0; i < statistics.size(); ++i) item.statistics[i] = statistics[i];
  return item;
}

// A comparison under construction: calls in recorded order, each with the rows added after it.
class ComparisonForTest {
 public:
  explicit ComparisonForTest(CompareMode mode = CompareMode::kStatistics) {
    comparison_.mode = mode;
  }

  ComparisonForTest& Pair(const std::string& name, Verdict verdict = Verdict::kSame) {
    return Call(name, name, {}, verdict);
  }
  // Of one side only; `reason` as in ComparedCall, "shape-differs" where the other has the name
  // too.
  ComparisonForTest& Target(const std::string& name, const std::string& reason = "no-golden") {
    return Call(name, {}, reason, Verdict::kNotComparable);
  }
  ComparisonForTest& Golden(const std::string& name, const std::string& reason = "no-target") {
    return Call({}, name, reason, Verdict::kNotComparable);
  }

  ComparisonForTest& Row(ItemRole role, std::optional<Item> target, std::optional<Item> golden) {
    ComparedRow row;
    row.call = static_cast<uint32_t>(comparison_.calls.size() - 1);
    for (std::optional<Item>* item : {&target, &golden}) {
      if (*item) (*item)->role = role;
    }
    if (target) row.target = std::move(*target);
    if (golden) row.golden = std::move(*golden);
    comparison_.rows.push_back(std::move(row));
    ++comparison_.calls.back().row_count;
    return *this;
  }
  // The same on both sides.
  ComparisonForTest& In(const Item& both) { return Row(ItemRole::kInput, both, both); }
  ComparisonForTest& Out(const Item& both) { return Row(ItemRole::kOutput, both, both); }
  ComparisonForTest& Out(const Item& target, const Item& golden) {
    return Row(ItemRole::kOutput, target, golden);
  }
  ComparisonForTest& TargetIn(const Item& item) { return Row(ItemRole::kInput, item, {}); }
  ComparisonForTest& TargetOut(const Item& item) { return Row(ItemRole::kOutput, item, {}); }
  ComparisonForTest& GoldenOut(const Item& item) { return Row(ItemRole::kOutput, {}, item); }

  ComparedRow& last_row() { return comparison_.rows.back(); }
  [[nodiscard]] const Comparison& get() const { return comparison_; }

 private:
  ComparisonForTest& Call(const std::string& target, const std::string& golden,
                          const std::string& reason, Verdict verdict) {
    ComparedCall call;
    call.target_name = target;
    call.golden_name = golden;
    call.unmatched_reason = reason;
    call.first_row = static_cast<uint32_t>(comparison_.rows.size());
    call.verdict = verdict;
    comparison_.calls.push_back(std::move(call));
    return *this;
  }

  Comparison comparison_;
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_COMPARISON_FOR_TEST_H_
