// Saved arrays compared: values of single elements, and trees of files as upstream's
// SingleComparator reports on them (docs/reference/checkpoints.md).

#ifndef PLUMBLINE_ARRAYS_COMPARE_ARRAYS_H_
#define PLUMBLINE_ARRAYS_COMPARE_ARRAYS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline {

// Single elements of a contiguous array, for people to read.

// Value of element `i` in row-major order; exact for every real type of NumPy, 64-bit integers
// included. The modulus of a complex one. Requires: `view` is contiguous and holds it.
long double ElementValue(const TensorView& view, size_t i);
// How far element `i` of the one is from that of the other, complex ones in the plane; 0 for equal
// values, infinities too. Requires: as above, of both.
long double ElementDistance(const TensorView& one, const TensorView& other, size_t i);
// As NumPy prints it: "True", "-3", "0.1", "nan", "(1.5-2j)".
std::string ElementText(const TensorView& view, size_t i);

// Trees of saved arrays in the layout of upstream's SingleComparator, one workbook per tag.

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

#endif  // PLUMBLINE_ARRAYS_COMPARE_ARRAYS_H_
