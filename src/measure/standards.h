// Every threshold of a comparison, and what error a correct call may make; those of upstream 26.2.0
// alone stand with its table (report/newest_table).

#ifndef PLUMBLINE_MEASURE_STANDARDS_H_
#define PLUMBLINE_MEASURE_STANDARDS_H_

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace plumbline::measure {

// Compatible columns (docs/reference/compare.md, "Result").
inline constexpr double kWarningRatio = 0.5;  // statistics: relative difference above is "Warning"
inline constexpr double kWarningRegulator = 1e-10;  // added to the divisor there
inline constexpr double kCosineStrict = 0.99;       // below, together with kMaxAbsStrict: "No"
inline constexpr double kMaxAbsStrict = 0.001;
inline constexpr double kCosineLoose = 0.9;      // below: "No"
inline constexpr double kMaxAbsLoose = 1;        // above: "No"
inline constexpr double kScalarRelative = 0.01;  // one-element tensors have no cosine
inline constexpr double kZeroNorm = 2.220446049250313e-16;

// Colours (docs/reference/compare.md, "Colours").
inline constexpr double kHugeDifference = 1e10;
inline constexpr double kMagnitudeStep = 1;  // decades
inline constexpr double kThousandthGood = 0.9;
inline constexpr double kThousandthBad = 0.6;
inline constexpr double kRatioDrop = 0.1;
inline constexpr double kRelativeMaxRed = 0.5;
inline constexpr double kRelativeMaxYellow = 0.1;
inline constexpr double kRelativeMaxInput = 0.01;

// plumbline's verdict (docs/design/verdict.md): error divided by the explained error.
inline constexpr double kNoiseFactor = 8;        // up to here: within noise
inline constexpr double kPropagationFactor = 3;  // instead of 8 for errors of inputs that are known
// Calls of another kernel whose rounding adds up unseen, as in a module around recorded calls.
inline constexpr double kUnseenCalls = 8;
inline constexpr double kSuspiciousFactor = 64;  // up to here: suspicious; above: broken

// Largest error of an element in rounding noise, in root mean squares of the golden tensor per unit
// of relative error, and in its largest magnitude: tails of a few standard deviations.
inline constexpr double kElementTail = 16;
inline constexpr double kPeakTail = 2;

// Weight of differences of mean and norm in the error of statistics, and from how many elements on.
inline constexpr double kAverageWeight = 3;
inline constexpr int64_t kManyElements = 64;

// How the own rounding of a call grows.
enum class CallClass : uint8_t {
  kCopy,           // moves values: view, transpose, cat
  kElementwise,    // a few roundings per element
  kReduction,      // sums of length k in blocks: log2(k)
  kProduct,        // dot products of length k: sqrt(k)
  kDefault,        // unknown: the larger of reduction and product
  kComposite,      // a module around other recorded calls
  kUninitialised,  // `empty` and its kin: the values mean nothing
};

// The class of an API by its name ("linear", "__add__"); kDefault when it is not in the table.
CallClass ClassOfApi(std::string_view api_name);
// "linear" of "Functional.linear.0.forward"; empty for modules and other names.
std::string_view ApiOfCall(std::string_view call_name);
// The class of a recorded call by its full name, such as "Functional.linear.0.forward". Modules
// are kDefault; the caller raises those with recorded children to kComposite.
CallClass ClassOfCall(std::string_view call_name);

// Whether the call is a convolution, by its full name.
bool IsConvolution(std::string_view call_name);

// How a call amplifies relative errors of what it reads (measure/propagation.h).
enum class Amplifier : uint8_t {
  kNone,
  kSum,            // a + b, a - b
  kPart,           // some of the elements
  kContraction,    // brings values no further apart: relu, gelu
  kProduct,        // sums of products
  kMean,           // means over elements
  kTotal,          // sums over elements
  kNormalisation,  // takes the mean away
  kArgument,       // a function whose argument counts absolutely: exp, cos
  kSoftmax,        // by the largest arguments, and by the size of all
  kQuotient,       // divides by a tensor
  kAddedQuotient,  // adds a quotient of tensors
  kLogarithm,      // relative errors become absolute ones
  kBounded,        // of values around one that nearly cancel: tanh by way of exp
  kSolution,       // of linear equations
};
Amplifier AmplifierOfCall(std::string_view call_name);

// How a call puts several values together; decides what becomes of a residue among them
// (measure/propagation.h).
enum class Mixing : uint8_t {
  kNone,           // not known
  kSum,            // a + s b
  kFactors,        // a b
  kQuotient,       // a / b
  kAddedProduct,   // x + s a b
  kAddedQuotient,  // x + s a / b
  kSelection,      // elements of all: cat, stack, where, copy_, maximum
  kBias,           // a product of two, and a third that is added
};
Mixing MixingOfCall(std::string_view call_name);

// How far apart two tensors are, as a call tells it (measure/elementwise.h).
enum class Distance : uint8_t {
  kNone,
  kDifference,  // a - b, a + b
  kAbsolute,    // means of |a - b|
  kSquare,      // means of (a - b)^2 near zero
  kNorm,        // the root of a sum of (a - b)^2
  kOfPairs,     // the same for all pairs of rows, by way of their products
  kAngle,       // means of one less a cosine
  kCosine,      // cosines
  kLogistic,    // a loss whose gradient is a share less the wanted one
};
Distance DistanceOfCall(std::string_view call_name);

// What the gradient of a call is made of besides the gradient that comes in.
enum class GradientKind : uint8_t {
  kOther,
  kProduct,        // sums of products with the other matrix
  kFactor,         // products with the other operand
  kQuotient,       // quotients by the divisor
  kExponential,    // an exponential of what forward read
  kAngle,          // divides by the distance from zero of what forward read
  kNormalisation,  // what comes in, less its mean and its part along the result
};
GradientKind GradientKindOf(std::string_view call_name);

// Whether a gradient that the call returns for an operand that was spread over others (a bias) is
// the sum of what it gets.
bool SumsGradients(std::string_view call_name);

// Whether the call returns the sign of each element.
bool IsSign(std::string_view call_name);

// Whether the call, forward or backward, adds or subtracts element by element.
bool IsAddition(std::string_view call_name);

// Whether the call returns values that do not depend on those of the tensor it is given, but on its
// shape alone.
bool ReadsShapeOnly(std::string_view call_name);

// Whether the derivative of the call jumps, as that of relu at zero.
bool HasSteps(std::string_view call_name);

// Relative error (L2) that a correct call of this class makes by itself, when the roundoff of its
// dtype is `unit_roundoff` and one output element sums up `reduction_length` terms.
double OwnError(CallClass call_class, double unit_roundoff, double reduction_length);

// Relative error above which no result counts as noise, however much its inputs may explain, where
// the coarsest dtype so far has this roundoff. A result that has lost more than about half of its
// digits (32 sqrt(u), for float32 0.8 %, at most 10 %) is wrong or the run proves nothing.
double LargestNoise(double unit_roundoff);

// Terms per output element, estimated from element counts alone: for x[M,K] w[N,K] -> y[M,N],
// sqrt(|x| |w| / |y|) is K; for reductions |x| / |y|. At least 1.
double ReductionLength(double largest_input, double second_input, double output);

// The element counts of a call's two largest inputs.
struct InputSizes {
  double largest = 0, second = 0;

  void Add(double count) {
    second = std::max(second, std::min(largest, count));
    largest = std::max(largest, count);
  }
  [[nodiscard]] double ReductionLengthTo(double output) const {
    return ReductionLength(largest, second, output);
  }
};

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_STANDARDS_H_
