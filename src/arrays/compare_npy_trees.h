// Two trees of converted device dumps, {op}/{timestamp}/*.npy: what `parse vc` writes.

#ifndef PLUMBLINE_ARRAYS_COMPARE_NPY_TREES_H_
#define PLUMBLINE_ARRAYS_COMPARE_NPY_TREES_H_

#include <cstdint>
#include <string>

#include "plumbline/result.h"

namespace plumbline {

struct NpyTreeReport {
  std::string path;  // of the table
  uint64_t rows = 0;
  uint64_t differing = 0;  // rows with another verdict than same or within noise
};

// Whether every file below `directory`, at most five levels down, is a .npy file, and there is one.
bool IsNpyTree(const std::string& directory);

// Pairs operators by name, their timestamps by position, files by input or output and slot, and
// writes batch_compare_{unix time}.csv into `output`. What has no counterpart, another shape or
// type, or cannot be read is a row that says so. kInvalidArgument: one directory twice; kIo.
Result<NpyTreeReport> CompareNpyTrees(const std::string& target, const std::string& golden,
                                      const std::string& output);

}  // namespace plumbline

#endif  // PLUMBLINE_ARRAYS_COMPARE_NPY_TREES_H_
