#include "pipeline/graphs/graph_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/file.h"
#include "load/graph_dump.h"

namespace plumbline::pipeline {
namespace {

using load::GraphDirectory;
using Place = std::pair<int64_t, int64_t>;  // rank, step
using Places = std::map<Place, std::vector<std::string>>;

Places PlacesBelow(const std::string& root) {
  Places places;
  for (GraphDirectory& each : load::ListGraphDirectories(root)) {
    places[{each.rank, each.step}].push_back(std::move(each.path));
  }
  return places;
}

load::RankDirectory DirectoryOfPlace(const Place& place,
                                     const std::vector<std::string>& directories) {
  return {load::GraphPath(directories), fmt::format("{}_{}", place.first, place.second),
          place.first};
}

bool IsSolePair(const Places& targets, const Places& goldens, const RankFilter& filter) {
  return filter.ranks.empty() && filter.steps.empty() && targets.size() == 1 && goldens.size() == 1;
}

bool Wanted(const std::vector<int64_t>& wanted, int64_t number) {
  return wanted.empty() || std::ranges::find(wanted, number) != wanted.end();
}

Status CheckGraphs(const std::string& path) {
  if (KindOf(path) == PathKind::kMissing) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: no such directory", path));
  }
  if (load::IsGraphDump(path)) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: no static-graph dump (expected .npy files of kernels or "
                           "statistic.csv in rank_0/net/graph/step)",
                           path));
}

}  // namespace

Result<RankPairs> FindGraphPairs(const std::string& target, const std::string& golden,
                                 const RankFilter& filter) {
  PL_TRY(CheckGraphs(target));
  PL_TRY(CheckGraphs(golden));
  const auto targets = PlacesBelow(target), goldens = PlacesBelow(golden);
  RankPairs out;
  out.has_steps = true;
  out.of_graphs = true;
  const auto add = [&](const Place& place, const std::vector<std::string>* left,
                       const std::vector<std::string>* right) {
    RankPair& pair = out.pairs.emplace_back();
    pair.step = place.second;
    if (left != nullptr) pair.target = DirectoryOfPlace(place, *left);
    if (right != nullptr) pair.golden = DirectoryOfPlace(place, *right);
  };
  if (IsSolePair(targets, goldens, filter)) {
    add(targets.begin()->first, &targets.begin()->second, &goldens.begin()->second);
    return out;
  }
  std::map<Place, std::pair<const std::vector<std::string>*, const std::vector<std::string>*>> all;
  for (const auto& [place, directories] : targets) all[place].first = &directories;
  for (const auto& [place, directories] : goldens) all[place].second = &directories;
  for (const auto& [place, sides] : all) {
    if (!Wanted(filter.ranks, place.first) || !Wanted(filter.steps, place.second)) continue;
    add(place, sides.first, sides.second);
  }
  if (!out.pairs.empty()) return out;
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: no rank and step of these numbers, nor in {}", target, golden));
}

bool IsSoleGraphPair(const std::string& target, const std::string& golden,
                     const RankFilter& filter) {
  return IsSolePair(PlacesBelow(target), PlacesBelow(golden), filter);
}

std::string GraphSuffix(const std::string& path) {
  const auto places = PlacesBelow(path);
  if (places.size() != 1) return {};
  return fmt::format("_{}_{}", places.begin()->first.first, places.begin()->first.second);
}

std::string GraphPathBelow(const std::string& root, int64_t rank, int64_t step) {
  const auto places = PlacesBelow(root);
  const auto found = places.find({rank, step});
  return found == places.end() ? root : load::GraphPath(found->second);
}

}  // namespace plumbline::pipeline
