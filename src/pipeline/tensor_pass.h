// The tensor files of a comparison, read and measured.

#ifndef PLUMBLINE_PIPELINE_TENSOR_PASS_H_
#define PLUMBLINE_PIPELINE_TENSOR_PASS_H_

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Fills the metrics of every row with files on both sides; a file that cannot be read marks its row
// and is counted. Where both files hold NaN or infinities at the same places and dump.json says
// that there are none, the statistics become those of the files, and a warning names the first.
void MeasureFiles(const Run& target, const Run& golden, const CompareOptions& options,
                  Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_TENSOR_PASS_H_
