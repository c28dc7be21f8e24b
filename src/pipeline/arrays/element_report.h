// Two .npy files element by element: what `parse cn` prints.

#ifndef PLUMBLINE_PIPELINE_ARRAYS_ELEMENT_REPORT_H_
#define PLUMBLINE_PIPELINE_ARRAYS_ELEMENT_REPORT_H_

#include <cstddef>
#include <string>

#include "plumbline/result.h"

namespace plumbline {

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

#endif  // PLUMBLINE_PIPELINE_ARRAYS_ELEMENT_REPORT_H_
