#include "pipeline/culprit/part_twins.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "pipeline/culprit/culprit_text.h"
#include "record/call_name.h"
#include "record/recorded_number.h"

namespace plumbline::pipeline {
namespace {

// Calls of one API and direction on each side, in the order of their numbers.
struct Series {
  std::vector<std::pair<uint64_t, uint32_t>> target, golden;
};

double LengthOf(std::span<const DataPart> parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.0, [](double sum, const DataPart& each) {
    return sum + static_cast<double>(each.item->shape[0]);
  });
}

}  // namespace

std::vector<Twins> FindTwins(const Comparison& comparison, const OtherBatch& batch) {
  std::map<std::string, Series> all;
  for (const uint32_t index : batch.calls) {
    const ComparedCall& call = comparison.calls[index];
    for (const bool of_target : {true, false}) {
      const std::string& name = measure::NameOn(call, of_target);
      const auto parsed = ParseCallName(name);
      if (!parsed || !parsed->number || parsed->form != CallName::Form::kApi) continue;
      Series& series = all[fmt::format("{}.{}", parsed->prefix, SeriesOf(name))];
      (of_target ? series.target : series.golden).emplace_back(*parsed->number, index);
    }
  }
  const size_t times = batch.times, ours = batch.target_parts, theirs = batch.golden_parts;
  std::vector<Twins> found;
  if (times * ours * theirs == 0) return found;
  for (auto& [name, series] : all) {
    const size_t each = series.target.size() / (times * ours);  // such calls in one part
    const bool fits = each > 0 && series.target.size() == times * ours * each &&
                      series.golden.size() == times * theirs * each;
    if (!fits) continue;  // one side makes it more often
    std::ranges::sort(series.target);
    std::ranges::sort(series.golden);
    for (size_t k = 0; k < times * each; ++k) {
      const size_t at = k / each, place = k % each;
      Twins twins;
      for (size_t i = 0; i < ours; ++i) {
        twins.target.push_back(series.target[(at * ours + i) * each + place].second);
      }
      for (size_t i = 0; i < theirs; ++i) {
        twins.golden.push_back(series.golden[(at * theirs + i) * each + place].second);
      }
      found.push_back(std::move(twins));
    }
  }
  std::ranges::sort(found, {}, [](const Twins& each) { return each.target.front(); });
  return found;
}

std::vector<DataPart> PartsOf(const Comparison& comparison, std::span<const uint32_t> calls,
                              bool of_target, bool is_input, size_t place) {
  std::vector<DataPart> parts;
  for (const uint32_t index : calls) {
    size_t left = place;
    for (const ComparedRow& row : measure::RowsOf(comparison, comparison.calls[index])) {
      const Slot<Item>& item = measure::SideOf(row, of_target);
      if (!item || !item->is_tensor || measure::IsInput(*item) != is_input) continue;
      if (left-- > 0) continue;
      parts.push_back({index, &*item});
      break;
    }
  }
  if (parts.size() != calls.size()) parts.clear();
  return parts;
}

std::vector<double> SingleNumbers(std::span<const DataPart> parts) {
  std::vector<double> numbers;
  for (const DataPart& part : parts) {
    const auto number = NumberOf(part.item->statistics[0]);
    if (!number || !std::isfinite(*number) || measure::ElementsOf(*part.item) != 1) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

double SumOf(std::span<const double> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

double SumOfMagnitudes(std::span<const double> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0,
                         [](double sum, double each) { return sum + std::abs(each); });
}

bool AreLaid(std::span<const DataPart> ours, std::span<const DataPart> theirs) {
  const auto has_length = [](const DataPart& each) { return !each.item->shape.empty(); };
  return std::ranges::all_of(ours, has_length) && std::ranges::all_of(theirs, has_length) &&
         LengthOf(ours) == LengthOf(theirs);
}

}  // namespace plumbline::pipeline
