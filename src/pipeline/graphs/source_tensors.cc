#include "pipeline/graphs/source_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text_parts.h"
#include "formats/graph_pb.h"
#include "load/compiled_graphs.h"
#include "load/graph_index.h"

namespace plumbline::pipeline {
namespace {

class Trace {
 public:
  static Result<Trace> Of(const SourceQuery& query) {
    Trace trace;
    trace.text_ = LowerCase(query.text);
    if (!query.is_regex) return trace;
    // The standard library reports a bad expression by an exception; it ends here.
    try {
      trace.expression_.emplace(query.text, std::regex::ECMAScript | std::regex::icase);
    } catch (const std::regex_error&) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("\"{}\": is no regular expression", query.text));
    }
    return trace;
  }

  [[nodiscard]] bool Matches(const std::string& source) const {
    if (!expression_) return LowerCase(source).find(text_) != std::string::npos;
    // The standard library's search recurses once per character.
    constexpr size_t kLongestLine = 4096;
    return std::ranges::any_of(SplitAt(source, '\n'), [&](std::string_view line) {
      return line.size() <= kLongestLine &&
             std::regex_search(line.begin(), line.end(), *expression_);
    });
  }

 private:
  std::string text_;
  std::optional<std::regex> expression_;
};

bool Wanted(const std::optional<std::vector<int64_t>>& numbers, int64_t number) {
  return !numbers || std::ranges::count(*numbers, number) > 0;
}

// Places of kernels in their graphs, by rank and name.
using Places = std::map<std::pair<int64_t, std::string>, size_t>;

}  // namespace

Result<std::vector<SourceTensor>> FindSourceTensors(const std::string& root,
                                                    const SourceQuery& query) {
  PL_TRY_ASSIGN(const Trace trace, Trace::Of(query));
  PL_TRY_ASSIGN(const std::vector<load::CompiledGraph> files, load::ListCompiledGraphs(root));
  Places places;
  for (const load::CompiledGraph& file : files) {
    if (!Wanted(query.ranks, file.rank)) continue;
    PL_TRY_ASSIGN(const graph_pb::Graph graph, graph_pb::Read(file.path));
    for (const graph_pb::Node& node : graph.nodes) {
      const bool is_kernel = !node.full_name.empty() && trace.Matches(node.source);
      if (is_kernel) places.try_emplace({file.rank, node.full_name}, places.size());
    }
  }
  std::vector<SourceTensor> found;
  if (places.empty()) return found;
  PL_TRY_ASSIGN(const load::GraphIndex index, load::GraphIndex::Read(root, false));
  std::vector<std::pair<std::tuple<size_t, int64_t, bool, int64_t>, const load::IndexedTensor*>>
      order;
  for (const load::IndexedTensor& tensor : index.tensors()) {
    const load::GraphDirectory& place = index.DirectoryOf(tensor);
    const auto at = places.find({place.rank, std::string(tensor.kernel)});
    if (at == places.end() || !Wanted(query.steps, place.step)) continue;
    order.push_back({{at->second, place.step, tensor.is_output, tensor.slot}, &tensor});
  }
  std::ranges::stable_sort(order, {}, [](const auto& each) { return each.first; });
  for (const auto& [key, tensor] : order) {
    const load::GraphDirectory& place = index.DirectoryOf(*tensor);
    found.push_back({std::string(tensor->kernel), place.rank, place.step, tensor->is_output,
                     index.PathOf(*tensor)});
  }
  return found;
}

}  // namespace plumbline::pipeline
