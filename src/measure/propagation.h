// How errors of what a call reads show in what it returns; normalisations are computed again.

#ifndef PLUMBLINE_MEASURE_PROPAGATION_H_
#define PLUMBLINE_MEASURE_PROPAGATION_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "plumbline/compare.h"

namespace plumbline::measure {

// What layer, batch, group and instance norm return, computed again from what they read.

// y = w (x - mean) / sqrt(variance + epsilon) + b, with mean and variance of each group of
// elements.
struct Normalisation {
  std::span<const double> x;
  std::span<const double> w, b;  // one number per channel, or empty
  size_t channels = 1;           // element i is of channel i / places % channels
  size_t places = 1;
  size_t block = 0;  // elements of a group, which lie in a row; 0: a group is a channel
  double epsilon = 0;
};

// Whether `y` is, in every element, the result of `call`, to within the roundings of a correct one
// in a type of this roundoff: those of x count by its size over the deviation of its group. Sizes
// that do not fit are false.
bool IsNormalised(const Normalisation& call, std::span<const double> y, double unit_roundoff);

// The same of the gradient of x, where `incoming` is that of the result.
bool IsGradientOfNormalised(const Normalisation& call, std::span<const double> incoming,
                            std::span<const double> gradient, double unit_roundoff);

// How the errors of a call's inputs, and its own rounding, show in its output.

// More than this is no amplification but a result without meaning.
inline constexpr double kMostAmplification = 1e4;

// One tensor that a call reads, as recorded in the golden run.
struct InputError {
  const Item* golden = nullptr;
  double error = 0;  // relative (L2) error of the target's
  // The same, where the value is nothing but the rounding of a sum that cancelled, so that no
  // ceiling holds; may be above one. 0: it is more than that.
  double residue = 0;
  double absolute = 0;  // the largest of one element, as far as known
};

struct Propagation {
  double from_inputs = 0;    // relative error of the output that the inputs' errors explain
  double amplification = 1;  // how much larger than usual rounding is relative to the output
  double own_factor = 1;     // the same for the call's own rounding alone
  // The same without a limit, where it is certain because terms cancel: above 1 / roundoff nothing
  // but rounding is left of the output.
  double cancellation = 1;
  double loss = 0;       // of `from_inputs`, what no ceiling limits: of a single number near zero
  double coherence = 1;  // how much more than the call's own rounding those of its inputs cancel
};

// Root mean square; nothing without a finite norm other than zero.
std::optional<double> RmsOf(const Item& item);

// Whether part of the elements are infinite or so large, on one side of zero, that the relative
// error of the tensor says nothing about the others: a mask that fills with the lowest number.
bool IsFilled(const Item& item);

// Whether two tensors are filled with two numbers that stand for the same "never": different, far
// beyond every other element, on the same side of zero, one infinite or at least 1e8 in size and
// the other at least 1e4. Softmax makes zero of all of them. Two scalars: the same of their values.
bool AreOtherFills(const Item& target, const Item& golden);

// For the output `golden` of the call `call_name`, from norms, means and extremes of what it reads
// and returns (docs/design/verdict.md, "Amplification"). Sums that cancel, means near zero,
// normalised tensors with a large mean, functions of large arguments and divisors near zero
// amplify; what is not known counts as 1. Never less than the largest error among `operands`, and
// finite.
Propagation PropagationTo(const Item& golden, std::string_view call_name,
                          std::span<const InputError> operands);

// What becomes of a value that is nothing but the rounding of a sum that cancelled.

// Whether an operand is nothing but rounding (InputError::residue).
bool HasResidue(std::span<const InputError> operands);

// The relative error of a call's result `output` that the residues among its operands explain
// (InputError::residue), without a ceiling (docs/design/verdict.md, "Sums that cancel"). Residues
// count by their share in the result: beside something larger they vanish, beside zeros they are
// all there is. `factor`: the one number among the arguments, such as the step size of addcdiv.
double ResidueError(const Item& output, std::string_view call_name,
                    std::span<const InputError> operands, double factor);

// The relative error of a result that four statistics of the operands cannot rule out where single
// elements may be rounding alone: of a sign, of those that may be small beside the largest; of
// x + s a / b (addcdiv), of quotients by the smallest divisor. 0 for other calls. The error of an
// operand is one of all elements.
double HiddenByElements(const Item& output, std::string_view call_name,
                        std::span<const InputError> operands, double factor);

// Lowers the errors of residues that are added to other values to their share in the result, so
// that they excuse nothing in what is larger. False: there are none, or the call is none that adds.
bool ShareResidues(const Item& output, std::string_view call_name, double factor,
                   std::span<InputError> operands);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_PROPAGATION_H_
