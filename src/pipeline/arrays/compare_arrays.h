// Trees of saved arrays in the layout of upstream's SingleComparator, one workbook per tag
// (docs/reference/checkpoints.md).

#ifndef PLUMBLINE_PIPELINE_ARRAYS_COMPARE_ARRAYS_H_
#define PLUMBLINE_PIPELINE_ARRAYS_COMPARE_ARRAYS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

struct ArrayTreeReport {
  std::vector<std::string> files;  // workbooks written, one per tag
  uint64_t rows = 0;
  uint64_t differing = 0;          // rows with an unequal element, another shape or no result
  uint64_t unpaired = 0;           // arrays of one side only
  std::vector<std::string> notes;  // what could not be compared, one sentence each; at most 20
};

// Whether `path` holds data/<tag>/step<n>/rank<n>.
bool IsArrayTree(const std::string& path);

// Compares data/<tag>/step<n>/rank<n>[/micro_step<n>]/*_<id>.npy (or *.<id>.npy) of both
// directories and writes <tag>.xlsx for every tag of both into `output`. An array that cannot be
// read or measured is a row that says so. kNotFound: no array on both sides; kIo.
Result<ArrayTreeReport> CompareArrayTrees(const std::string& first, const std::string& second,
                                          const std::string& output, int threads);

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_ARRAYS_COMPARE_ARRAYS_H_
