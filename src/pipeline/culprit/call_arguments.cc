#include "pipeline/culprit/call_arguments.h"

#include <string>
#include <variant>

#include "measure/compared_row.h"
#include "measure/standards.h"

namespace plumbline::pipeline {
namespace {

// Whether `part` is all of `name`, or what stands behind one of its dots.
bool EndsInPart(std::string_view name, std::string_view part) {
  if (!name.ends_with(part)) return false;
  name.remove_suffix(part.size());
  return name.empty() || name.back() == '.';
}

}  // namespace

bool IsArgument(const ComparedRow& row, std::string_view call_name, size_t place,
                std::string_view keyword) {
  if (!measure::IsInput(row)) return false;
  const std::string_view own = measure::ShortName(row.item(), call_name);
  return EndsInPart(own, "input." + std::to_string(place)) || EndsInPart(own, keyword);
}

const Item* ArgumentOf(std::span<const ComparedRow> rows, std::string_view call_name,
                       bool of_target, size_t place, std::string_view keyword) {
  for (const ComparedRow& row : rows) {
    const Slot<Item>& item = measure::SideOf(row, of_target);
    if (item && IsArgument(row, call_name, place, keyword)) return &*item;
  }
  return nullptr;
}

bool TakesOwnStatistics(std::span<const ComparedRow> rows, std::string_view call_name,
                        bool of_target) {
  constexpr size_t kPlace = 5;
  const Item* item = ArgumentOf(rows, call_name, of_target, kPlace, "training");
  if (item == nullptr) item = ArgumentOf(rows, call_name, of_target, kPlace, "use_input_stats");
  const bool* flag = item == nullptr ? nullptr : std::get_if<bool>(&item->statistics[0]);
  return flag == nullptr ? measure::ApiOfCall(call_name) == "instance_norm" : *flag;
}

}  // namespace plumbline::pipeline
