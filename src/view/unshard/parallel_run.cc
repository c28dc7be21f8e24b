#include "view/unshard/parallel_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "load/rank_scan.h"
#include "record/run_files.h"
#include "view/merge/merged_values.h"

namespace plumbline::view {
namespace {

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

// The directory of a rank's tensors as a path below `top`; nothing if it has none there.
std::optional<std::string> FilesBelow(const std::string& top, const std::string& rank) {
  const std::string files = JoinPath(rank, run_files::kTensorDirectory);
  if (KindOf(files) != PathKind::kDirectory) return std::nullopt;
  const auto from = AbsolutePath(top), to = AbsolutePath(files);
  if (!from || !to || !to->starts_with(*from + "/")) return std::nullopt;
  return to->substr(from->size() + 1);
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
  return tree;
}

std::optional<TensorPlaces> FindTensors(const std::string& golden, const std::string& target,
                                        std::span<const load::RankDirectory> ranks,
                                        const load::RankDirectory& golden_rank) {
  const auto of_golden = FilesBelow(golden, golden_rank.path);
  const auto top = AbsolutePath(golden), target_top = AbsolutePath(target);
  if (!of_golden || !top || !target_top) return std::nullopt;
  TensorPlaces places{*top, *target_top, *of_golden, {}};
  for (const load::RankDirectory& rank : ranks) {
    auto own = FilesBelow(target, rank.path);
    if (!own) return std::nullopt;
    places.ranks.push_back(std::move(*own));
  }
  return places;
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

std::string Shortened(const std::vector<std::string>& names) {
  constexpr size_t kNamed = 3;
  const size_t shown = std::min(names.size(), kNamed);
  std::string text = fmt::format("{}", fmt::join(std::span(names).first(shown), ", "));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace plumbline::view
