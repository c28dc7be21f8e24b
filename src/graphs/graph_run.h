// The dump of one process's static graphs, from config.json to the last statistic.

#ifndef PLUMBLINE_GRAPHS_GRAPH_RUN_H_
#define PLUMBLINE_GRAPHS_GRAPH_RUN_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/graph_dump/dump_plan.h"
#include "graphs/finish_dump.h"

namespace plumbline::graphs {

// Where graphs run, as MindSpore's Python layer spells it.
struct GraphPlace {
  std::string mode;     // "graph_kbyk", "graph_ge", "pynative"
  std::string device;   // "CPU", "GPU", "Ascend"
  std::string version;  // "2.10.0"
};

// What stops a dump after the constructor is a sentence in problems(): the training goes on.
// Single-threaded; nothing happens in a process forked from the one that made it.
class GraphRun {
 public:
  // Errors of PlanDump(). The rank is that of the environment (RANK_ID).
  static Result<GraphRun> Plan(const std::optional<std::string>& config_path,
                               const ConfigOverrides& overrides, const GraphPlace& place);
  GraphRun(GraphRun&&) = default;
  GraphRun& operator=(GraphRun&&) = default;
  ~GraphRun();

  // Also selects the kernels whose full name begins so, behind any scope around it; with an empty
  // `list` in config.json these alone. "fc1-Dense/" is that cell with its gradients.
  void SelectScopes(const std::vector<std::string>& scopes);
  // Numbers the first iteration. Returns whether it was in time, before Start().
  bool SetFirstIteration(int64_t number);
  // Writes the configuration, and returns what the environment must hold before MindSpore compiles
  // a graph: nothing after the first time, in ranks that are not selected, or when it cannot be
  // written.
  graph_dump::DumpEnvironment Start();
  void Step();   // begins a pass over what is complete, in the background
  void Close();  // makes the statistics that are left
  [[nodiscard]] std::string tree() const { return TreeOfRank(plan_, rank_); }
  // Since the last time.
  std::vector<std::string> TakeProblems() { return std::move(problems_); }

 private:
  GraphRun(graph_dump::DumpPlan plan, GraphPlace place, std::optional<int64_t> rank);
  [[nodiscard]] bool is_own() const;         // not forked
  Result<std::string> WriteConfiguration();  // its path

  graph_dump::DumpPlan plan_;
  GraphPlace place_;
  std::optional<int64_t> rank_;
  pid_t pid_;
  bool is_started_ = false;
  std::unique_ptr<BackgroundFinisher> finisher_;
  std::vector<std::string> problems_;
};

}  // namespace plumbline::graphs

#endif  // PLUMBLINE_GRAPHS_GRAPH_RUN_H_
