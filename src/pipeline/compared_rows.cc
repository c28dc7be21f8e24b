#include "pipeline/compared_rows.h"

#include <utility>

#include "base/parallel.h"

namespace plumbline::pipeline {
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

}  // namespace plumbline::pipeline
