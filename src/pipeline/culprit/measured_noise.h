// The error that correct code makes, measured on a third run (`plumb compare --noise RUN`).

#ifndef PLUMBLINE_PIPELINE_CULPRIT_MEASURED_NOISE_H_
#define PLUMBLINE_PIPELINE_CULPRIT_MEASURED_NOISE_H_

#include <string>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Compares the run at options.noise_path, which is known to be right, with the golden one and
// returns for every row of `comparison` the relative error that this explains: the measured error
// of the golden item of that name times a margin. 0 where nothing was measured, where it is not
// finite, or where the accepted run is so far off that it proves nothing; a warning counts these.
// Errors: those of CompareRuns().
Result<std::vector<double>> MeasureNoise(const std::string& golden_path,
                                         const CompareOptions& options, Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_MEASURED_NOISE_H_
