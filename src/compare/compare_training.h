// A training against an inference with the same weights (docs/reference/compare-training.md).

#ifndef PLUMBLINE_COMPARE_COMPARE_TRAINING_H_
#define PLUMBLINE_COMPARE_COMPARE_TRAINING_H_

#include <string>

#include "compare/compare_runs.h"
#include "match/training_match.h"
#include "plumbline/compare.h"

namespace plumbline::compare {

// The rules of `backend`, "fsdp" or "megatron", behind those of the file `module_map` (empty:
// none). kInvalidArgument; errors of match::ReadCellMapping().
Result<match::TrainingRules> TrainingRulesOf(const std::string& backend,
                                             const std::string& module_map);

// How CompareTraining() pairs, for one comparison; fails when the two have no module in common.
Pairing TrainingPairing(const match::TrainingRules& rules);

// kInvalidArgument when `options` say otherwise how calls are paired.
Status CheckTrainingOptions(const CompareOptions& options);

// As CompareRuns(): `target` is the training, `golden` the inference. kInvalidArgument when the two
// have no module in common; errors of CheckTrainingOptions().
Result<Comparison> CompareTraining(const std::string& target, const std::string& golden,
                                   const match::TrainingRules& rules,
                                   const CompareOptions& options);

}  // namespace plumbline::compare

#endif  // PLUMBLINE_COMPARE_COMPARE_TRAINING_H_
