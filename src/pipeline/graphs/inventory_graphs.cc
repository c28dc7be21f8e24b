#include "pipeline/graphs/inventory_graphs.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "load/atb_dump.h"
#include "load/graph_dump.h"
#include "load/statistic_counts.h"

namespace plumbline {
namespace {

void CountValues(const Value& value, uint64_t& tensors, uint64_t& unreadable) {
  if (const auto* tensor = value.As<TensorRecord>()) {
    ++tensors;
    if (tensor->dtype_text == load::kUnreadableDType) ++unreadable;
  } else if (const auto* list = value.As<ValueList>()) {
    for (const Value& element : *list) CountValues(element, tensors, unreadable);
  } else if (const auto* map = value.As<ValueMap>()) {
    for (const auto& [key, member] : *map) CountValues(member, tensors, unreadable);
  }
}

bool HasTensors(const std::string& directory) {
  const auto names = ListDirectory(directory);
  return names && std::ranges::any_of(
                      *names, [](const std::string& name) { return name.ends_with(".npy"); });
}

using Place = std::pair<int64_t, int64_t>;  // rank, step

struct GraphFacts {
  bool has_tensors = false;
  load::StatisticCounts counts{};
  uint64_t unreadable = 0, problems = 0;
};

SideFileFacts FactsOf(const std::vector<std::string>& directories, const Place& place,
                      const GraphFacts& facts) {
  return {load::GraphPath(directories),
          facts.has_tensors ? "static-graph dump, tensors" : "static-graph dump, statistics",
          {{"rank", static_cast<uint64_t>(place.first)},
           {"step", static_cast<uint64_t>(place.second)},
           {"kernels", facts.counts.kernels},
           {"values", facts.counts.values},
           {"unreadable", facts.unreadable},
           {"problems", facts.problems}}};
}

Result<SideFileFacts> FactsOfGraph(const std::vector<std::string>& directories,
                                   const Place& place) {
  if (std::ranges::none_of(directories, HasTensors)) {
    // Tables may be larger than the memory.
    PL_TRY_ASSIGN(const load::StatisticCounts counts, load::CountStatistics(directories));
    if (counts.values > 0) return FactsOf(directories, place, {.counts = counts});
  }
  PL_TRY_ASSIGN(const load::GraphRecords records, load::ReadGraphDump(directories));
  uint64_t tensors = 0, unreadable = 0;
  for (const Call& call : records.calls) {
    for (const auto& [key, value] : call.members) CountValues(value, tensors, unreadable);
  }
  return FactsOf(
      directories, place,
      {records.has_tensors, {records.calls.size(), tensors}, unreadable, records.problems.size()});
}

Result<SideFileFacts> FactsOfAtb(const std::string& directory) {
  PL_TRY_ASSIGN(const load::AtbDump dump, load::ReadAtbDump(directory));
  std::set<std::string_view> operators;
  uint64_t missing = 0;
  for (const load::AtbTensor& tensor : dump.tensors) {
    operators.insert(tensor.operation);
    if (dump.has_tensors && KindOf(tensor.path) != PathKind::kFile) ++missing;
  }
  return SideFileFacts{directory,
                       dump.has_tensors ? "ATB dump, tensors" : "ATB dump, statistics",
                       {{"operators", operators.size()},
                        {"values", dump.tensors.size()},
                        {"missing files", missing},
                        {"rows left out", dump.left_out}}};
}

}  // namespace

Result<std::vector<SideFileFacts>> ReadGraphFacts(const std::string& directory) {
  std::vector<SideFileFacts> facts;
  if (load::IsAtbDump(directory)) {
    PL_TRY_ASSIGN(SideFileFacts found, FactsOfAtb(directory));
    facts.push_back(std::move(found));
    return facts;
  }
  std::map<Place, std::vector<std::string>> places;
  for (const load::GraphDirectory& each : load::ListGraphDirectories(directory)) {
    places[{each.rank, each.step}].push_back(each.path);
  }
  for (const auto& [place, directories] : places) {
    PL_TRY_ASSIGN(SideFileFacts found, FactsOfGraph(directories, place));
    facts.push_back(std::move(found));
  }
  return facts;
}

}  // namespace plumbline
