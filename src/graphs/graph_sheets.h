// Tables of a static graph's dump: sheets, samples, the kernels to dump, the index.

#ifndef PLUMBLINE_GRAPHS_GRAPH_SHEETS_H_
#define PLUMBLINE_GRAPHS_GRAPH_SHEETS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::graphs {

// The first elements of large tensors in place of all of them, as MindSpore's sample_mode keeps
// them on Ascend.

// Replaces every .npy file of more than `sample_num` elements by one of shape [sample_num] with the
// first elements in row-major order. The shapes that tensors had stand in sample.json beside them,
// which is written before the first file is replaced: a killed process leaves no sample that looks
// like a whole tensor, and can be run again. Files that cannot be read stay. Returns the number of
// files that were replaced. kCorrupt for a damaged sample.json; kIo.
Result<uint64_t> SampleTensors(const std::string& directory, const std::vector<std::string>& files,
                               uint64_t sample_num);

// The compiled graphs of a dump as a workbook.

// Writes `directory`/dump_{yyyymmdd}_{hhmmss}.xlsx, as mindinsight's DumpParser does, and returns
// its path: sheets info, constant, parameter, operator, statistics and source of the graphs in
// rank_{r}/graphs/*.pb below `root`, by rank and number of the graph. What is unknown is "-".
// kNotFound without ranks or `root`; kCorrupt for damaged graphs; kIo.
Result<std::string> WriteGraphSheets(const std::string& root, const std::string& directory);

// How many kernels of an earlier dump each entry of a dump configuration selects.

struct EntrySelection {
  std::string text;     // the entry
  size_t kernels = 0;   // that it matches, also where an earlier entry does
  std::string first;    // the first of them
  std::string nearest;  // where it matches none: a kernel of the same scope and type, whose number
                        // alone differs; empty: none
};

struct KernelSelection {
  size_t graphs = 0, kernels = 0;  // of the dump; names that occur in several graphs count once
  size_t selected = 0;             // by any entry
  std::vector<EntrySelection> entries;
};

// `kernels` as in a dump configuration. Names come from the tables of execution order below `tree`.
// kNotFound without any; errors of KernelEntries::Parse() and ReadExecutionOrders().
Result<KernelSelection> SelectKernels(const std::vector<std::string>& kernels,
                                      const std::string& tree);

// The index of a static-graph dump as a table for other programs.

struct WrittenIndex {
  uint64_t rows = 0;
  uint64_t unreadable = 0;  // files without dtype and shape
  uint64_t left_out = 0;    // GraphIndex::left_out()
};

// Writes one CSV row per tensor below `root`: Rank, Graph, Step, Kernel, Op Type, IO, Slot, Data
// Type, Shape, Path. Step is empty for constants, Graph where the dump has no such level. Opens
// every file for type and shape. Errors of GraphIndex::Read(); kIo.
Result<WrittenIndex> WriteGraphIndex(const std::string& root, const std::string& path);

}  // namespace plumbline::graphs

#endif  // PLUMBLINE_GRAPHS_GRAPH_SHEETS_H_
