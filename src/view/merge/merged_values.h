// The tensors of a call, those of other ranks at the same places, and one tensor's statistics from
// several.

#ifndef PLUMBLINE_VIEW_MERGE_MERGED_VALUES_H_
#define PLUMBLINE_VIEW_MERGE_MERGED_VALUES_H_

#include <span>
#include <string>
#include <vector>

#include "plumbline/record.h"
#include "view/merge/rank_tree.h"

namespace plumbline::view {

// One value of a call, at its place: "input.0", "input.dim", "parameters.weight", "output.0"; of
// parameter gradients the parameter's name. Valid while the members of the part stay.
struct PlacedValue {
  std::string place;
  bool is_output = false;
  TensorRecord* tensor = nullptr;  // null: no tensor
};

// All values of a call, its inputs before its parameters before its outputs, as viewers list them.
std::vector<PlacedValue> PlacedValuesOf(Part& part);

// Whether statistics of this tensor can be merged: whole numbers of 8, 32 and 64 bits and floating
// point, in PyTorch's and MindSpore's spelling.
bool IsMergeable(const TensorRecord& tensor);

// Mean and norm that differ by less than this share of the first one are one value: the ranks need
// not compute deterministically. Zero: less than this itself.
inline constexpr double kSameStatistic = 1e-6;

enum class Sameness : uint8_t {
  kNearly,  // means and norms may differ by kSameStatistic; NaN is NaN, Inf is Inf
  kExact,
};
// Whether Max, Min, Mean and Norm agree. One that is missing on a side counts as agreeing.
bool AgreeIn(const TensorRecord& a, const TensorRecord& b, Sameness sameness);
// Whether one of the statistics is NaN.
bool HasNaN(const TensorRecord& tensor);

// The tensors of one place, of the first rank and then of the others.
struct TensorsAt {
  std::string place;
  std::vector<TensorRecord*> tensors;
};
struct DifferingTensors {
  std::vector<TensorsAt> inputs, outputs;
  [[nodiscard]] bool any() const { return !inputs.empty() || !outputs.empty(); }
};

enum class Which : uint8_t { kDiffering, kAll };
// The mergeable tensors of `first` that differ from those of a call in `others` at the same place.
// A place that another call lacks ends the comparison there.
DifferingTensors TensorsThat(Which which, Part& first, std::span<Part* const> others);

// Merges the statistics of parts of one tensor into the first record: Max and Min, the mean of the
// means, the root of the sum of squared norms; NaN of any rank stays. A statistic that a rank lacks
// is dropped. Returns a line for each with the formula and its result. Of one record: nothing.
std::vector<std::string> MergeTensors(const TensorsAt& parts);

// Drops what no merged tensor has: the digest and the file.
void ForgetContents(TensorRecord& tensor);
// The same, and all statistics become those of another tensor.
void TakeStatistics(const TensorRecord& from, TensorRecord& tensor);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_MERGE_MERGED_VALUES_H_
