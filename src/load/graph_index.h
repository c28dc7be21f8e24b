// Every tensor of a static-graph dump, whichever release wrote it, and the order in which its
// kernels ran.

#ifndef PLUMBLINE_LOAD_GRAPH_INDEX_H_
#define PLUMBLINE_LOAD_GRAPH_INDEX_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "load/graph_dump.h"
#include "load/statistic_table.h"
#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::load {

// What a directory holds of its kernels: their tensors, or statistics.
struct GraphContent {
  bool has_tensors =
      false;            // the .npy files are what was dumped, and rows of the table do not count
  uint64_t files = 0;   // .npy files
  std::string problem;  // what is left out, or why, in a sentence; empty: nothing
};

// Decides it for `directory`, whose entries are `names`, and reads its statistic.csv once: each row
// is visited, also those of a table that then does not count. Where most tensor files were dropped
// for the table beside them, the table holds more and is taken; a damaged one beside files is not.
// kCorrupt: a damaged table alone.
Result<GraphContent> ReadGraphContent(const std::string& directory,
                                      const std::vector<std::string>& names,
                                      const std::function<void(StatisticRow row)>& visit);

// One tensor, under the names that all releases share.
struct IndexedTensor {
  size_t directory = 0;  // number in GraphIndex
  // The full scoped name, "Default/net/Conv2D-op1", where a table of execution order tells it from
  // the name in the dump; otherwise that name.
  std::string_view kernel;
  std::string_view op_type;
  bool is_output = false;
  int64_t slot = 0;
  int64_t timestamp = 0;
  std::string_view dtype;      // "float32"; empty: only the file's header has it
  std::optional<Shape> shape;  // of tables, and of headers that were read
  std::string_view file;       // "....npy" or "statistic.csv"
};

// Names are views into the index; it is movable and keeps them valid. Thread-safe for reading.
class GraphIndex {
 public:
  // Everything at or below `root`: of each directory the files or the table (GraphContent). With
  // `reads_headers` every file is opened for its dtype and shape; one that cannot be read has the
  // dtype kUnreadableDType. kInvalidArgument when nothing is a dump; kCorrupt for damaged tables.
  static Result<GraphIndex> Read(const std::string& root, bool reads_headers);

  // By rank, step, directory, time and slot; constants, which belong to every step, come last.
  [[nodiscard]] std::span<const IndexedTensor> tensors() const { return tensors_; }
  [[nodiscard]] const GraphDirectory& DirectoryOf(const IndexedTensor& tensor) const {
    return directories_[tensor.directory].place;
  }
  [[nodiscard]] std::string PathOf(const IndexedTensor& tensor) const;
  // Files with other names, and those beside a table that holds more.
  [[nodiscard]] uint64_t left_out() const { return left_out_; }

  static constexpr int64_t kEveryStep = -1;  // step of constants

 private:
  struct Directory {
    GraphDirectory place;
    std::vector<std::string> names;  // of files; storage of views
    // What mapping.csv says for each; empty: there is none. The same.
    std::vector<std::string> full_names;
  };

  void AddConstants();
  Status AddDirectory(size_t number, bool reads_headers);
  Status AddFiles(size_t number, bool reads_headers);
  void SortFrom(size_t first);  // the tensors from that one on, by time
  void ResolveKernels(const std::string& root);

  std::deque<Directory> directories_;
  std::deque<std::string> texts_;  // storage of other views
  std::vector<IndexedTensor> tensors_;
  uint64_t left_out_ = 0;
};

// Which kernels a static graph runs in which order, and when it ran: the tables that MindSpore
// writes beside the tensors of a dump.

struct ExecutionOrder {
  std::string path;  // of ms_execution_order_graph_{graph}.csv
  int64_t rank = 0, graph = 0;
  std::vector<std::string> kernels;  // full scoped names, "Default/net/Conv2D-op1"
  std::vector<int64_t> history;      // iterations in which the graph ran; empty without that table
};

// All graphs of all ranks below `root`, which is a rank's directory, one of ranks, or one of steps
// with ranks; by rank and graph. Empty when there are none. kCorrupt for a table of another form,
// with its line.
Result<std::vector<ExecutionOrder>> ReadExecutionOrders(const std::string& root);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_GRAPH_INDEX_H_
