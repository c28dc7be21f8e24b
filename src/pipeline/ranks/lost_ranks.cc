#include "pipeline/ranks/lost_ranks.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/text_parts.h"

namespace plumbline::pipeline {
namespace {

constexpr std::string_view kPrefix = "compare_ranks_", kExtension = ".json";

// Orders summaries in time: the stamp, then the number of a repetition within its second.
std::optional<std::pair<int64_t, int64_t>> TimeOf(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kExtension)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kExtension.size());
  const size_t mark = name.find('_');
  const auto stamp = ParseNatural(name.substr(0, mark));
  if (!stamp) return std::nullopt;
  if (mark == std::string_view::npos) return std::pair<int64_t, int64_t>(*stamp, 0);
  const auto repeat = ParseNatural(name.substr(mark + 1));
  if (!repeat) return std::nullopt;
  return std::pair<int64_t, int64_t>(*stamp, *repeat);
}

std::optional<std::string> NewestSummary(const std::string& directory) {
  const auto names = ListDirectory(directory);
  if (!names) return std::nullopt;
  std::optional<std::pair<int64_t, int64_t>> newest;
  std::string path;
  for (const std::string& name : *names) {
    const auto time = TimeOf(name);
    if (!time || (newest && *time < *newest)) continue;
    newest = time;
    path = JoinPath(directory, name);
  }
  if (!newest) return std::nullopt;
  return path;
}

// State of each rank of one step (of all without a number, where `step` is none).
struct RankLine {
  int64_t rank = 0;
  std::string_view state;
};

std::optional<std::vector<RankLine>> ReadLines(const simdjson::dom::element& root,
                                               std::optional<int64_t> step) {
  simdjson::dom::array ranks;
  if (root["ranks"].get(ranks) != simdjson::SUCCESS) return std::nullopt;
  std::vector<RankLine> lines;
  for (const simdjson::dom::element entry : ranks) {
    RankLine line;
    if (entry["state"].get(line.state) != simdjson::SUCCESS) return std::nullopt;
    int64_t number = 0;
    const bool has_step = entry["step"].get(number) == simdjson::SUCCESS;
    if (step && (!has_step || number != *step)) continue;
    if (entry["rank"].get(line.rank) != simdjson::SUCCESS) continue;  // a run of one process
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

LostRanks FindLostRanks(const std::string& directory, const std::vector<RankTable>& tables) {
  std::optional<int64_t> step;
  std::optional<std::string> path = NewestSummary(directory);
  if (!path) {
    const Result<std::string> real = RealPath(directory);
    if (real) step = NaturalAfter("step", BaseName(*real));
    if (!step) return {};
    path = NewestSummary(std::string(DirectoryOf(*real)));
    if (!path) return {};
  }
  const Result<std::string> text = ReadFile(*path);
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  std::optional<std::vector<RankLine>> lines;
  if (text && parser.parse(*text).get(root) == simdjson::SUCCESS) lines = ReadLines(root, step);
  if (!lines) {
    return {{fmt::format("{}: cannot be read, so whether a table is of an earlier comparison is "
                         "not known",
                         *path)},
            {}};
  }
  LostRanks lost;
  for (const RankLine& line : *lines) {
    if (line.state != "failed" && line.state != "missing") continue;
    const auto table = std::ranges::find(tables, line.rank, &RankTable::rank);
    if (table == tables.end()) {
      lost.without_one.push_back(fmt::format("rank {}: {} in the newest comparison ({}); left out",
                                             line.rank, line.state, *path));
      continue;
    }
    lost.outdated.push_back(
        fmt::format("{}: of an earlier comparison; in the newest one rank {} is {} "
                    "({})",
                    table->files.front(), line.rank, line.state, *path));
  }
  return lost;
}

}  // namespace plumbline::pipeline
