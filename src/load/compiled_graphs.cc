#include "load/compiled_graphs.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>

#include "base/file.h"
#include "base/text_parts.h"

namespace plumbline::load {
namespace {

constexpr std::string_view kRank = "rank_";
constexpr std::string_view kGraphs = "graphs";
constexpr std::string_view kGraphName = "ms_output_trace_code_graph_";
constexpr std::string_view kEnding = ".pb";

}  // namespace

Result<std::vector<CompiledGraph>> ListCompiledGraphs(const std::string& root) {
  std::vector<CompiledGraph> files;
  PL_TRY_ASSIGN(const std::vector<std::string> ranks, ListDirectory(root));
  for (const std::string& rank_name : ranks) {
    const std::optional<int64_t> rank = NaturalAfter(kRank, rank_name);
    const std::string directory = JoinPath(JoinPath(root, rank_name), kGraphs);
    if (!rank || KindOf(directory) != PathKind::kDirectory) continue;
    PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
    for (const std::string& name : names) {
      if (!name.ends_with(kEnding)) continue;
      const std::string_view stem = std::string_view(name).substr(0, name.size() - kEnding.size());
      const std::optional<int64_t> graph = NaturalAfter(kGraphName, stem);
      if (graph) files.push_back({*rank, *graph, JoinPath(directory, name)});
    }
  }
  std::ranges::sort(files, [](const CompiledGraph& a, const CompiledGraph& b) {
    return std::tie(a.rank, a.graph) < std::tie(b.rank, b.graph);
  });
  return files;
}

}  // namespace plumbline::load
