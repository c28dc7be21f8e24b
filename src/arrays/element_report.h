// Single elements of arrays, printed and listed.

#ifndef PLUMBLINE_ARRAYS_ELEMENT_REPORT_H_
#define PLUMBLINE_ARRAYS_ELEMENT_REPORT_H_

#include <cstddef>
#include <string>

#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline {

// One .npy file for people to read: what `parse pt` prints.

// "[Shape: (2, 3)] [Dtype: float32] [Max: 5.0] [Min: 0.0] [Mean: 2.5]". NaN where an element is.
std::string ArrayFacts(const TensorView& view);

// Facts, paths, and the first 128 elements, eight a row. Writes all elements to {path}.txt unless
// that is there: a line per row of the last dimension, as "%g". kInvalidArgument: no elements;
// errors of npy::NpyFile::Open(), kIo.
Result<std::string> PrintArray(const std::string& path);

// {path}.txt, written unless it is there; returns its path.
Result<std::string> WriteArrayText(const std::string& path, const TensorView& view);

// Two .npy files element by element: what `parse cn` prints.

struct ElementReportOptions {
  double absolute = 0.001,
         relative = 0.001;   // an element is wrong above absolute + relative*|golden|
  size_t most_rows = 20;     // of each table
  bool writes_text = false;  // {path}.txt of both
};

struct ElementReport {
  std::string text;
  bool all_close = false;
};

// Tables of the first and of the first wrong elements, counts, cosine, and whether all are close.
// Elements are compared in their own types. NaN at one side only is wrong; at both sides it is not
// wrong, and not close. kInvalidArgument: different numbers of elements, none at all; errors of
// npy::NpyFile::Open(), kIo.
Result<ElementReport> CompareElements(const std::string& target, const std::string& golden,
                                      const ElementReportOptions& options);

}  // namespace plumbline

#endif  // PLUMBLINE_ARRAYS_ELEMENT_REPORT_H_
