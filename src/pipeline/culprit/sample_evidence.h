// Evidence for the report: samples of the two tensors that show the first wrong call.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_SAMPLE_EVIDENCE_H_
#define PLUMBLINE_PIPELINE_CULPRIT_SAMPLE_EVIDENCE_H_

#include <optional>

#include "plumbline/compare.h"
#include "plumbline/tensor.h"
#include "report/evidence.h"

namespace plumbline::pipeline {

// Reads the tensor files of the row named by `first_wrong_call`, beside the compared dump.json.
// Nothing where no call is wrong, where the dumps hold no tensors, or where a file has gone or does
// not fit any more: a report is then written without plots.
std::optional<report::Evidence> SampleEvidence(const Comparison& comparison);

// The same for two tensors of equal element count; nothing when they are empty, complex, or of
// different counts. Big tensors are read at evenly spaced elements.
std::optional<report::Evidence> SampleTensors(const TensorView& target, const TensorView& golden);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_SAMPLE_EVIDENCE_H_
