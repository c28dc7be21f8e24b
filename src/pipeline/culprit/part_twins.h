// The same call in every part of a batch, where two runs cut it otherwise.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_PART_TWINS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_PART_TWINS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/culprit/data_parts.h"
#include "pipeline/culprit/other_batch.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// One call of the model, as the parts of one batch made it on each side: indices into
// Comparison::calls.
struct Twins {
  std::vector<uint32_t> target, golden;
};

// The calls that saw parts, grouped; in the order in which the target made them for its first part.
std::vector<Twins> FindTwins(const Comparison& comparison, const OtherBatch& batch);

// What the k-th row (`place`) with a tensor of one role holds in every one of `calls` of one side;
// empty where one of them has none.
std::vector<DataPart> PartsOf(const Comparison& comparison, std::span<const uint32_t> calls,
                              bool of_target, bool is_input, size_t place);

// The numbers that tensors of one element hold; empty where one of them is none, or not finite.
std::vector<double> SingleNumbers(std::span<const DataPart> parts);
double SumOf(std::span<const double> numbers);
double SumOfMagnitudes(std::span<const double> numbers);

// Whether the parts are laid along their first dimension: together as long as golden's.
bool AreLaid(std::span<const DataPart> target, std::span<const DataPart> golden);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_PART_TWINS_H_
