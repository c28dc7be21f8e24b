#include "precheck/standards.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace plumbline::precheck {
namespace {

using Name = std::string_view;

// Each list is sorted for the search; the compiler checks that below.

// Arithmetic of one or two roundings.
constexpr Name kAbsoluteApis[] = {
    "__add__", "__div__",  "__iadd__", "__idiv__",   "__imul__",    "__isub__",
    "__mul__", "__radd__", "__rmul__", "__sub__",    "add",         "add_",
    "div",     "div_",     "divide",   "divide_",    "leaky_relu",  "leaky_relu_",
    "mul",     "mul_",     "prelu",    "reciprocal", "reciprocal_", "rsqrt",
    "rsqrt_",  "rsub",     "square",   "square_",    "sub",         "sub_",
};

// What moves, chooses or compares values and rounds none.
constexpr Name kBinaryApis[] = {
    "abs",           "abs_",           "absolute",    "absolute_",   "argmin",       "bitwise_and",
    "bitwise_and_",  "broadcast_to",   "ceil",        "ceil_",       "equal",        "fill_",
    "flatten",       "floor",          "floor_",      "gather",      "greater",      "greater_",
    "greater_equal", "greater_equal_", "histc",       "isfinite",    "isnan",        "less",
    "less_",         "less_equal",     "less_equal_", "logical_and", "logical_and_", "logical_not",
    "logical_not_",  "logical_or",     "logical_or_", "masked_fill", "masked_fill_", "max_pool3d",
    "maximum",       "minimum",        "neg",         "neg_",        "nonzero",      "not_equal",
    "not_equal_",    "one_hot",        "pad",         "relu",        "reshape",      "round",
    "round_",        "select",         "sign",        "sign_",       "sort",         "tile",
    "topk",          "transpose",      "transpose_",  "tril",        "tril_",        "triu",
    "triu_",         "type_as",
};

// Products of matrices.
constexpr Name kUlpApis[] = {
    "__matmul__", "addbmm",   "addbmm_", "addmm",        "addmm_",   "baddbmm",
    "baddbmm_",   "bilinear", "bmm",     "chain_matmul", "hspmm",    "linear",
    "matmul",     "mm",       "mv",      "smm",          "sspaddmm",
};

constexpr Name kThousandthApis[] = {"conv1d", "conv2d"};

// No API is judged so by upstream; its placeholder keeps the standard in reach.
constexpr Name kAccumulativeApis[] = {"test_api"};

constexpr Name kQuantizationApis[] = {"npu_dynamic_quant", "npu_quant_lightning_indexer",
                                      "npu_rms_norm_dynamic_quant"};

// exp(x - y) is their gradient, y the result as the type of the device has it.
constexpr Name kExponentialApis[] = {"logcumsumexp", "logsumexp", "special.logsumexp"};
constexpr Name kScalingDropouts[] = {"dropout",   "dropout1d",       "dropout2d",
                                     "dropout3d", "feature_dropout", "native_dropout"};
constexpr Name kBiasedApis[] = {
    "batch_norm",       "conv1d",           "conv2d",     "conv3d",     "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "group_norm", "layer_norm", "linear"};

// Operators of the dispatcher that upstream does not check while a program runs.
constexpr Name kLeftAloneOperators[] = {
    "_cudnn_rnn", "_local_scalar_dense", "_pin_memory", "_to_copy", "_unsafe_view", "add_",
    "allreduce_", "clone", "contiguous", "copy_", "cudnn_batch_norm", "cudnn_batch_norm_backward",
    "detach", "empty", "index_put_", "lift_fresh", "max", "max_pool2d_with_indices",
    "max_pool2d_with_indices_backward", "native_batch_norm_backward", "new_empty",
    "new_empty_strided", "new_full", "new_ones", "new_zeros", "npu_dtype_cast", "npu_rotary_mul",
    "ones", "ones_like", "permute", "rand", "rand_like", "randint", "randint_like", "randn",
    "randn_like", "randperm", "scalar_tensor", "select", "split_with_sizes", "to", "transpose",
    "unbind", "view", "zero", "zero_", "zeros", "zeros_like",
};

template <size_t n>
constexpr bool IsSorted(const Name (&names)[n]) {
  for (size_t i = 1; i < n; ++i) {
    if (!(names[i - 1] < names[i])) return false;
  }
  return true;
}
static_assert(IsSorted(kAbsoluteApis) && std::size(kAbsoluteApis) == 30);
static_assert(IsSorted(kBinaryApis) && std::size(kBinaryApis) == 62);
static_assert(IsSorted(kUlpApis) && std::size(kUlpApis) == 17);
static_assert(IsSorted(kLeftAloneOperators) && std::size(kLeftAloneOperators) == 48);
static_assert(IsSorted(kThousandthApis) && IsSorted(kQuantizationApis) &&
              IsSorted(kExponentialApis) && IsSorted(kScalingDropouts) && IsSorted(kBiasedApis));

template <size_t n>
bool Lists(const Name (&names)[n], Name name) {
  return std::binary_search(std::begin(names), std::end(names), name);
}

// A mistyped power of two (2^-16 in upstream's manual), by which nearly every deviation of a small
// value counts. Kept: upstream's verdicts come from it.
constexpr double kMistypedAtol = 1e-16;

// One value per type of a device; `other` for float32 and the rest.
struct ByType {
  double float16, bfloat16, other;
  [[nodiscard]] constexpr double Of(DType dtype) const {
    if (dtype == DType::kFloat16) return float16;
    return dtype == DType::kBFloat16 ? bfloat16 : other;
  }
};
constexpr ByType kSmallValue = {0x1p-10, 0x1p-10, 0x1p-20};
constexpr ByType kAbsoluteAtol = {0x1p-16, kMistypedAtol, 0x1p-30};
constexpr ByType kBenchmarkAtol = {kMistypedAtol, kMistypedAtol, 0x1p-30};
constexpr ByType kAbsoluteRtol = {0x1p-10, 0x1p-8, 0x1p-20};
constexpr ByType kAccumulativeBound = {0x1p-8, 0x1p-7, 0x1p-11};
constexpr ByType kAccumulativeBalance = {0x1p-20, 0x1p-7, 0x1p-14};
constexpr ByType kRatioFloor = {0x1p-11, 0x1p-8, 0x1p-14};

}  // namespace

Standard StandardOfApi(std::string_view api) {
  if (Lists(kAbsoluteApis, api)) return Standard::kAbsolute;
  if (Lists(kBinaryApis, api)) return Standard::kBinary;
  if (Lists(kUlpApis, api)) return Standard::kUlp;
  if (Lists(kThousandthApis, api)) return Standard::kThousandth;
  if (Lists(kAccumulativeApis, api)) return Standard::kAccumulative;
  return Standard::kBenchmark;
}

Standard TwoSidedStandardOf(std::string_view api, std::string_view device_dtype) {
  const std::optional<DType> dtype = ParseDType(device_dtype);
  if (!dtype) return Standard::kBinary;
  const DTypeKind kind = InfoOf(*dtype).kind;
  const bool is_float = kind == DTypeKind::kFloat && InfoOf(*dtype).size_bytes > 1;
  return is_float || kind == DTypeKind::kComplex ? StandardOfApi(api) : Standard::kBinary;
}

std::string_view DisplayName(Standard standard) {
  switch (standard) {
    case Standard::kBinary:
      return "二进制一致法";
    case Standard::kAbsolute:
      return "绝对阈值法";
    case Standard::kUlp:
      return "ULP误差比对法";
    case Standard::kThousandth:
      return "双千指标法";
    case Standard::kAccumulative:
      return "累积误差比对法";
    case Standard::kBenchmark:
      return "标杆比对法";
  }
  return "标杆比对法";
}

bool IsQuantization(std::string_view api) { return Lists(kQuantizationApis, api); }

bool ExponentiatesItsResult(std::string_view api) { return Lists(kExponentialApis, api); }

bool ComparesFirstOutputOnly(std::string_view api) { return api == "npu_fusion_attention"; }

bool IsDropout(std::string_view call_name) {
  return call_name.find("dropout") != std::string_view::npos;
}

bool ScalesWhatItKeeps(std::string_view api) { return Lists(kScalingDropouts, api); }

bool AddsItsLastTensor(std::string_view api) { return Lists(kBiasedApis, api); }

FloatLimits LimitsOf(Standard standard, DType device_dtype) {
  FloatLimits limits = {kSmallValue.Of(device_dtype), kBenchmarkAtol.Of(device_dtype),
                        kAbsoluteRtol.Of(device_dtype), kAccumulativeBalance.Of(device_dtype)};
  if (standard == Standard::kAbsolute) limits.small_atol = kAbsoluteAtol.Of(device_dtype);
  if (standard == Standard::kAccumulative) {
    limits.small_value = 1;
    limits.small_atol = limits.rtol = kAccumulativeBound.Of(device_dtype);
  }
  return limits;
}

UlpFormat UlpFormatOf(DType device_dtype) {
  switch (device_dtype) {
    case DType::kFloat16:
      return {10, -14, 1};
    case DType::kBFloat16:
      return {7, -126, 1};
    case DType::kFloat64:
    case DType::kComplex128:
      return {52, -1022, 32};
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2FNUZ:
      return {0, -22, 1};  // has a rule of its own
    default:
      return {23, -126, 32};
  }
}

double RelativeEpsilon(DType bench_dtype, DType device_dtype) {
  constexpr double kOfBFloat16 = 0x1p-8;
  if (device_dtype == DType::kBFloat16 || bench_dtype == DType::kBFloat16) return kOfBFloat16;
  switch (bench_dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      return 0x1p-52;
    case DType::kFloat16:
      return 0x1p-10;
    default:
      return 0x1p-23;
  }
}

bool HasStandard(DType device_dtype) {
  return device_dtype != DType::kFloat64 && device_dtype != DType::kComplex128;
}

double RatioFloor(DType device_dtype) { return kRatioFloor.Of(device_dtype); }

bool IsLeftAlone(std::string_view aten_operator) {
  // Ours: memory whose elements nobody has set yet.
  return Lists(kLeftAloneOperators, aten_operator) || aten_operator.starts_with("empty_") ||
         aten_operator.starts_with("resize_") || aten_operator == "set_";
}

std::optional<SingleBenchmarkLimits> SingleBenchmarkLimitsOf(DType device_dtype) {
  switch (PartOf(device_dtype)) {
    case DType::kFloat16:
      return SingleBenchmarkLimits{0x1p-11, 0x1p-10};
    case DType::kBFloat16:
      return SingleBenchmarkLimits{0x1p-8, 0x1p-7};
    case DType::kFloat32:
    case DType::kFloat64:
      return SingleBenchmarkLimits{0x1p-14, 0x1p-14};
    default:
      return std::nullopt;
  }
}

bool IsNeverTwoSided(std::string_view device_dtype) {
  const std::optional<DType> dtype = ParseDType(device_dtype);
  return dtype && (*dtype == DType::kFloat64 || InfoOf(*dtype).kind == DTypeKind::kComplex);
}

}  // namespace plumbline::precheck
