// Runs that see parts of one batch: micro steps and ranks whose values are parts of golden's.

#ifndef PLUMBLINE_VERDICT_BATCH_PARTS_H_
#define PLUMBLINE_VERDICT_BATCH_PARTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/compare.h"
#include "verdict/choose_culprit.h"
#include "verdict/other_batch.h"

namespace plumbline::verdict {

// The data that two runs read, where they cut it into other parts.

// A tensor that one side reads or cuts off, and the call (an index into Comparison::calls).
struct DataPart {
  uint32_t call = 0;
  const Item* item = nullptr;
};

// The same data on both sides, in the order in which they are read.
struct DataParts {
  std::vector<DataPart> target, golden;
};

// What parts of one thing share: the API, the argument, the type, and the shape but for the first
// dimension. Of calls that move values only all results are parts of one thing. Requires: `item`
// has a dimension.
std::string PlaceOf(std::string_view call_name, const Item& item);

// Whether the parts of one side, laid one behind the other along the first dimension, may be those
// of the other side: as many elements, and maximum, minimum, sum and norm are the same.
bool HoldTheSame(std::span<const DataPart> target, std::span<const DataPart> golden);

// Maximum, minimum, mean and norm of the parts laid one behind the other; nothing where one of them
// has no finite statistics or they are no parts of one thing (other trailing dimensions).
std::optional<std::array<Recorded, 4>> StatisticsTogether(std::span<const DataPart> parts);

// All data that forward calls of both sides take from outside the recording, directly or through
// calls that move values only, in parts of other sizes. Empty where there are none.
std::vector<DataParts> FindDataParts(const Comparison& comparison);

// The same call in every part of a batch, where two runs cut it otherwise.

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

// What the parts of a batch come to together, where two runs cut it otherwise.

// The first call whose results, those of all parts laid one behind the other, are further from
// golden's than `most` relative to them, as far as maximum, minimum, mean and norm tell. Single
// numbers must add up or average to golden's. Of the parts the first is named. `weight`, what
// FindPartWeight() found, where nothing before it differs.
std::optional<CulpritEvent> FindPartTotal(const Comparison& comparison,
                                          std::span<const Twins> twins, double most,
                                          const std::optional<CulpritEvent>& weight);

// Whether a call beside the parts reads a tensor that none of them reads or returns, as an
// optimizer reads the gradients of all parts added up. Without one their sum is not compared.
bool IsSumRead(const Comparison& comparison);

// How much the loss of each part of a batch counts, where two runs cut it otherwise.

// A part whose loss counts for more or less than in golden: the gradients that enter the losses are
// neither equal in all parts and golden (sums over samples) nor add up to golden's (means). They
// are single numbers that rounding elsewhere does not touch. The call named is the one that weights
// the loss of such a part. `is_wrong`: the gradients of all parts are known to add up to something
// else; then losses that average to golden's are means and may not all count as much as golden's.
std::optional<CulpritEvent> FindPartWeight(const Comparison& comparison, const OtherBatch& batch,
                                           std::span<const Twins> twins, bool is_wrong);

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_BATCH_PARTS_H_
