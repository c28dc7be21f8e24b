// What a monitor says of one tensor: the statistics ("ops") of one pass over its memory.

#ifndef PLUMBLINE_WATCH_LIVE_TENSOR_VALUES_H_
#define PLUMBLINE_WATCH_LIVE_TENSOR_VALUES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/table/monitor_kinds.h"
#include "kernels/tensor_scan.h"
#include "plumbline/tensor.h"

namespace plumbline::watch {

// In the order of their names in kOpNames.
enum class Op : uint8_t {
  kNorm,
  kMin,
  kMax,
  kZeros,
  kNans,
  kId,
  kMean,
  kInfs,
  kDigest,   // of a sample, see watch/live/sample.h; no statistic that a configuration may name
  kEntropy,  // from here on of single layers, see watch/live/layer_features.h; likewise
  kSoftmaxMax,
  kStableRank,
  kKernelNorm,
  kRouterSimilarity,
  kTokenEntropy,
  kShape,
  kDType
};
inline constexpr std::array<std::string_view, 17> kOpNames = {"norm",
                                                              "min",
                                                              "max",
                                                              "zeros",
                                                              "nans",
                                                              "id",
                                                              "mean",
                                                              "infs",
                                                              "digest",
                                                              "entropy",
                                                              "softmax_max",
                                                              "sr",
                                                              "kernel_norm",
                                                              "router_weight_similarity",
                                                              "per_token_expert_entropy",
                                                              "shape",
                                                              "dtype"};
inline constexpr size_t kNumberOps = 15;  // those before kShape are numbers

constexpr std::string_view NameOf(Op op) { return kOpNames[static_cast<size_t>(op)]; }
// Of those that a configuration may name.
std::optional<Op> OpNamed(std::string_view name);
std::string NamesOfOps();
// The columns of a kind that has its own, in their order; empty for the others.
std::span<const Op> FeatureOps(MonitorKind kind);

// Numbers by op; NaN where the op says nothing of this tensor.
struct TensorValues {
  std::array<double, kNumberOps> numbers = {};
  std::optional<DType> dtype;  // nothing: there was no tensor, and all numbers are NaN
  Shape shape;

  [[nodiscard]] double of(Op op) const { return numbers[static_cast<size_t>(op)]; }
  double& of(Op op) { return numbers[static_cast<size_t>(op)]; }
};

// A value in the place of a tensor that is none.
TensorValues NoValues();
// Every op of a number, as of a tensor without dimensions.
TensorValues ValuesOfNumber(double number);

// From the sums of one pass, with ScanWants::below = the bound of zeros:
//   norm   sqrt(sum |x|^2); 0 without elements
//   mean   sum x / n
//   min, max   NaN where an element is
//   zeros  share of elements with |x| < bound, 0 to 1; NaN elements have not
//   nans, infs  counts
//   id     the value of a tensor without dimensions
// In double from the original dtype. NaN: all but norm, nans and infs without elements; min, max,
// mean and id of complex tensors; zeros of bool.
TensorValues ValuesOf(const TensorView& view, const kernels::TensorScan& scan);

// Reads the tensor once. `team` may be null.
TensorValues Measure(const TensorView& view, double zero_bound, const kernels::Team* team);

// How far the signs of a gradient and of its momentum agree: (mean of sign(g) sign(m) + 1) / 2; 1
// for tensors without elements, NaN for two sizes or complex numbers.
double SignAgreement(const TensorView& gradient, const TensorView& momentum);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_LIVE_TENSOR_VALUES_H_
