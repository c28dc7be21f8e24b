// Running means, which a normalisation in training writes into what it reads.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_RUNNING_MEAN_H_
#define PLUMBLINE_PIPELINE_CULPRIT_RUNNING_MEAN_H_

#include <optional>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// The relative error that a running mean which `row` reads may have: an earlier call of that
// function made it, on both sides, of the one that it read and of the mean of its input, whose
// errors it keeps by their share. Nothing where `row` is none, or its mean is not what such a call
// makes.
std::optional<double> ExplainedAsRunningMean(const Comparison& comparison, const ComparedRow& row);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_RUNNING_MEAN_H_
