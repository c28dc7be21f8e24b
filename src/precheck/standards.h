// Which standard judges an output of an API, and every threshold of the pre-check: of the one-sided
// step, which compares a device with raised precision on the CPU, and of the two-sided one, which
// compares the errors of two devices.

#ifndef PLUMBLINE_PRECHECK_STANDARDS_H_
#define PLUMBLINE_PRECHECK_STANDARDS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "plumbline/tensor.h"

namespace plumbline::precheck {

inline bool IsFloat8(DType dtype) {
  return InfoOf(dtype).kind == DTypeKind::kFloat && InfoOf(dtype).size_bytes == 1;
}

// The type of the parts of complex numbers; others as they are.
inline DType PartOf(DType dtype) {
  if (InfoOf(dtype).kind != DTypeKind::kComplex) return dtype;
  return InfoOf(dtype).size_bytes == 16 ? DType::kFloat64 : DType::kFloat32;
}

enum class Standard : uint8_t {
  kBinary,        // no element may differ
  kAbsolute,      // shares of elements beyond a relative and an absolute limit
  kUlp,           // distances in units of the last place
  kThousandth,    // share of elements with a relative error below 0.001
  kAccumulative,  // as kAbsolute with wider limits, and the balance of errors
  kBenchmark,     // errors against those of another device
};

// Of an API by its name without type and call number ("conv2d", "linalg.inv"); case-sensitive.
// kBenchmark where no list has it.
Standard StandardOfApi(std::string_view api);

// What the two-sided step judges an output by: binary consistency where its device type is neither
// a float of 16 to 64 bits nor complex, else by the API. `device_dtype` as it is printed
// ("torch.float16").
Standard TwoSidedStandardOf(std::string_view api, std::string_view device_dtype);

// What the column of the algorithm says ("标杆比对法").
std::string_view DisplayName(Standard standard);

// True if `api` gives integers that are quantised: those may be 1 apart (kQuantizedMaxAbsError).
bool IsQuantization(std::string_view api);
// True if only the first of the outputs of a forward call is compared.
bool ComparesFirstOutputOnly(std::string_view api);
// True if the gradient of `api` is the exponential of its own rounded result: an absolute error of
// the result is a relative one of the gradient.
bool ExponentiatesItsResult(std::string_view api);
// True if a call by this full name ("Functional.dropout.0") is judged by its shares of zeros.
bool IsDropout(std::string_view call_name);
// True if that dropout scales what it keeps, and does nothing else to it.
bool ScalesWhatItKeeps(std::string_view api);
// True if the gradient of the last tensor of `api`, a bias, is a sum of incoming gradients.
bool AddsItsLastTensor(std::string_view api);

// ---- One-sided step: the status of one float output ----
inline constexpr double kCosineAbove = 0.99;
inline constexpr double kMaxAbsErrorBelow = 0.001;
// Ours: an error below that, but above this share of the largest value, is judged by the shares.
inline constexpr double kSmallErrorShare = 0.01;
// Relative errors whose shares are taken, and what a share has to be above.
inline constexpr double kHundredth = 0.01, kThousandth = 0.001, kTenThousandth = 0.0001;
inline constexpr double kHundredthShareAbove = 1 - kHundredth;
inline constexpr double kThousandthShareAbove = 1 - kThousandth;
inline constexpr double kTenThousandthShareAbove = 1 - kTenThousandth;
// A side whose largest magnitude is not above this has no direction: all of it is zero.
inline constexpr double kZeroMagnitude = 2.220446049250313e-16;
inline constexpr double kQuantizedMaxAbsError = 1;
// Ours: roundings of a gradient that is the exponential of a result, beside the error of that.
inline constexpr double kResultRoundings = 2;
// Shares of zeros behind a dropout: how far apart they may not be, from how many elements on.
inline constexpr double kDropoutShareBelow = 0.1;
inline constexpr uint64_t kDropoutElements = 100;
// Ours: how far apart, in parts of the benchmark's, elements may be that neither side dropped.
inline constexpr double kKeptErrorAtMost = 0.01;

// Limits of the standards for one device type; a type that has no column of its own has the last.
struct FloatLimits {
  double small_value = 0;  // |benchmark| up to here: judged by absolute error
  double small_atol = 0;   // a larger absolute error of such an element counts
  double rtol = 0;         // a larger relative error of any other element counts
  double balance = 0;      // kAccumulative: what the balance of errors may be
};
FloatLimits LimitsOf(Standard standard, DType device_dtype);

// Units of the last place: of a mantissa of `mantissa_bits` stored bits, whose exponent is not
// below `min_exponent`; distances above `count_above` are counted.
struct UlpFormat {
  int mantissa_bits = 0;
  int min_exponent = 0;
  double count_above = 0;
};
UlpFormat UlpFormatOf(DType device_dtype);

// What is added to |benchmark| as the divisor of a relative error: the spacing at 1 of the type of
// the benchmark, or 2^-8 where the device has bfloat16.
double RelativeEpsilon(DType bench_dtype, DType device_dtype);

// True for types whose outputs have the cells of a standard: floats of at most 32 bits.
bool HasStandard(DType device_dtype);

// ---- Two-sided step ----
// A ratio of errors is |device| / max(|other|, floor): errors below the floor are no errors.
double RatioFloor(DType device_dtype);

// Ratios above these are errors.
inline constexpr double kSmallValueRatio = 2, kRmseRatio = 2, kMaxRelativeRatio = 10,
                        kMeanRelativeRatio = 2;
inline constexpr double kBalanceRatio = 2;  // has a status of its own that decides nothing

// One of these suffices.
inline constexpr double kUlpMeanBelow = 64;  // float32 only
inline constexpr double kUlpProportionBelowFloat32 = 0.05;
inline constexpr double kUlpProportionBelow = 0.001;  // other types
inline constexpr double kUlpProportionRatioBelow = 1;

inline constexpr double kThousandthShareAtLeast = 0.999;

// ---- Operators that are checked while they run (precheck/online/operator_check.h) ----
// Operators of PyTorch's dispatcher that are not checked, by their base names ("add_").
bool IsLeftAlone(std::string_view aten_operator);
// |benchmark| from here on: judged by the relative error, others by the absolute one.
inline constexpr double kSingleBenchmarkSmallValue = 1;
inline constexpr double kSingleBenchmarkEpsilon = 0x1p-23;  // added to |benchmark| as a divisor
struct SingleBenchmarkLimits {
  double error = 0;    // what the largest absolute and the largest relative error may be
  double balance = 0;  // what the mean error may be
};
// Of floats of 16 to 64 bits and of the parts of complex numbers; nothing: no element may differ.
std::optional<SingleBenchmarkLimits> SingleBenchmarkLimitsOf(DType device_dtype);

// True for float64 and complex types, which the two-sided step leaves out: the benchmark of both
// sides has no more precision than they. `device_dtype` as it is printed.
bool IsNeverTwoSided(std::string_view device_dtype);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_STANDARDS_H_
