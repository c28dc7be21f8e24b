// A training against an inference with the same weights (docs/reference/compare-training.md).

#ifndef PLUMBLINE_PIPELINE_COMPARE_TRAINING_H_
#define PLUMBLINE_PIPELINE_COMPARE_TRAINING_H_

#include <string>

#include "match/training_match.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// The rules of `backend`, "fsdp" or "megatron", behind those of the file `module_map` (empty:
// none). kInvalidArgument; errors of match::ReadCellMapping().
Result<match::TrainingRules> TrainingRulesOf(const std::string& backend,
                                             const std::string& module_map);

// As CompareRuns(): `target` is the training, `golden` the inference. kInvalidArgument when the two
// have no module in common, or a mapping file of `options` is named.
Result<Comparison> CompareTraining(const std::string& target, const std::string& golden,
                                   const match::TrainingRules& rules,
                                   const CompareOptions& options);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_COMPARE_TRAINING_H_
