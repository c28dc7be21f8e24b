// What kind of error a wrong tensor shows: the cause classes of docs/reference/causes.md. Pure
// functions of values; verdict/cause_candidates collects what they look at.

#ifndef PLUMBLINE_MEASURE_CAUSE_CLASS_H_
#define PLUMBLINE_MEASURE_CAUSE_CLASS_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/memory/pages.h"
#include "plumbline/tensor.h"

namespace plumbline::measure {

enum class CauseConfidence : uint8_t { kLow, kMedium, kHigh };
std::string_view CauseConfidenceName(CauseConfidence confidence);  // "low", "medium", "high"

struct Cause {
  std::string code = "unexplained";  // stable
  std::string text;                  // one sentence with the numbers
  CauseConfidence confidence = CauseConfidence::kLow;

  bool is_history = false;      // the values are those of an earlier step
  bool leaves_rounding = true;  // false: a fit that explains most of the difference, but not all

  [[nodiscard]] bool is_explained() const { return code != "unexplained"; }
};

// A tensor that may explain the difference. Borrowed.
struct CauseCandidate {
  enum class Role : uint8_t {
    kOperand,      // input or parameter of the call, good on both sides
    kEarlier,      // recorded earlier in the target, of the same step
    kEarlierStep,  // the same item at another step
    kRankShare,    // on another rank of the target, what would be added to this rank's value
    kOtherRank,    // the same item on another rank of the golden run
  };
  std::string name;
  Role role = Role::kOperand;
  TensorView view;
};

struct CauseRequest {
  TensorView target, golden;
  std::string api;  // "linear"; empty if unknown
  // The pair is an input or parameter that no recorded call made, so nothing is known about how.
  bool is_source = false;
  double explained = 0;  // relative error that rounding and the inputs explain
  std::vector<CauseCandidate> candidates;
};

// Classifies the difference of two tensors. Tensors of other shapes are "structure" or
// "transposed"; equal ones are unexplained. kInternal when memory runs out.
Result<Cause> ClassifyTensors(const CauseRequest& request);

// Pairs of tensors as doubles, for the tests of cause classes: windows, broadcasting, sub-blocks.

// Up to 8 MiB a tensor, made anew for every pair.
using Doubles = std::vector<double, HugePageAllocator<double>>;

// A tensor that may explain the difference, expanded to the shape of the pair.
struct Operand {
  std::string name;
  CauseCandidate::Role role = CauseCandidate::Role::kOperand;
  Doubles values;
};

// Both sides of the item to classify, row-major. Complex numbers are pairs along a last axis of 2.
struct CausePair {
  Shape shape;
  Doubles target, golden;
  std::vector<Operand> operands;
  DType dtype = DType::kFloat32;  // of the target
  double roundoff = 0;            // the larger one of both sides
  double tolerance = 0;    // relative error that rounding and the inputs explain, with margin
  bool is_window = false;  // a part of a large tensor

  [[nodiscard]] size_t size() const { return target.size(); }
};

// Sums over the pairs where both sides are finite.
struct PairSums {
  size_t count = 0;
  size_t differing = 0;  // beyond the tolerance, non-finite differences included
  size_t nonfinite_differs =
      0;  // NaN, +Inf, -Inf or finite on one side, something else on the other
  double target_squares = 0, golden_squares = 0, difference_squares = 0, dot = 0;
  double target_sum = 0, golden_sum = 0;
  double max_difference = 0;
  double golden_rms = 0;  // root mean square

  // |target - golden| over the larger norm; 0 when both are zero.
  [[nodiscard]] double error() const;
};

// The doubles of both sides and of the candidates that fit their shape. Of tensors with more than
// 2^20 elements a block around the first difference is taken. kInternal when memory runs out.
// Requires: equal shapes, at least one element.
Result<CausePair> LoadPair(const CauseRequest& request);

// All elements as doubles, row-major. kInternal when memory runs out.
Result<std::vector<double>> DoublesOf(const TensorView& view);

PairSums SumsOf(const CausePair& pair);

// Size of a difference beyond which element `index` counts as differing.
double ElementTolerance(const CausePair& pair, const PairSums& sums, size_t index);
// Whether two elements agree within `tolerance`; NaN agrees with NaN, an infinity with its like.
bool Agree(double target, double golden, double tolerance);

// Per axis, the positions that hold any differing element.
using Region = std::vector<std::vector<int64_t>>;
Region DifferingRegion(const CausePair& pair, const PairSums& sums);
size_t RegionSize(const Region& region);
// The elements of `region`, operands included. Requires: at least one element.
CausePair ExtractRegion(const CausePair& pair, const Region& region);
// "axis 1 at 2, axis 2 at 0-15" without the axes that are whole.
std::string RegionText(const Region& region, std::span<const int64_t> shape);

// |target - model(golden)| over |target - golden|, over pairs finite on both sides. Infinity when a
// model value is not finite there, or when nothing differs.
template <class Model>
double ResidualOf(const CausePair& pair, const PairSums& sums, const Model& model) {
  if (!(sums.difference_squares > 0)) return std::numeric_limits<double>::infinity();
  double squares = 0;
  for (size_t i = 0; i < pair.size(); ++i) {
    if (!std::isfinite(pair.target[i]) || !std::isfinite(pair.golden[i])) continue;
    const double left = pair.target[i] - model(i);
    if (!std::isfinite(left)) return std::numeric_limits<double>::infinity();
    squares += left * left;
  }
  return std::sqrt(squares / sums.difference_squares);
}

// How well a model of the error fits, from its residual over the error: nothing when it does not.
// kHigh when what is left is rounding, kMedium when the model explains most of the error.
std::optional<CauseConfidence> FitOf(const CausePair& pair, const PairSums& sums, double residual);
// The sum of squares that a fit may leave, and a little more: beyond it FitOf() finds nothing.
double MostSquaresLeft(const PairSums& sums);

// As FitOf(), for a target that is golden times something: what is left must be small beside the
// target as well, or any small target would be a fraction of golden.
std::optional<CauseConfidence> FitOfFactor(const CausePair& pair, const PairSums& sums,
                                           double residual);

// Whether what a fit leaves of the difference is rounding.
bool IsRounding(const CausePair& pair, const PairSums& sums, double residual);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_CAUSE_CLASS_H_
