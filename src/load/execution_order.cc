#include "load/execution_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/text_parts.h"

namespace plumbline::load {
namespace {

constexpr std::string_view kDirectory = "execution_order";
constexpr std::string_view kOrderName = "ms_execution_order_graph_";
constexpr std::string_view kHistoryName = "ms_global_execution_order_graph_";
constexpr std::string_view kEnding = ".csv";
constexpr std::string_view kHeader = "NodeExecutionOrder-FullNameWithScope";
constexpr std::string_view kRank = "rank_";

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines = SplitAt(text, '\n');
  for (std::string_view& line : lines) {
    if (line.ends_with('\r')) line.remove_suffix(1);
  }
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

Result<std::vector<std::string>> ReadKernels(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  const std::vector<std::string_view> lines = LinesOf(text);
  if (lines.empty() || lines.front() != kHeader) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: line 1: no header (expected {})", path, kHeader));
  }
  return std::vector<std::string>(lines.begin() + 1, lines.end());
}

Result<std::vector<int64_t>> ReadHistory(const std::string& path) {
  std::vector<int64_t> history;
  if (KindOf(path) != PathKind::kFile) return history;
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  const std::vector<std::string_view> lines = LinesOf(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::optional<int64_t> number = ParseNatural(SplitAt(lines[i], ',').front());
    if (!number) {
      return Error(
          ErrorCode::kCorrupt,
          fmt::format("{}: line {}: is \"{}\" (expected an iteration)", path, i + 1, lines[i]));
    }
    history.push_back(*number);
  }
  return history;
}

Status ReadRank(const std::string& directory, int64_t rank, std::vector<ExecutionOrder>& out) {
  const std::string place = JoinPath(directory, kDirectory);
  if (KindOf(place) != PathKind::kDirectory) return {};
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(place));
  for (const std::string& name : names) {
    if (!name.ends_with(kEnding)) continue;
    const std::string_view stem = std::string_view(name).substr(0, name.size() - kEnding.size());
    const std::optional<int64_t> graph = NaturalAfter(kOrderName, stem);
    if (!graph) continue;
    ExecutionOrder order{JoinPath(place, name), rank, *graph, {}, {}};
    PL_TRY_ASSIGN(order.kernels, ReadKernels(order.path));
    const std::string history = fmt::format("{}{}{}", kHistoryName, *graph, kEnding);
    PL_TRY_ASSIGN(order.history, ReadHistory(JoinPath(place, history)));
    out.push_back(std::move(order));
  }
  return {};
}

// Reads the ranks directly below a directory; false when there is none.
Result<bool> ReadRanksBelow(const std::string& directory, std::vector<ExecutionOrder>& out) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
  bool found = false;
  for (const std::string& name : names) {
    const std::optional<int64_t> rank = NaturalAfter(kRank, name);
    if (!rank) continue;
    found = true;
    PL_TRY(ReadRank(JoinPath(directory, name), *rank, out));
  }
  return found;
}

}  // namespace

Result<std::vector<ExecutionOrder>> ReadExecutionOrders(const std::string& root) {
  std::vector<ExecutionOrder> out;
  PL_TRY_ASSIGN(const std::string absolute, AbsolutePath(root));
  if (const auto rank = NaturalAfter(kRank, BaseName(absolute))) {
    PL_TRY(ReadRank(absolute, *rank, out));
  } else {
    PL_TRY_ASSIGN(const bool has_ranks, ReadRanksBelow(absolute, out));
    if (!has_ranks) {
      PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(absolute));
      for (const std::string& name : names) {
        const std::string child = JoinPath(absolute, name);
        if (KindOf(child) == PathKind::kDirectory) PL_TRY(ReadRanksBelow(child, out));
      }
    }
  }
  std::ranges::sort(out, [](const ExecutionOrder& a, const ExecutionOrder& b) {
    return std::tie(a.rank, a.graph, a.path) < std::tie(b.rank, b.graph, b.path);
  });
  return out;
}

}  // namespace plumbline::load
