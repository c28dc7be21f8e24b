// Lines of Python behind the nodes of a static graph, and tensors by line.

#ifndef PLUMBLINE_GRAPHS_SOURCE_LINES_H_
#define PLUMBLINE_GRAPHS_SOURCE_LINES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/text_hash.h"
#include "formats/acl/graph_pb.h"
#include "plumbline/result.h"

namespace plumbline::graphs {

// Which lines of the training script a kernel of a static graph comes from, by any of the names
// that dumps give it.

// How a name was found.
enum class NameMatch {
  kNone,
  kExact,      // the whole name of a kernel, "/" and "." as "_" or not
  kPart,       // the end of one, or one with something before or behind it
  kAmbiguous,  // of several kernels, or of one with several sources
};
std::string_view NameMatchName(NameMatch match);  // "exact"

// Thread-safe for reading; movable.
class SourceLines {
 public:
  struct Kernel {
    std::string full_name;
    std::string_view source;  // for graph_ir::SourceLines()
  };
  struct Found {
    NameMatch match = NameMatch::kNone;
    std::vector<const Kernel*> kernels;  // in the order of the graphs
  };

  // Adds the kernels of a graph: a protocol buffer where the name ends in .pb, otherwise a text. A
  // gradient has the source of the node it belongs to, where the text says it. Returns what to tell
  // the user, one sentence each. kNotFound, kIo; kCorrupt for other and damaged files.
  Result<std::vector<std::string>> AddFile(const std::string& path);

  // A name from a file or a table. Part: the longest that begins and ends where letters and digits
  // do; kernels outside of every scope ("0") only as a whole.
  [[nodiscard]] Found Find(std::string_view name) const;

  [[nodiscard]] size_t size() const { return kernels_.size(); }

 private:
  using Numbers = std::vector<size_t>;
  using Index = TextMap<Numbers>;

  void AddText(const graph_ir::Graph& graph);
  void Add(std::string_view full_name, std::string_view source);
  [[nodiscard]] Numbers LongestInside(std::string_view name) const;
  [[nodiscard]] Numbers EndingIn(std::string_view name) const;

  std::vector<std::unique_ptr<std::string>> texts_;  // storage of sources
  std::vector<Kernel> kernels_;
  Index by_name_;  // mangled full name
  Index by_end_;   // what stands behind the last slash, mangled
};

// Which tensors of a static-graph dump belong to a line of the training script.

struct SourceQuery {
  std::string text;       // part of the source trace, whatever its case
  bool is_regex = false;  // an ECMAScript expression to search lines for instead
  std::optional<std::vector<int64_t>> ranks, steps;  // nothing: all
};

struct SourceTensor {
  std::string kernel;  // full scoped name
  int64_t rank = 0, step = 0;
  bool is_output = false;
  std::string path;
};

// The tensors of every kernel in whose trace the query occurs, by rank, kernel in the order of its
// graph, step, direction and slot. Kernels without files are left out, constants belong to no step.
// The traces come from rank_{r}/graphs/ms_output_trace_code_graph_*.pb. kInvalidArgument for a bad
// expression; kNotFound for a missing directory; kCorrupt for damaged graphs and tables.
Result<std::vector<SourceTensor>> FindSourceTensors(const std::string& root,
                                                    const SourceQuery& query);

// The lines of the training script behind every tensor of a static-graph dump.

struct CodeMappingOptions {
  std::vector<std::string> graphs;  // files: texts of graphs, or protocol buffers (*.pb)
  std::string data;                 // an .npy file, a statistic.csv, or a directory of either
  std::string output = ".";         // where the table of .npy files goes
};

struct CodeMappingReport {
  std::vector<std::string> files;  // written
  // Tensors, or rows of tables: all, those with a kernel, and of these those with several.
  uint64_t tensors = 0, mapped = 0, ambiguous = 0;
  std::vector<std::string> notes;  // sentences for the user
};

// Writes, where there are .npy files at any depth, `output`/code_mapping_{yyyymmddhhmmss}.csv:
// File Path, Code Stack, Scope Name, Match, by path. Otherwise beside each statistic.csv a
// statistic_code_mapping.csv: its rows, and the last three of these columns. No input is changed.
// Match is NameMatchName(); tensors without kernel have a row with empty cells.
//
// Errors: kNotFound when a path does not exist or there are no tensors, kInvalidArgument when no
// graph names a kernel, kCorrupt for damaged graphs and tables, kIo.
Result<CodeMappingReport> MapCode(const CodeMappingOptions& options);

}  // namespace plumbline::graphs

#endif  // PLUMBLINE_GRAPHS_SOURCE_LINES_H_
