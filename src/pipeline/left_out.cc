#include "pipeline/left_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace plumbline::pipeline {
namespace {

using match::CallItems;

// One call may take nothing, or return nothing.
constexpr size_t kFewestCalls = 2;

// One direction and one half of its calls.
struct Part {
  CallKind kind;
  ItemRole role;
  std::string_view name;
  size_t fewest_calls = kFewestCalls;  // that have it on the side that recorded it
};
constexpr Part kParts[] = {
    {CallKind::kForward, ItemRole::kInput, "inputs of forward calls"},
    {CallKind::kForward, ItemRole::kOutput, "results of forward calls"},
    // Recorders of other makes and of earlier releases know none.
    {CallKind::kForward, ItemRole::kBuffer, "buffers that modules changed", 1},
    {CallKind::kBackward, ItemRole::kInput, "inputs of backward calls"},
    {CallKind::kBackward, ItemRole::kOutput, "results of backward calls"},
};

bool IsOf(const Part& part, const Item& item) { return item.role == part.role; }

// In how many calls the side recorded the part, and in how many only something else.
struct Counts {
  size_t with = 0, without = 0;
};
using PartCounts = std::array<Counts, std::size(kParts)>;

// Of every part; what is recorded often enough is not counted any further.
PartCounts CountParts(const std::vector<CallItems>& calls) {
  PartCounts counts;
  for (const CallItems& call : calls) {
    if (call.items.empty()) continue;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (call.kind != kParts[i].kind || counts[i].with >= kFewestCalls) continue;
      const bool has =
          std::ranges::any_of(call.items, [&](const Item& item) { return IsOf(kParts[i], item); });
      ++(has ? counts[i].with : counts[i].without);
    }
  }
  return counts;
}

bool LacksAll(const Counts& counts) { return counts.with == 0 && counts.without >= kFewestCalls; }

// Returns the number of items taken.
size_t Take(const Part& part, bool of_target, std::vector<CallItems>& calls, LeftOut& left_out) {
  size_t count = 0;
  for (CallItems& call : calls) {
    if (call.kind != part.kind) continue;
    LeftOutPart taken{call.name, of_target, {}};
    for (Item& item : call.items) {
      if (IsOf(part, item)) taken.items.push_back(std::move(item));
    }
    if (taken.items.empty()) continue;
    std::erase_if(call.items, [&](const Item& item) { return IsOf(part, item); });
    count += taken.items.size();
    left_out.parts.push_back(std::move(taken));
  }
  return count;
}

}  // namespace

LeftOut TakeLeftOut(std::vector<CallItems>& target, std::vector<CallItems>& golden,
                    bool across_frameworks) {
  // Told for all parts before any is taken.
  const PartCounts of_target = CountParts(target), of_golden = CountParts(golden);
  std::vector<std::pair<Part, bool>> alone;  // the part, and whether the target alone has it
  for (const bool is_target : {true, false}) {
    const PartCounts& own = is_target ? of_target : of_golden;
    const PartCounts& other = is_target ? of_golden : of_target;
    for (size_t i = 0; i < own.size(); ++i) {
      // What is a buffer in one framework is a parameter in the other.
      if (across_frameworks && kParts[i].role == ItemRole::kBuffer) continue;
      const bool is_alone = LacksAll(other[i]) && own[i].with >= kParts[i].fewest_calls;
      if (is_alone) alone.emplace_back(kParts[i], is_target);
    }
  }
  LeftOut left_out;
  for (const auto& [part, is_target] : alone) {
    const size_t count = Take(part, is_target, is_target ? target : golden, left_out);
    left_out.warnings.push_back(fmt::format(
        "{} recorded no {} (data_mode?): {} values of {} have nothing to be compared with",
        is_target ? "golden" : "the target", part.name, count,
        is_target ? "the target" : "golden"));
  }
  return left_out;
}

void AddLeftOut(LeftOut left_out, Comparison& comparison) {
  for (LeftOutPart& part : left_out.parts) {
    ComparedCall call;
    (part.of_target ? call.target_name : call.golden_name) = part.call;
    call.unmatched_reason = LeftOut::kReason;
    call.first_row = static_cast<uint32_t>(comparison.rows.size());
    call.row_count = static_cast<uint32_t>(part.items.size());
    comparison.counts.missing_values += part.items.size();
    for (Item& item : part.items) {
      ComparedRow& row = comparison.rows.emplace_back();
      row.call = static_cast<uint32_t>(comparison.calls.size());
      (part.of_target ? row.target : row.golden) = std::move(item);
      row.result = comparison.mode == CompareMode::kTensor ? "None" : "N/A";
      row.reason = LeftOut::kReason;
      row.notes.push_back({std::string(LeftOut::kReason), "Only this side recorded such values."});
    }
    comparison.calls.push_back(std::move(call));
  }
  for (std::string& warning : left_out.warnings) {
    comparison.warnings.push_back(std::move(warning));
  }
}

}  // namespace plumbline::pipeline
