#include "view/merge/fold_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text/text_parts.h"
#include "tree/call_twin.h"
#include "view/merge/fold_pipeline.h"
#include "view/merge/merged_values.h"

namespace plumbline::view {
namespace {

constexpr std::string_view kColumn = "ColumnParallelLinear", kRow = "RowParallelLinear";
constexpr std::string_view kFirstOutput = "output.0";
constexpr std::string_view kMatmul = "matmul", kAllReduce = "all_reduce";
constexpr std::array<std::string_view, 2> kReduceScatters = {"_reduce_scatter_base",
                                                             "reduce_scatter_tensor"};
constexpr std::string_view kNormAssumption =
    "Norm: assumes that the ranks hold parts of one tensor; of copies that differ it is too large";

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }
bool IsDistributed(const Part& part) { return part.name.starts_with("Distributed"); }

// The class of a module's call in that direction; empty for others.
std::string_view ClassIn(std::string_view name, std::string_view direction) {
  const auto directed = tree::ParseDirected(name);
  if (!directed || directed->direction != direction) return {};
  return directed->stem.substr(directed->stem.rfind('.') + 1);
}

// The rank in "Torch.matmul_rank4.32.forward".
struct RankMark {
  size_t at = 0, size = 0;  // of the number
  int64_t rank = 0;
};
std::optional<RankMark> MarkIn(std::string_view name) {
  constexpr std::string_view kMark = "_rank";
  const size_t first = name.find('.');
  if (first == std::string_view::npos) return std::nullopt;
  const size_t end = name.find('.', first + 1);
  if (end == std::string_view::npos) return std::nullopt;
  const size_t at = name.substr(0, end).rfind(kMark);
  if (at == std::string_view::npos || at < first) return std::nullopt;
  const size_t number = at + kMark.size();
  const auto rank = ParseNatural(name.substr(number, end - number));
  if (!rank) return std::nullopt;
  return RankMark{number, end - number, *rank};
}

class TensorFolder {
 public:
  TensorFolder(std::span<RankTree* const> trees, const RankGroups& groups)
      : main_(*trees.front()), others_(trees.begin() + 1, trees.end()) {
    for (const auto& group : groups) {
      for (const int64_t rank : group) group_of_.emplace(rank, &group);
    }
  }

  void Run() {
    const std::vector<Part*> parts = PartsBelow(main_.root());
    for (Part* const part : parts) {
      if (!TakesPart(*part)) continue;
      ReplaceSums(*part);
      Merge(*part, Which::kDiffering);
    }
    for (Part* const part : parts) MergeBetween(*part);
  }

 private:
  static bool TakesPart(const Part& part) {
    return part.parent != nullptr && part.parent->is_module() && !IsOwnOfRank(*part.parent) &&
           !IsDistributed(part) && !part.is_merged;
  }

  // The same call on the other ranks; empty if one of them has it not.
  [[nodiscard]] std::vector<Part*> PeersOf(const Part& part) const {
    std::vector<Part*> peers;
    const auto mark = part.is_module() ? std::nullopt : MarkIn(part.name);
    const std::vector<int64_t>* group = nullptr;
    if (mark) {
      const auto found = group_of_.find(mark->rank);
      if (found == group_of_.end() || found->second->size() != others_.size() + 1) return peers;
      group = found->second;
    }
    size_t next = 0;
    for (RankTree* const tree : others_) {
      std::string name = part.name;
      if (mark) {
        if ((*group)[next] == mark->rank) ++next;
        name.replace(mark->at, mark->size, fmt::format("{}", (*group)[next++]));
      }
      Part* const peer = tree->Find(name);
      if (peer == nullptr || !HaveSameAncestors(part, *peer)) return {};
      peers.push_back(peer);
    }
    return peers;
  }

  static std::string RanksLine(const Part& part, const std::vector<Part*>& peers) {
    std::vector<int64_t> ranks = {part.rank};
    for (const Part* const peer : peers) ranks.push_back(peer->rank);
    return fmt::format("Merged over tensor parallel ranks [{}]", fmt::join(ranks, ", "));
  }

  static void MergeInto(const std::vector<TensorsAt>& places, Part& part) {
    for (const TensorsAt& place : places) {
      for (std::string& line : MergeTensors(place)) part.merge.push_back(std::move(line));
    }
  }

  void Merge(Part& part, Which which) {
    const std::vector<Part*> peers = PeersOf(part);
    const DifferingTensors found = TensorsThat(which, part, peers);
    if (found.any()) MergeFound(found, peers, part);
  }

  static void MergeFound(const DifferingTensors& found, const std::vector<Part*>& peers,
                         Part& part) {
    part.is_merged = true;
    part.merge.push_back(RanksLine(part, peers));
    const size_t before = part.merge.size();
    MergeInto(found.inputs, part);
    MergeInto(found.outputs, part);
    if (part.merge.size() > before) part.merge.emplace_back(kNormAssumption);
  }

  // --- sums over the ranks ----------------------------------------------------------------------

  void ReplaceSums(Part& part) {
    if (!part.is_module()) return;
    const bool holds_sums = Contains(ClassIn(part.name, tree::kForward), kRow) ||
                            Contains(ClassIn(part.name, tree::kBackward), kColumn);
    if (!holds_sums) return;
    std::vector<Part*> reduces;
    for (Part* const child : part.children) {
      if (IsReduce(child->name)) reduces.push_back(child);
    }
    for (Part* const child : part.children) {
      if (!child->is_merged && Contains(child->name, kMatmul)) ReplaceSum(*child, reduces);
    }
  }

  static bool IsReduce(std::string_view name) {
    return Contains(name, kAllReduce) ||
           std::ranges::any_of(kReduceScatters, [&](auto each) { return Contains(name, each); });
  }

  // The tensor that a call returns or that a reduction sums up; null: none.
  static TensorRecord* FirstOutput(Part& part) {
    for (const PlacedValue& value : PlacedValuesOf(part)) {
      if (value.is_output) return value.place == kFirstOutput ? value.tensor : nullptr;
    }
    return nullptr;
  }
  // all_reduce(tensor), reduce_scatter(output, input)
  static TensorRecord* SummedInput(Part& reduce) {
    size_t skip = Contains(reduce.name, kAllReduce) ? 0 : 1;
    for (const PlacedValue& value : PlacedValuesOf(reduce)) {
      if (value.is_output) continue;
      if (skip == 0) return value.tensor;
      --skip;
    }
    return nullptr;
  }

  // The reduction that takes `sum` is used up.
  void ReplaceSum(Part& matmul, std::vector<Part*>& reduces) {
    TensorRecord* const sum = FirstOutput(matmul);
    if (sum == nullptr) return;
    for (auto at = reduces.begin(); at != reduces.end(); ++at) {
      const TensorRecord* const taken = SummedInput(**at);
      if (taken == nullptr || FirstOutput(**at) == nullptr) continue;
      if (!AgreeIn(*sum, *taken, Sameness::kExact)) continue;
      ReplaceBy(**at, matmul);
      reduces.erase(at);
      return;
    }
  }

  void ReplaceBy(Part& reduce, Part& matmul) {
    const std::vector<Part*> peers = PeersOf(matmul);
    DifferingTensors found = TensorsThat(Which::kDiffering, matmul, peers);
    std::erase_if(found.outputs, [](const TensorsAt& each) { return each.place == kFirstOutput; });
    if (found.any()) MergeFound(found, peers, matmul);
    matmul.is_merged = true;
    TensorRecord whole = *FirstOutput(reduce);
    std::vector<std::string> lines = WholeOf(reduce, whole);
    TensorRecord& sum = *FirstOutput(matmul);
    sum.max = whole.max;
    sum.min = whole.min;
    sum.mean = whole.mean;
    sum.norm = whole.norm;
    sum.max_finite = whole.max_finite;
    sum.min_finite = whole.min_finite;
    sum.nan_count = whole.nan_count;
    sum.inf_count = whole.inf_count;
    sum.zero_count = whole.zero_count;
    ForgetContents(sum);
    matmul.merge.push_back(fmt::format("Output: that of {}", reduce.name));
    for (std::string& line : lines) matmul.merge.push_back(std::move(line));
  }

  // A reduce_scatter leaves each rank a part of the sum: together they are `whole`.
  std::vector<std::string> WholeOf(Part& reduce, TensorRecord& whole) const {
    if (Contains(reduce.name, kAllReduce)) return {};
    std::vector<TensorRecord> parts;
    for (Part* const peer : PeersOf(reduce)) {
      const TensorRecord* const part = FirstOutput(*peer);
      if (part == nullptr) return {};
      parts.push_back(*part);
    }
    TensorsAt at{std::string(kFirstOutput), {&whole}};
    for (TensorRecord& part : parts) at.tensors.push_back(&part);
    return MergeTensors(at);
  }

  // --- what lies between two parallel layers ----------------------------------------------------

  void MergeBetween(Part& column) {
    if (!column.is_module() || column.is_merged || column.parent == nullptr) return;
    if (!Contains(ClassIn(column.name, tree::kForward), kColumn)) return;
    const std::vector<Part*>& siblings = column.parent->children;
    const auto first = std::ranges::find(siblings, &column);
    const auto is_row = [](const Part* part) { return Contains(part->name, kRow); };
    const auto last = std::find_if(siblings.rbegin(), siblings.rend(), is_row);
    if (last == siblings.rend() || last.base() - first < 2) return;
    for (auto at = first; at != last.base(); ++at) {
      for (Part* const part : PartsBelow(**at)) {
        if (!part->is_merged && !IsDistributed(*part)) MergePart(*part, column, **last);
      }
    }
  }

  // What goes into the first layer and what leaves the second one is whole on every rank.
  void MergePart(Part& part, const Part& column, const Part& row) {
    const std::vector<Part*> peers = PeersOf(part);
    DifferingTensors found = TensorsThat(Which::kAll, part, peers);
    if (!found.any()) return;
    const auto is_of = [&](const Part& layer) {
      return &part == &layer || (Contains(part.name, kMatmul) && part.parent == &layer);
    };
    const auto forget = [&](std::string_view place) {
      std::erase_if(found.inputs, [&](const TensorsAt& each) { return each.place == place; });
    };
    if (is_of(column)) {
      forget("input.0");
    } else if (is_of(row)) {
      found.outputs.clear();
      forget("parameters.bias");
    }
    MergeFound(found, peers, part);
  }

  RankTree& main_;
  std::vector<RankTree*> others_;
  std::unordered_map<int64_t, const std::vector<int64_t>*> group_of_;  // by rank
};

}  // namespace

void FoldTensors(std::span<RankTree* const> trees, const RankGroups& groups) {
  if (trees.size() < 2) return;
  TensorFolder(trees, groups).Run();
}

}  // namespace plumbline::view
