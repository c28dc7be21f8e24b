#include "view/merge/fold_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
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
constexpr std::string_view kMatmul = "matmul";
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
  TensorFolder(std::span<RankTree* const> trees, const RankGroups& groups, const PartialSums& sums)
      : main_(*trees.front()), others_(trees.begin() + 1, trees.end()), sums_(sums) {
    for (const auto& group : groups) {
      for (const int64_t rank : group) group_of_.emplace(rank, &group);
    }
  }

  void Run() {
    const std::vector<Part*> parts = PartsBelow(main_.root());
    for (Part* const part : parts) {
      if (TakesPart(*part)) Merge(*part);
    }
    for (Part* const part : parts) MergeBetween(*part);
  }

 private:
  static bool TakesPart(const Part& part) {
    return part.parent != nullptr && part.type != NodeType::kCollection &&
           !IsOwnOfRank(*part.parent) && !IsDistributed(part) && !part.is_merged;
  }

  // The same call on the other ranks; empty if one of them has it not.
  [[nodiscard]] std::vector<Part*> PeersOf(const Part& part) const {
    if (part.parent->type == NodeType::kCollection) return LoosePeersOf(part);
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

  // Calls between the modules of all ranks are in the first tree. Those of a group's first rank
  // have peers.
  [[nodiscard]] std::vector<Part*> LoosePeersOf(const Part& part) const {
    std::vector<Part*> peers;
    const auto group = group_of_.find(part.rank);
    if (group == group_of_.end() || group->second->front() != part.rank) return peers;
    const auto mark = MarkIn(part.name);
    for (const int64_t rank : std::span(*group->second).subspan(1)) {
      std::string name = part.name;
      mark ? void(name.replace(mark->at, mark->size, fmt::format("{}", rank)))
           : void(name = WithRankMark(name, rank));
      Part* const peer = main_.Find(name);
      if (peer == nullptr) return {};
      peers.push_back(peer);
    }
    return peers;
  }

  static std::string RanksLine(const Part& part, const std::vector<Part*>& peers) {
    std::vector<int64_t> ranks = {part.rank};
    for (const Part* const peer : peers) ranks.push_back(peer->rank);
    return fmt::format("Merged over tensor parallel ranks [{}]", fmt::join(ranks, ", "));
  }

  void Merge(Part& part) {
    const std::vector<Part*> peers = PeersOf(part);
    const DifferingTensors found = TensorsThat(Which::kDiffering, part, peers);
    if (found.any()) MergeFound(found, peers, part);
  }

  void MergeFound(const DifferingTensors& found, const std::vector<Part*>& peers, Part& part) {
    part.is_merged = true;
    part.merge.push_back(RanksLine(part, peers));
    bool has_parts = false;
    for (const auto* const places : {&found.inputs, &found.outputs}) {
      for (const TensorsAt& place : *places) {
        std::vector<std::string> lines = sums_.Replace(place);
        if (lines.empty()) {
          lines = MergeTensors(place);
          has_parts = has_parts || !lines.empty();
        }
        std::ranges::move(lines, std::back_inserter(part.merge));
      }
    }
    if (has_parts) part.merge.emplace_back(kNormAssumption);
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
  const PartialSums& sums_;
  std::unordered_map<int64_t, const std::vector<int64_t>*> group_of_;  // by rank
};

}  // namespace

void FoldTensors(std::span<RankTree* const> trees, const RankGroups& groups,
                 const PartialSums& sums) {
  if (trees.size() < 2) return;
  TensorFolder(trees, groups, sums).Run();
}

}  // namespace plumbline::view
