// Dumps of MindSpore's static graphs: directories of one iteration each that hold the kernels'
// tensors as .npy files, or their statistics as statistic.csv (docs/formats/graph_dump.md).

#ifndef PLUMBLINE_LOAD_GRAPH_DUMP_H_
#define PLUMBLINE_LOAD_GRAPH_DUMP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/directory.h"
#include "plumbline/record.h"
#include "plumbline/result.h"

namespace plumbline::load {

// How directories of ranks of a static-graph dump begin.
inline constexpr std::string_view kRankDirectory = "rank_";

// One iteration of one rank: .../rank_{rank}/{net}/{graph}/{step} of kernel-by-kernel execution,
// .../{time}/{device}/{model}/{graph}/{step} of graphs that run on the device as a whole, or
// .../{time}/{device} of kernels that the device was given one by one. Devices count as ranks. A
// number in front of {time}, below the root that was listed, is the step.
struct GraphDirectory {
  std::string path;
  int64_t rank = 0, step = 0;
  std::optional<int64_t> graph = std::nullopt;
};

// The directories with kernel files at or at most 10 levels below `root`, by rank, step and path.
// Directories whose place does not say rank and step are left out. Empty when there are none, or
// `root` is no directory.
std::vector<GraphDirectory> ListGraphDirectories(const std::string& root);

// The same in the order in which they are found, with the sorted names in each.
void VisitGraphDirectories(
    const std::string& root,
    const std::function<void(GraphDirectory place, std::vector<std::string> names)>& visit);

// The same with the names as they are listed: next() gives some of them, in any order, and none
// behind the last one. What `visit` does not take is listed all the same. kIo: a list that breaks
// off.
using NextNames = std::function<Result<NameBlock>()>;
void VisitGraphNames(const std::string& root,
                     const std::function<void(GraphDirectory place, const NextNames& next)>& visit);

// Whether `path` holds a static-graph dump at one of the places of GraphDirectory.
bool IsGraphDump(const std::string& path);

// The directories of one rank and step as one path, where "*" stands for the parts in which they
// differ. Requires: not empty, of one rank and step.
std::string GraphPath(const std::vector<std::string>& directories);
// The directories that such a path, or the path of a root with one rank and step, stands for.
// kNotFound when there is none, kInvalidArgument when they are of several ranks or steps.
Result<std::vector<std::string>> ResolveGraphPath(const std::string& path);

// What a kernel file's name says.
struct KernelFile {
  std::string_view op_type, op_name;  // "MatMul", "Default_fc1-Dense_MatMul-op0"
  std::string_view task, stream;
  int64_t timestamp = 0;  // microseconds
  bool is_output = false;
  int64_t slot = 0;
  std::string_view dtype;  // as the name spells it; empty: it does not
};
// The parts of {op_type}.{op_name}.{task}.{stream}.{time}.{io}.{slot}.{format}[.{dtype}].npy, read
// from the right; nothing if the name is of another form.
std::optional<KernelFile> ParseKernelFile(std::string_view name);

struct GraphRecords {
  bool has_tensors = false;  // .npy files; otherwise statistics
  // In order of execution: {op_name}.{op_type}.{occurrence}.forward, values numbered by slot.
  // data_name of a value: the file, or in statistics {op_name}.{task}.{stream}.{io}.{slot}, with
  // the number of its directory in front (record/call_name.h).
  // Tensors whose file cannot be read have no shape and the dtype "unreadable".
  std::vector<Call> calls;
  std::vector<std::string> problems;  // what was left out, one sentence each; at most 20
};

// Statistics of tensors are left to the caller. kCorrupt when statistic.csv is damaged;
// kInvalidArgument when one directory holds tensors and another statistics; kNotFound when there is
// no kernel file.
Result<GraphRecords> ReadGraphDump(const std::vector<std::string>& directories);

// The same with the calls one by one, each made when it is its turn; `calls` stays empty. On an
// error none was visited.
using VisitGraphCall = std::function<void(Call call, bool has_tensors)>;
Result<GraphRecords> VisitGraphDump(const std::vector<std::string>& directories,
                                    const VisitGraphCall& visit);

// The file of a data_name of GraphRecords: its path, or that of the statistic.csv.
std::string GraphFile(const std::vector<std::string>& directories, std::string_view data_name,
                      bool has_tensors);

inline constexpr std::string_view kUnreadableDType = "unreadable";
// Beside tensors of which only the first elements were kept: the shapes that they had.
inline constexpr std::string_view kSampleJson = "sample.json";

// Where the compiled graphs of a dump lie.

struct CompiledGraph {
  int64_t rank = 0, graph = 0;
  std::string path;  // for formats/acl/graph_pb.h
};

// rank_{rank}/graphs/ms_output_trace_code_graph_{graph}.pb below `root`, by both numbers. kNotFound
// when `root` is no directory.
Result<std::vector<CompiledGraph>> ListCompiledGraphs(const std::string& root);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_GRAPH_DUMP_H_
