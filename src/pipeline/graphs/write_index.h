// The index of a static-graph dump as a table for other programs.

#ifndef PLUMBLINE_PIPELINE_GRAPHS_WRITE_INDEX_H_
#define PLUMBLINE_PIPELINE_GRAPHS_WRITE_INDEX_H_

#include <cstdint>
#include <string>

#include "plumbline/result.h"

namespace plumbline::pipeline {

struct WrittenIndex {
  uint64_t rows = 0;
  uint64_t unreadable = 0;  // files without dtype and shape
  uint64_t left_out = 0;    // GraphIndex::left_out()
};

// Writes one CSV row per tensor below `root`: Rank, Graph, Step, Kernel, Op Type, IO, Slot, Data
// Type, Shape, Path. Step is empty for constants, Graph where the dump has no such level. Opens
// every file for type and shape. Errors of GraphIndex::Read(); kIo.
Result<WrittenIndex> WriteGraphIndex(const std::string& root, const std::string& path);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_GRAPHS_WRITE_INDEX_H_
