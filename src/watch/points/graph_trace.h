// The compiled graphs beside a dump of static graphs: where kernels come from, what they read.

#ifndef PLUMBLINE_WATCH_POINTS_GRAPH_TRACE_H_
#define PLUMBLINE_WATCH_POINTS_GRAPH_TRACE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plumbline::watch {

struct TracedNode {
  int64_t rank = 0, graph = 0;
  std::string graph_name, root_graph;
  std::string name, op;             // full name with its scopes
  std::vector<std::string> stack;   // "File PATH, line N, in : CODE", innermost first
  std::vector<std::string> inputs;  // full names of nodes, names of parameters
};

// Immutable. Empty where there are no graphs.
class GraphTrace {
 public:
  // A graph that cannot be read is left out, with a sentence in notes().
  static GraphTrace Read(const std::string& root);

  [[nodiscard]] const std::vector<TracedNode>& nodes() const { return nodes_; }
  // By the full name, or that of a dump that has lost its slashes; null: there is none.
  [[nodiscard]] const TracedNode* Find(int64_t rank, std::string_view name) const;
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::vector<TracedNode> nodes_;
  std::map<std::pair<int64_t, std::string>, size_t> places_;
  std::vector<std::string> notes_;
};

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_POINTS_GRAPH_TRACE_H_
