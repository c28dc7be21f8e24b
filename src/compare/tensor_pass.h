// The pass over the tensors of a comparison, and the noise that a third run measures.

#ifndef PLUMBLINE_COMPARE_TENSOR_PASS_H_
#define PLUMBLINE_COMPARE_TENSOR_PASS_H_

#include <string>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::compare {

// The tensor files of a comparison, read and measured.

// Fills the metrics of every row with files on both sides; a file that cannot be read marks its row
// and is counted. Where both files hold NaN or infinities at the same places and dump.json says
// that there are none, the statistics become those of the files, and a warning names the first.
void MeasureFiles(const Run& target, const Run& golden, const CompareOptions& options,
                  Comparison& comparison);

// The error that correct code makes, measured on a third run (`plumb compare --noise RUN`).

// Compares the run at options.noise_path, which is known to be right, with the golden one and
// returns for every row of `comparison` the relative error that this explains: the measured error
// of the golden item of that name times a margin. 0 where nothing was measured, where it is not
// finite, or where the accepted run is so far off that it proves nothing; a warning counts these.
// Errors: those of CompareRuns().
Result<std::vector<double>> MeasureNoise(const std::string& golden_path,
                                         const CompareOptions& options, Comparison& comparison);

}  // namespace plumbline::compare

#endif  // PLUMBLINE_COMPARE_TENSOR_PASS_H_
