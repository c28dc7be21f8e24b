#include "pipeline/culprit/data_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "pipeline/culprit/content_key.h"
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

using Keys = std::unordered_set<ContentKey, ContentKeyHash>;

// A part with its place among all calls of its name.
struct Placed {
  uint64_t number = 0;
  uint32_t row = 0;
  DataPart part;
};

bool IsCopy(std::string_view name) {
  return measure::ClassOfCall(name) == measure::CallClass::kCopy;
}

// What forward calls of one side compute, and what is taken from that.
Keys ComputedBy(const Comparison& comparison, bool of_target) {
  Keys computed;
  for (const ComparedCall& call : comparison.calls) {
    const std::string& name = measure::NameOn(call, of_target);
    if (name.empty() || KindOfCall(name) != CallKind::kForward) continue;
    const auto rows = measure::RowsOf(comparison, call);
    const bool computes = !IsCopy(name) || std::ranges::any_of(rows, [&](const ComparedRow& row) {
      const Slot<Item>& item = measure::SideOf(row, of_target);
      const auto key = item && measure::IsInput(*item) ? KeyOf(*item) : std::nullopt;
      return key && computed.contains(*key);
    });
    if (!computes) continue;
    for (const ComparedRow& row : rows) {
      const Slot<Item>& item = measure::SideOf(row, of_target);
      const auto key = item && !measure::IsInput(*item) ? KeyOf(*item) : std::nullopt;
      if (key) computed.insert(*key);
    }
  }
  return computed;
}

using Places = std::map<std::string, std::vector<Placed>>;

Places PlacesOf(const Comparison& comparison, bool of_target) {
  const Keys computed = ComputedBy(comparison, of_target);
  Places places;
  for (uint32_t i = 0; i < comparison.rows.size(); ++i) {
    const ComparedRow& row = comparison.rows[i];
    const Slot<Item>& item = measure::SideOf(row, of_target);
    if (!item || !item->is_tensor || item->shape.empty() || item->requires_grad == true) continue;
    const std::string& name = measure::NameOn(comparison.calls[row.call], of_target);
    if (KindOfCall(name) != CallKind::kForward) continue;
    if (!measure::IsInput(*item) && !IsCopy(name)) continue;
    const auto key = KeyOf(*item);
    const auto call = ParseCallName(name);
    if (!key || computed.contains(*key) || !call || !call->number) continue;
    places[PlaceOf(name, *item)].push_back({*call->number, i, {row.call, &*item}});
  }
  for (auto& [place, parts] : places) {
    std::ranges::sort(parts, {},
                      [](const Placed& each) { return std::pair(each.number, each.row); });
  }
  return places;
}

using Lengths = std::map<std::string, std::set<int64_t>>;  // by place

// How long what the forward calls of one side without counterpart read or cut off is.
Lengths LengthsAlone(const Comparison& comparison, bool of_target) {
  Lengths lengths;
  for (const ComparedCall& call : comparison.calls) {
    const std::string& name = measure::NameOn(call, of_target);
    if (call.paired() || name.empty() || KindOfCall(name) != CallKind::kForward) continue;
    const bool is_copy = IsCopy(name);
    for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
      const Slot<Item>& item = measure::SideOf(row, of_target);
      if (!item || !item->is_tensor || item->shape.empty()) continue;
      if (is_copy || measure::IsInput(*item)) lengths[PlaceOf(name, *item)].insert(item->shape[0]);
    }
  }
  return lengths;
}

// Whether there may be data in parts of other sizes at all. Pairs have the same shapes: both sides
// then have calls without counterpart, which read other lengths in one place. Costs nothing where
// all calls are paired.
bool MayBeCut(const Comparison& comparison) {
  const Lengths target = LengthsAlone(comparison, true);
  if (target.empty()) return false;
  const Lengths golden = LengthsAlone(comparison, false);
  return std::ranges::any_of(target, [&](const auto& place) {
    const auto other = golden.find(place.first);
    return other != golden.end() && (place.second.size() > 1 || place.second != other->second);
  });
}

// Without what the other side reads in the same place as it is.
std::vector<DataPart> PartsBeside(const std::vector<Placed>& own,
                                  const std::vector<Placed>& other) {
  Keys known;
  for (const Placed& each : other) known.insert(*KeyOf(*each.part.item));
  std::vector<DataPart> parts;
  for (const Placed& each : own) {
    if (!known.contains(*KeyOf(*each.part.item))) parts.push_back(each.part);
  }
  return parts;
}

int64_t LengthOf(const DataPart& part) { return part.item->shape[0]; }

// Whether each call of the parts returns something that is as long as its part, or in all the same
// number of times that: a weight that is cut in two makes no shorter batch.
bool CallsFollow(const Comparison& comparison, std::span<const DataPart> parts, bool of_target,
                 std::optional<double>& times) {
  return std::ranges::all_of(parts, [&](const DataPart& part) {
    if (!measure::IsInput(*part.item)) return true;
    const auto rows = measure::RowsOf(comparison, comparison.calls[part.call]);
    return std::ranges::any_of(rows, [&](const ComparedRow& row) {
      const Slot<Item>& item = measure::SideOf(row, of_target);
      if (!item || measure::IsInput(*item) || !item->is_tensor || item->shape.empty()) return false;
      const double ratio =
          static_cast<double>(item->shape[0]) / static_cast<double>(LengthOf(part));
      if (!times) times = ratio;
      return ratio == *times;
    });
  });
}

// Lays the parts of both sides beside each other and adds what is cut otherwise to `found`.
void Compare(const Comparison& comparison, const std::vector<DataPart>& target,
             const std::vector<DataPart>& golden, std::vector<DataParts>& found) {
  size_t i = 0, j = 0;
  while (i < target.size() && j < golden.size()) {
    const size_t first_target = i, first_golden = j;
    int64_t ours = LengthOf(target[i++]), theirs = LengthOf(golden[j++]);
    while (ours != theirs) {
      if (ours < theirs ? i == target.size() : j == golden.size()) return;
      (ours < theirs ? ours : theirs) += LengthOf(ours < theirs ? target[i++] : golden[j++]);
    }
    if (i - first_target == 1 && j - first_golden == 1) continue;
    const auto some = std::span(target).subspan(first_target, i - first_target);
    const auto others = std::span(golden).subspan(first_golden, j - first_golden);
    std::optional<double> times;
    if (HoldTheSame(some, others) && CallsFollow(comparison, some, true, times) &&
        CallsFollow(comparison, others, false, times)) {
      found.push_back({{some.begin(), some.end()}, {others.begin(), others.end()}});
    }
  }
}

struct Total {
  double max = -std::numeric_limits<double>::infinity();
  double min = std::numeric_limits<double>::infinity();
  double sum = 0, squares = 0, elements = 0;
};

// Nothing where a statistic is missing or not finite.
std::optional<Total> TotalOf(std::span<const DataPart> parts) {
  Total total;
  for (const DataPart& part : parts) {
    std::array<double, 4> numbers{};
    for (size_t i = 0; i < numbers.size(); ++i) {
      const std::optional<double> number = NumberOf(part.item->statistics[i]);
      if (!number || !std::isfinite(*number)) return std::nullopt;
      numbers[i] = *number;
    }
    const double count = measure::ElementsOf(*part.item);
    total.max = std::max(total.max, numbers[0]);
    total.min = std::min(total.min, numbers[1]);
    total.sum += numbers[2] * count;
    total.squares += numbers[3] * numbers[3];
    total.elements += count;
  }
  return total;
}

}  // namespace

bool HoldTheSame(std::span<const DataPart> target, std::span<const DataPart> golden) {
  const std::optional<Total> ours = TotalOf(target), theirs = TotalOf(golden);
  if (!ours || !theirs || ours->elements != theirs->elements) return false;
  if (ours->max != theirs->max || ours->min != theirs->min) return false;
  // Means and norms are recorded as float32 numbers.
  const double rounding = measure::kNoiseFactor * UnitRoundoff(DType::kFloat32);
  const double size = std::sqrt(theirs->elements * theirs->squares);
  return std::abs(ours->sum - theirs->sum) <= rounding * size &&
         std::abs(ours->squares - theirs->squares) <= 2 * rounding * theirs->squares;
}

std::string PlaceOf(std::string_view name, const Item& item) {
  const std::optional<CallName> call = ParseCallName(name);
  const bool is_result = !measure::IsInput(item);
  const std::string_view place =
      is_result ? std::string_view("output") : measure::ShortName(item, name);
  const Shape& shape = item.shape;
  return fmt::format("{} {} {} {} {}", call ? call->path : name,
                     call ? call->class_name : std::string_view(), place,
                     item.dtype ? item.dtype->view() : std::string_view(),
                     fmt::join(shape.begin() + 1, shape.end(), ","));
}

std::optional<std::array<Recorded, 4>> StatisticsTogether(std::span<const DataPart> parts) {
  const auto trailing = [](const DataPart& part) {
    return std::span<const int64_t>(part.item->shape.begin(), part.item->shape.end()).subspan(1);
  };
  for (const DataPart& part : parts) {
    const bool fits =
        !part.item->shape.empty() && std::ranges::equal(trailing(part), trailing(parts.front()));
    if (!fits) return std::nullopt;
  }
  const std::optional<Total> total = TotalOf(parts);
  if (!total || !(total->elements > 0)) return std::nullopt;
  return std::array<Recorded, 4>{total->max, total->min, total->sum / total->elements,
                                 std::sqrt(total->squares)};
}

std::vector<DataParts> FindDataParts(const Comparison& comparison) {
  if (!MayBeCut(comparison)) return {};
  const Places target = PlacesOf(comparison, true), golden = PlacesOf(comparison, false);
  std::vector<DataParts> found;
  for (const auto& [place, parts] : target) {
    const auto other = golden.find(place);
    if (other == golden.end()) continue;
    Compare(comparison, PartsBeside(parts, other->second), PartsBeside(other->second, parts),
            found);
  }
  return found;
}

}  // namespace plumbline::pipeline
