#include "view/merge/rank_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/file/file.h"
#include "formats/json/dump_json.h"
#include "load/rank_scan.h"
#include "record/run_files.h"

namespace plumbline::view {
namespace {

// Takes what is asked for from the calls of one rank, in order.
class HintTaker {
 public:
  void Take(const Call& call) {
    const auto api = CommunicationApi(call.name);
    if (!api) return;
    const bool sums =
        api->find("reduce_scatter") != api->npos || api->find("all_reduce") != api->npos;
    const bool sends = *api == "batch_isend_irecv" || *api == "send" || *api == "isend";
    if (!(sums && !has_sum_) && !(sends && !hints_.next)) return;
    std::vector<CommGroup> groups;
    const CommCall comm = ReadCommCall(call, *api, groups);
    if (sums) {
      has_sum_ = true;
      if (comm.group >= 0) hints_.tensor_group = groups[static_cast<size_t>(comm.group)].ranks;
      return;
    }
    for (const PeerTransfer& transfer : comm.transfers) {
      if (transfer.direction == Transfer::kSend && transfer.peer && !hints_.next) {
        hints_.next = transfer.peer;
      }
    }
  }
  RankHints hints() && { return std::move(hints_); }

 private:
  RankHints hints_;
  bool has_sum_ = false;
};

RankGroups TensorGroups(const HintsByRank& hints) {
  RankGroups groups;
  for (const auto& [rank, each] : hints) {
    if (each.tensor_group.empty()) continue;
    if (std::ranges::find(groups, each.tensor_group) == groups.end()) {
      groups.push_back(each.tensor_group);
    }
  }
  return groups;
}

// Whether the groups are a partition of the ranks into parts of that size.
bool AreComplete(const RankGroups& groups, const HintsByRank& hints, int64_t size) {
  std::set<int64_t> ranks;
  size_t count = 0;
  for (const auto& group : groups) {
    if (static_cast<int64_t>(group.size()) != size) return false;
    ranks.insert(group.begin(), group.end());
    count += group.size();
  }
  if (count != ranks.size() || count != hints.size()) return false;
  return std::ranges::all_of(hints, [&](const auto& each) { return ranks.contains(each.first); });
}

std::string Listed(const RankGroups& groups) {
  constexpr size_t kMost = 4;  // of a long list
  std::string text;
  for (size_t i = 0; i < std::min(groups.size(), kMost); ++i) {
    text += fmt::format("{}[{}]", text.empty() ? "" : ", ", fmt::join(groups[i], ", "));
  }
  return groups.size() > kMost ? text + ", ..." : text;
}

}  // namespace

Result<RankHints> ReadHints(const std::string& directory) {
  HintTaker taker;
  PL_TRY_ASSIGN(const dump_json::DumpFile file,
                dump_json::VisitDumpFile(
                    JoinPath(directory, run_files::kDumpJson), /*salvage=*/false,
                    [&](dump_json::VisitedCall&& visited) { taker.Take(visited.call); }));
  (void)file;
  return std::move(taker).hints();
}

RankGroups TraceChains(const HintsByRank& hints) {
  std::set<int64_t> visited;
  RankGroups chains;
  for (const auto& [first, unused] : hints) {
    std::vector<int64_t> chain;
    int64_t rank = first;
    while (true) {
      const auto found = hints.find(rank);
      const bool sent = found != hints.end() && found->second.next && *found->second.next != rank;
      if (!sent || !visited.insert(rank).second) break;
      chain.push_back(rank);
      rank = *found->second.next;
    }
    if (!chain.empty()) chains.push_back(std::move(chain));
  }
  return chains;
}

Result<RankGroups> GroupsOf(const HintsByRank& hints, const ParallelLayout& layout,
                            ParallelDimension dimension, std::vector<std::string>& notes) {
  const bool is_tensor = dimension == ParallelDimension::kTensor;
  const int64_t size = is_tensor ? layout.tensor : layout.pipeline;
  if (size == 1) {
    RankGroups alone;
    for (int64_t rank = 0; rank < layout.ranks; ++rank) alone.push_back({rank});
    return alone;
  }
  RankGroups recorded = is_tensor ? TensorGroups(hints) : TraceChains(hints);
  if (AreComplete(recorded, hints, size)) return recorded;
  PL_TRY_ASSIGN(RankGroups computed, GroupsByArithmetic(layout, dimension));
  if (!recorded.empty()) {
    notes.push_back(fmt::format(
        "{} groups of {} ranks are computed from --order {}: those that communicated, {}, are not "
        "{} to a group",
        is_tensor ? "tensor parallel" : "pipeline", size, layout.order, Listed(recorded), size));
  }
  return computed;
}

size_t MergeJob::ranks() const {
  size_t count = 0;
  for (const auto& pipeline : pipelines) count += pipeline.size();
  return count;
}

std::vector<MergeJob> JobsOf(const ParallelLayout& layout, const RankGroups& tensor,
                             const RankGroups& pipeline) {
  // Ranks of one tensor group lead pipelines of one replica.
  if (layout.tensor * layout.pipeline == layout.ranks) return {MergeJob{pipeline}};
  std::unordered_map<int64_t, const std::vector<int64_t>*> pipeline_from;
  for (const auto& each : pipeline) pipeline_from.emplace(each.front(), &each);
  std::vector<MergeJob> jobs;
  for (const auto& group : tensor) {
    MergeJob job;
    for (const int64_t rank : group) {
      const auto found = pipeline_from.find(rank);
      if (found != pipeline_from.end()) job.pipelines.push_back(*found->second);
    }
    if (!job.pipelines.empty()) jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace plumbline::view
