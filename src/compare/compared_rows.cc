#include "compare/compared_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/process/parallel.h"
#include "measure/compared_row.h"
#include "measure/standards.h"
#include "verdict/call_rows.h"
#include "verdict/rightly_different.h"

namespace plumbline::compare {

namespace {

using match::CallItems;
using match::CallPair;

constexpr size_t kBlock = 2048;  // of pairs that one thread fills in one go

class Builder {
 public:
  Builder(std::vector<CallItems>& target, std::vector<CallItems>& golden, Comparison& comparison)
      : target_(target), golden_(golden), comparison_(comparison) {}

  // Where the rows of each pair begin; makes room for all.
  void Place(const std::vector<CallPair>& pairs) {
    size_t rows = 0;
    for (const CallPair& pair : pairs) rows += RowsOf(pair);
    const auto place_calls = [&] {
      comparison_.calls.resize(pairs.size());
      size_t first = 0;
      for (size_t i = 0; i < pairs.size(); ++i) {
        const size_t count = RowsOf(pairs[i]);
        comparison_.calls[i].first_row = static_cast<uint32_t>(first);
        comparison_.calls[i].row_count = static_cast<uint32_t>(count);
        first += count;
      }
    };
    RunBoth([&] { comparison_.rows.resize(rows); }, place_calls);
  }

  void Fill(const CallPair& pair, size_t index) {
    ComparedCall& call = comparison_.calls[index];
    call.unmatched_reason = pair.reason;
    call.unmatched_detail = pair.detail;
    CallItems* target = pair.target == CallPair::kNone ? nullptr : &target_[pair.target];
    CallItems* golden = pair.golden == CallPair::kNone ? nullptr : &golden_[pair.golden];
    if (target != nullptr) call.target_name = target->name;
    if (golden != nullptr) call.golden_name = golden->name;
    if (call.golden_name == call.target_name) call.golden_name = call.target_name;
    if (call.paired()) call.pairing = pair.rule;
    // A mapping may lead several rows to one item, on several threads.
    const bool in_order = pair.links.empty();
    for (size_t i = 0; i < call.row_count; ++i) {
      ComparedRow& row = comparison_.rows[call.first_row + i];
      row.call = static_cast<uint32_t>(index);
      const auto [a, b] = in_order ? std::pair(i, i) : pair.links[i];
      if (target != nullptr) row.target = Slot<Item>::ReferTo(target->items[a]);
      if (golden != nullptr) row.golden = Slot<Item>::ReferTo(golden->items[b]);
      // Two copies of nearly every name would be a good part of the memory.
      if (in_order && row.target && row.golden && row.target->name == row.golden->name) {
        row.golden->name = row.target->name;
      }
    }
  }

  void Count(const std::vector<CallPair>& pairs) {
    CompareCounts& counts = comparison_.counts;
    for (const CallPair& pair : pairs) {
      if (pair.paired()) {
        ++counts.calls;
      } else if (pair.reason == "recomputed") {
        ++counts.recomputed;
      } else if (pair.target != CallPair::kNone) {
        ++counts.unmatched_target;
      } else {
        ++counts.unmatched_golden;
      }
    }
  }

 private:
  [[nodiscard]] size_t RowsOf(const CallPair& pair) const {
    if (!pair.links.empty()) return pair.links.size();
    return pair.target != CallPair::kNone ? target_[pair.target].items.size()
                                          : golden_[pair.golden].items.size();
  }

  std::vector<CallItems>& target_;
  std::vector<CallItems>& golden_;
  Comparison& comparison_;
};

}  // namespace

void BuildRows(const std::vector<CallPair>& pairs, std::vector<CallItems>& target,
               std::vector<CallItems>& golden, Comparison& comparison) {
  Builder builder(target, golden, comparison);
  builder.Place(pairs);
  ParallelBlocks(pairs.size(), kBlock, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) builder.Fill(pairs[i], i);
  });
  builder.Count(pairs);
}

namespace {

constexpr std::string_view kUnwritten = "uninitialised";

// Follows memory that was NaN on both sides when a call allocated it: to the call that fills it,
// and through parts and copies of it. Memory is told by its type and shape.
class UnwrittenMemory {
 public:
  explicit UnwrittenMemory(Comparison& comparison) : comparison_(comparison) {}

  void Mark() {
    for (const ComparedCall& call : comparison_.calls) {
      if (call.paired()) MarkRowsOf(call);
    }
  }

 private:
  using Form = std::pair<std::string, std::string>;  // data type, shape

  static Form FormOf(const ComparedRow& row) {
    const Item& item = *row.target;
    return {item.dtype ? std::string(item.dtype->view()) : "",
            item.shape_text ? std::string(item.shape_text->view()) : ""};
  }

  void MarkRowsOf(const ComparedCall& call) {
    const std::span<ComparedRow> rows =
        std::span(comparison_.rows).subspan(call.first_row, call.row_count);
    ComparedRow* read = nullptr;
    size_t count = 0;
    for (ComparedRow& row : rows) {
      if (!measure::IsInput(row)) continue;
      if (row.reason == "overwritten" && measure::HasNan(*row.target)) ++count;
      if (!measure::IsNanOnBoth(row)) continue;
      read = &row;
      ++count;
    }
    // Of several such values one may be real: what is copied over the memory, for example.
    const bool reads_memory = read != nullptr && count == 1 && memory_.contains(FormOf(*read));
    if (reads_memory) read->reason = kUnwritten;
    const bool is_part =
        reads_memory && measure::ClassOfCall(call.name()) == measure::CallClass::kCopy;
    for (ComparedRow& row : rows) {
      if (measure::IsInput(row) || !row.target || !row.golden) continue;
      if (is_part && measure::IsNanOnBoth(row)) row.reason = kUnwritten;
      if (row.reason == kUnwritten && measure::HasNan(*row.target)) memory_.insert(FormOf(row));
    }
  }

  Comparison& comparison_;
  std::set<Form> memory_;
};

// Counts the values that are NaN on both sides, and says where they begin.
void CountNan(Comparison& comparison) {
  const auto is_counted = [&](const ComparedRow& row) {
    return comparison.calls[row.call].paired() && measure::IsNanOnBoth(row);
  };
  UnwrittenMemory(comparison).Mark();
  const auto count = static_cast<uint64_t>(std::ranges::count_if(comparison.rows, is_counted));
  if (count == 0) return;
  comparison.counts.missing_values += count;
  const auto first = std::ranges::find_if(comparison.rows, is_counted);
  comparison.warnings.push_back(
      fmt::format("{}: {} is NaN on both sides{}; nothing tells whether that is right",
                  comparison.calls[first->call].name(), first->item().name.view(),
                  count == 1 ? "" : fmt::format(", the first of {} such values", count)));
}

}  // namespace

void CountRows(Comparison& comparison) {
  bool any_nan = false;
  for (const ComparedRow& row : comparison.rows) {
    ++comparison.counts.rows[static_cast<size_t>(row.verdict)];
    if (!comparison.calls[row.call].paired()) continue;
    if (verdict::LacksData(row)) ++comparison.counts.missing_values;
    any_nan = any_nan || measure::IsNanOnBoth(row);
  }
  if (any_nan) CountNan(comparison);
}

namespace {

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
      row.AddNote({std::string(LeftOut::kReason), "Only this side recorded such values."});
    }
    comparison.calls.push_back(std::move(call));
  }
  for (std::string& warning : left_out.warnings) {
    comparison.warnings.push_back(std::move(warning));
  }
}

}  // namespace plumbline::compare
