#include "view/unshard/parallel_run.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>

#include "load/rank_scan.h"
#include "view/merge/merged_values.h"

namespace plumbline::view {
namespace {

constexpr std::string_view kTaskOfStatistics = "statistics", kTaskOfTensors = "tensor";

// What a call has beside tensors, as one text.
std::string ScalarText(const Value& value) {
  if (const auto* const truth = value.As<bool>()) return *truth ? "True" : "False";
  if (const auto* const whole = value.As<int64_t>()) return std::to_string(*whole);
  if (const auto* const real = value.As<double>()) return fmt::format("{}", *real);
  if (const auto* const large = value.As<BigInt>()) return large->digits;
  if (const auto* const words = value.As<std::string>()) return *words;
  return "None";
}

void AddArguments(const Value& value, std::string_view name, int depth, std::string& text) {
  constexpr int kMostLevels = 400;
  if (depth > kMostLevels) return;
  text += name;
  if (value.As<TensorRecord>() != nullptr) {
    text += "|tensor";
  } else if (const auto* const list = value.As<ValueList>()) {
    for (const Value& each : *list) AddArguments(each, "", depth + 1, text);
  } else if (const auto* const map = value.As<ValueMap>()) {
    for (const auto& [key, each] : *map) AddArguments(each, key, depth + 1, text);
  } else {
    text += ScalarText(value);
  }
  text += ';';
}

}  // namespace

Result<std::vector<load::RankDirectory>> ListRanks(const std::string& path) {
  PL_TRY_ASSIGN(const load::RankPairs found, load::FindRankPairs(path, path, {}));
  if (found.has_steps) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: holds steps (expected one of them, such as {}/step0)", path, path));
  }
  std::vector<load::RankDirectory> ranks;
  for (const load::RankPair& pair : found.pairs) ranks.push_back(*pair.target);
  return ranks;
}

Result<RankTree> ReadStatistics(const load::RankDirectory& rank, int64_t number) {
  PL_TRY_ASSIGN(RankTree tree, ReadRankTree(rank.path, number));
  if (tree.task != kTaskOfStatistics && tree.task != kTaskOfTensors) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: task {} has no statistics (expected statistics or tensor)",
                             rank.path, tree.task));
  }
  tree.task = kTaskOfStatistics;
  return tree;
}

RankGroups SummingGroups(const std::vector<RankTree>& trees) {
  std::set<std::vector<int64_t>> groups;
  std::vector<int64_t> all;
  for (const RankTree& tree : trees) all.push_back(tree.rank);
  for (const RankTree& tree : trees) {
    for (const Part& part : tree.parts) {
      const auto api = CommunicationApi(part.name);
      if (!api || api->find("reduce") == api->npos) continue;
      std::vector<CommGroup> found;
      const CommCall comm = CommunicationOf(part, *api, found);
      const bool is_known =
          comm.group >= 0 && !found[static_cast<size_t>(comm.group)].ranks.empty();
      groups.insert(is_known ? found[static_cast<size_t>(comm.group)].ranks : all);
    }
  }
  return {groups.begin(), groups.end()};
}

Status CheckAllRanks(const std::string& target, std::span<const RankTree> trees) {
  std::set<int64_t> there, named;
  for (const RankTree& tree : trees) {
    there.insert(tree.rank);
    for (int64_t rank = 0; rank < tree.rank; ++rank) named.insert(rank);
    for (const Part& part : tree.parts) {
      const auto api = CommunicationApi(part.name);
      if (!api) continue;
      std::vector<CommGroup> found;
      const CommCall comm = CommunicationOf(part, *api, found);
      for (const CommGroup& group : found) named.insert(group.ranks.begin(), group.ranks.end());
      for (const PeerTransfer& transfer : comm.transfers) {
        if (transfer.peer) named.insert(*transfer.peer);
      }
    }
  }
  for (const int64_t rank : named) {
    if (rank < 0 || there.contains(rank)) continue;
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: rank {} is missing (expected all ranks of the run)", target, rank));
  }
  return {};
}

std::string ArgumentsOf(const ValueMap& members) {
  std::string text;
  for (const auto& [name, value] : members) AddArguments(value, name, 0, text);
  return text;
}

}  // namespace plumbline::view
