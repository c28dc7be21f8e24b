#include "measure/standards.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "measure/kernel_names.h"
#include "plumbline/tensor.h"
#include "record/call_name.h"

namespace plumbline::measure {
namespace {

struct ApiClass {
  std::string_view name;
  CallClass call_class;
};

// Sorted by name (checked by a test). Names as they stand between prefix and call number; in-place
// forms and dunder forms are reduced first.
constexpr std::array kApis = {
    ApiClass{"abs", CallClass::kElementwise},
    ApiClass{"adaptive_avg_pool2d", CallClass::kReduction},
    ApiClass{"add", CallClass::kElementwise},
    ApiClass{"addbmm", CallClass::kProduct},
    ApiClass{"addcdiv", CallClass::kElementwise},
    ApiClass{"addcmul", CallClass::kElementwise},
    ApiClass{"addmm", CallClass::kProduct},
    ApiClass{"addmv", CallClass::kProduct},
    ApiClass{"alpha_dropout", CallClass::kElementwise},
    ApiClass{"amax", CallClass::kCopy},
    ApiClass{"amin", CallClass::kCopy},
    ApiClass{"avg_pool2d", CallClass::kReduction},
    ApiClass{"baddbmm", CallClass::kProduct},
    ApiClass{"batch_norm", CallClass::kReduction},
    ApiClass{"bfloat16", CallClass::kCopy},
    ApiClass{"bilinear", CallClass::kProduct},
    ApiClass{"bmm", CallClass::kProduct},
    ApiClass{"broadcast_to", CallClass::kCopy},
    ApiClass{"cat", CallClass::kCopy},
    ApiClass{"chain_matmul", CallClass::kProduct},
    ApiClass{"chunk", CallClass::kCopy},
    ApiClass{"clamp", CallClass::kElementwise},
    ApiClass{"clip", CallClass::kElementwise},
    ApiClass{"clone", CallClass::kCopy},
    ApiClass{"concat", CallClass::kCopy},
    ApiClass{"contiguous", CallClass::kCopy},
    ApiClass{"conv1d", CallClass::kProduct},
    ApiClass{"conv2d", CallClass::kProduct},
    ApiClass{"conv3d", CallClass::kProduct},
    ApiClass{"conv_transpose2d", CallClass::kProduct},
    ApiClass{"cos", CallClass::kElementwise},
    ApiClass{"cross_entropy", CallClass::kReduction},
    ApiClass{"cumsum", CallClass::kReduction},
    ApiClass{"detach", CallClass::kCopy},
    ApiClass{"diagonal", CallClass::kCopy},
    ApiClass{"div", CallClass::kElementwise},
    ApiClass{"dot", CallClass::kProduct},
    ApiClass{"double", CallClass::kCopy},
    ApiClass{"dropout", CallClass::kElementwise},
    ApiClass{"einsum", CallClass::kProduct},
    ApiClass{"elu", CallClass::kElementwise},
    ApiClass{"embedding", CallClass::kCopy},
    ApiClass{"empty", CallClass::kUninitialised},
    ApiClass{"empty_like", CallClass::kUninitialised},
    ApiClass{"empty_strided", CallClass::kUninitialised},
    ApiClass{"empty_with_format", CallClass::kUninitialised},
    ApiClass{"erf", CallClass::kElementwise},
    ApiClass{"erfinv", CallClass::kElementwise},
    ApiClass{"exp", CallClass::kElementwise},
    ApiClass{"expand", CallClass::kCopy},
    ApiClass{"expand_as", CallClass::kCopy},
    ApiClass{"expm1", CallClass::kElementwise},
    ApiClass{"fill", CallClass::kCopy},
    ApiClass{"flatten", CallClass::kCopy},
    ApiClass{"flip", CallClass::kCopy},
    ApiClass{"float", CallClass::kCopy},
    ApiClass{"floor", CallClass::kElementwise},
    ApiClass{"gather", CallClass::kCopy},
    ApiClass{"gelu", CallClass::kElementwise},
    ApiClass{"getitem", CallClass::kCopy},
    ApiClass{"glu", CallClass::kElementwise},
    ApiClass{"group_norm", CallClass::kReduction},
    ApiClass{"half", CallClass::kCopy},
    ApiClass{"hardswish", CallClass::kElementwise},
    ApiClass{"hardtanh", CallClass::kElementwise},
    ApiClass{"hstack", CallClass::kCopy},
    ApiClass{"index_add", CallClass::kReduction},
    ApiClass{"index_put", CallClass::kCopy},
    ApiClass{"index_select", CallClass::kCopy},
    ApiClass{"instance_norm", CallClass::kReduction},
    ApiClass{"interpolate", CallClass::kElementwise},
    ApiClass{"layer_norm", CallClass::kReduction},
    ApiClass{"leaky_relu", CallClass::kElementwise},
    ApiClass{"lerp", CallClass::kElementwise},
    ApiClass{"linear", CallClass::kProduct},
    ApiClass{"log", CallClass::kElementwise},
    ApiClass{"log1p", CallClass::kElementwise},
    ApiClass{"log_softmax", CallClass::kReduction},
    ApiClass{"logsumexp", CallClass::kReduction},
    ApiClass{"masked_fill", CallClass::kCopy},
    ApiClass{"masked_scatter", CallClass::kCopy},
    ApiClass{"masked_select", CallClass::kCopy},
    ApiClass{"matmul", CallClass::kProduct},
    ApiClass{"max", CallClass::kCopy},
    ApiClass{"max_pool2d", CallClass::kCopy},
    ApiClass{"maximum", CallClass::kCopy},
    ApiClass{"mean", CallClass::kReduction},
    ApiClass{"min", CallClass::kCopy},
    ApiClass{"minimum", CallClass::kCopy},
    ApiClass{"mish", CallClass::kElementwise},
    ApiClass{"mm", CallClass::kProduct},
    ApiClass{"movedim", CallClass::kCopy},
    ApiClass{"mse_loss", CallClass::kReduction},
    ApiClass{"mul", CallClass::kElementwise},
    ApiClass{"multi_head_attention_forward", CallClass::kProduct},
    ApiClass{"mv", CallClass::kProduct},
    ApiClass{"narrow", CallClass::kCopy},
    ApiClass{"neg", CallClass::kCopy},
    ApiClass{"new_empty", CallClass::kUninitialised},
    ApiClass{"new_empty_strided", CallClass::kUninitialised},
    ApiClass{"nll_loss", CallClass::kReduction},
    ApiClass{"norm", CallClass::kReduction},
    ApiClass{"normalize", CallClass::kReduction},
    ApiClass{"ones_like", CallClass::kCopy},
    ApiClass{"outer", CallClass::kElementwise},
    ApiClass{"pad", CallClass::kCopy},
    ApiClass{"permute", CallClass::kCopy},
    ApiClass{"pow", CallClass::kElementwise},
    ApiClass{"prod", CallClass::kReduction},
    ApiClass{"reciprocal", CallClass::kElementwise},
    ApiClass{"relu", CallClass::kElementwise},
    ApiClass{"relu6", CallClass::kElementwise},
    ApiClass{"repeat", CallClass::kCopy},
    ApiClass{"repeat_interleave", CallClass::kCopy},
    ApiClass{"reshape", CallClass::kCopy},
    ApiClass{"rms_norm", CallClass::kReduction},
    ApiClass{"roll", CallClass::kCopy},
    ApiClass{"round", CallClass::kElementwise},
    ApiClass{"rsqrt", CallClass::kElementwise},
    ApiClass{"rsub", CallClass::kElementwise},
    ApiClass{"scaled_dot_product_attention", CallClass::kProduct},
    ApiClass{"scatter", CallClass::kCopy},
    ApiClass{"select", CallClass::kCopy},
    ApiClass{"setitem", CallClass::kCopy},
    ApiClass{"sigmoid", CallClass::kElementwise},
    ApiClass{"sign", CallClass::kCopy},
    ApiClass{"silu", CallClass::kElementwise},
    ApiClass{"sin", CallClass::kElementwise},
    ApiClass{"softmax", CallClass::kReduction},
    ApiClass{"softplus", CallClass::kElementwise},
    ApiClass{"sort", CallClass::kCopy},
    ApiClass{"split", CallClass::kCopy},
    ApiClass{"sqrt", CallClass::kElementwise},
    ApiClass{"square", CallClass::kElementwise},
    ApiClass{"squeeze", CallClass::kCopy},
    ApiClass{"stack", CallClass::kCopy},
    ApiClass{"std", CallClass::kReduction},
    ApiClass{"sub", CallClass::kElementwise},
    ApiClass{"sum", CallClass::kReduction},
    ApiClass{"swapaxes", CallClass::kCopy},
    ApiClass{"t", CallClass::kCopy},
    ApiClass{"take_along_dim", CallClass::kCopy},
    ApiClass{"tanh", CallClass::kElementwise},
    ApiClass{"to", CallClass::kCopy},
    ApiClass{"topk", CallClass::kCopy},
    ApiClass{"transpose", CallClass::kCopy},
    ApiClass{"tril", CallClass::kCopy},
    ApiClass{"triu", CallClass::kCopy},
    ApiClass{"triu_indices", CallClass::kCopy},
    ApiClass{"truediv", CallClass::kElementwise},
    ApiClass{"type", CallClass::kCopy},
    ApiClass{"unbind", CallClass::kCopy},
    ApiClass{"unflatten", CallClass::kCopy},
    ApiClass{"unfold", CallClass::kCopy},
    ApiClass{"unsqueeze", CallClass::kCopy},
    ApiClass{"var", CallClass::kReduction},
    ApiClass{"view", CallClass::kCopy},
    ApiClass{"view_as", CallClass::kCopy},
    ApiClass{"vstack", CallClass::kCopy},
    ApiClass{"where", CallClass::kCopy},
    ApiClass{"zeros_like", CallClass::kCopy},
};

struct ApiAmplifier {
  std::string_view name;
  Amplifier amplifier;
};

// Beside the products, which the table above names.
constexpr std::array kAmplifiersByKind = {
    ApiAmplifier{"add", Amplifier::kSum},
    ApiAmplifier{"sub", Amplifier::kSum},
    ApiAmplifier{"mean", Amplifier::kMean},
    ApiAmplifier{"adaptive_avg_pool2d", Amplifier::kMean},
    ApiAmplifier{"avg_pool2d", Amplifier::kMean},
    ApiAmplifier{"sum", Amplifier::kTotal},
    ApiAmplifier{"cumsum", Amplifier::kTotal},
    ApiAmplifier{"layer_norm", Amplifier::kNormalisation},
    ApiAmplifier{"batch_norm", Amplifier::kNormalisation},
    ApiAmplifier{"group_norm", Amplifier::kNormalisation},
    ApiAmplifier{"instance_norm", Amplifier::kNormalisation},
    ApiAmplifier{"var", Amplifier::kNormalisation},
    ApiAmplifier{"std", Amplifier::kNormalisation},
    ApiAmplifier{"exp", Amplifier::kArgument},
    ApiAmplifier{"cos", Amplifier::kArgument},
    ApiAmplifier{"sin", Amplifier::kArgument},
    ApiAmplifier{"softmax", Amplifier::kSoftmax},
    ApiAmplifier{"log_softmax", Amplifier::kSoftmax},
    ApiAmplifier{"scaled_dot_product_attention", Amplifier::kNone},
    ApiAmplifier{"multi_head_attention_forward", Amplifier::kNone},
    ApiAmplifier{"div", Amplifier::kQuotient},
    ApiAmplifier{"addcdiv", Amplifier::kAddedQuotient},
    ApiAmplifier{"truediv", Amplifier::kQuotient},
    ApiAmplifier{"reciprocal", Amplifier::kQuotient},
    ApiAmplifier{"rsqrt", Amplifier::kQuotient},
    ApiAmplifier{"log", Amplifier::kLogarithm},
    ApiAmplifier{"log2", Amplifier::kLogarithm},
    ApiAmplifier{"log10", Amplifier::kLogarithm},
    ApiAmplifier{"relu", Amplifier::kContraction},
    ApiAmplifier{"relu6", Amplifier::kContraction},
    ApiAmplifier{"leaky_relu", Amplifier::kContraction},
    ApiAmplifier{"hardtanh", Amplifier::kContraction},
    ApiAmplifier{"clamp", Amplifier::kContraction},
    ApiAmplifier{"clip", Amplifier::kContraction},
    ApiAmplifier{"gelu", Amplifier::kContraction},
    ApiAmplifier{"silu", Amplifier::kContraction},
    ApiAmplifier{"mish", Amplifier::kContraction},
    ApiAmplifier{"elu", Amplifier::kContraction},
    ApiAmplifier{"celu", Amplifier::kContraction},
    ApiAmplifier{"hardswish", Amplifier::kContraction},
    ApiAmplifier{"softplus", Amplifier::kContraction},
    ApiAmplifier{"softsign", Amplifier::kContraction},
    ApiAmplifier{"softshrink", Amplifier::kContraction},
    ApiAmplifier{"tanh", Amplifier::kBounded},
    ApiAmplifier{"erf", Amplifier::kBounded},
    ApiAmplifier{"expm1", Amplifier::kBounded},
    ApiAmplifier{"log1p", Amplifier::kBounded},
    ApiAmplifier{"solve", Amplifier::kSolution},
    ApiAmplifier{"solve_triangular", Amplifier::kSolution},
    ApiAmplifier{"cholesky_solve", Amplifier::kSolution},
};
constexpr auto kAmplifiers = [] {
  auto by_name = kAmplifiersByKind;
  std::ranges::sort(by_name, {}, &ApiAmplifier::name);
  return by_name;
}();

// "__iadd__" -> "add", "mul_" -> "mul", "linalg.norm" -> "norm".
std::string_view Reduced(std::string_view name) {
  if (name.size() > 4 && name.starts_with("__") && name.ends_with("__")) {
    name = name.substr(2, name.size() - 4);
    if (name.size() > 3 && (name.front() == 'i' || name.front() == 'r') && name != "invert" &&
        name != "rshift") {
      const std::string_view rest = name.substr(1);
      if (rest == "add" || rest == "sub" || rest == "mul" || rest == "div" || rest == "truediv" ||
          rest == "pow" || rest == "matmul") {
        return rest;
      }
    }
    return name;
  }
  if (name.size() > 1 && name.ends_with('_')) name.remove_suffix(1);
  return name;
}

CallClass FindClass(std::string_view reduced) {
  const auto find = [](std::string_view name) {
    const auto found = std::lower_bound(
        kApis.begin(), kApis.end(), name,
        [](const ApiClass& entry, std::string_view key) { return entry.name < key; });
    return found != kApis.end() && found->name == name ? found : kApis.end();
  };
  if (const auto found = find(reduced); found != kApis.end()) return found->call_class;
  const size_t dot = reduced.rfind('.');
  if (dot == std::string_view::npos) return CallClass::kDefault;
  const auto found = find(reduced.substr(dot + 1));
  return found == kApis.end() ? CallClass::kDefault : found->call_class;
}

Amplifier FindAmplifier(std::string_view reduced, CallClass call_class) {
  const std::string_view last = reduced.substr(reduced.rfind('.') + 1);  // "linalg.solve"; or all
  const auto found = std::ranges::lower_bound(kAmplifiers, last, {}, &ApiAmplifier::name);
  if (found != kAmplifiers.end() && found->name == last) return found->amplifier;
  switch (call_class) {
    case CallClass::kProduct:
      return Amplifier::kProduct;
    case CallClass::kCopy:
      return Amplifier::kPart;
    default:
      return Amplifier::kNone;
  }
}

Mixing FindMixing(std::string_view api, CallClass call_class) {
  if (api == "add" || api == "sub" || api == "rsub" || api == "lerp") return Mixing::kSum;
  if (api == "mul" || api == "multiply") return Mixing::kFactors;
  if (api == "div" || api == "truediv" || api == "divide") return Mixing::kQuotient;
  if (api == "addcmul") return Mixing::kAddedProduct;
  if (api == "addcdiv") return Mixing::kAddedQuotient;
  if (api == "linear" || api.starts_with("conv")) return Mixing::kBias;
  return api == "copy" || call_class == CallClass::kCopy ? Mixing::kSelection : Mixing::kNone;
}

Distance FindDistance(std::string_view api) {
  if (api == "binary_cross_entropy_with_logits") return Distance::kLogistic;
  if (api == "cosine_similarity") return Distance::kCosine;
  if (api == "sub" || api == "rsub" || api == "add") return Distance::kDifference;
  if (api == "l1_loss") return Distance::kAbsolute;
  if (api == "mse_loss" || api == "huber_loss" || api == "smooth_l1_loss") return Distance::kSquare;
  if (api == "pairwise_distance" || api == "dist") return Distance::kNorm;
  if (api == "cdist") return Distance::kOfPairs;
  if (api == "cosine_embedding_loss") return Distance::kAngle;
  return Distance::kNone;
}

// What the tables say of an API; of none: that nothing is known.
struct ApiFacts {
  CallClass call_class = CallClass::kDefault;
  Amplifier amplifier = Amplifier::kNone;  // of forward calls, as the next two
  Mixing mixing = Mixing::kNone;
  Distance distance = Distance::kNone;
};

// One call is asked for several times in a row: the last answer is kept.
ApiFacts FactsOf(std::string_view api) {
  if (api.empty()) return {};
  struct Last {
    std::string api;
    ApiFacts facts;
  };
  thread_local Last last;
  if (api == last.api) return last.facts;
  const std::string_view reduced = Reduced(api);
  const CallClass call_class = FindClass(reduced);
  last = {std::string(api),
          {call_class, FindAmplifier(reduced, call_class), FindMixing(reduced, call_class),
           FindDistance(reduced)}};
  return last.facts;
}

}  // namespace

std::string_view ApiOfCall(std::string_view call_name) {
  if (call_name.starts_with("Module.") || call_name.starts_with("Cell.")) return {};
  const size_t first = call_name.find('.');
  const size_t direction = call_name.rfind('.');
  if (first == std::string_view::npos || direction <= first) return {};
  const size_t number = call_name.rfind('.', direction - 1);
  if (number == std::string_view::npos || number <= first) return {};
  std::string_view api = call_name.substr(first + 1, number - first - 1);
  // "Primitive.{attribute of the cell}.{kernel}"
  if (call_name.starts_with("Primitive.")) api.remove_prefix(api.rfind('.') + 1);
  return ApiOfKernel(WithoutRankMark(api));
}

CallClass ClassOfApi(std::string_view api_name) { return FactsOf(api_name).call_class; }

CallClass ClassOfCall(std::string_view call_name) {
  const std::string_view api = ApiOfCall(call_name);
  return api.empty() ? CallClass::kDefault : ClassOfApi(api);
}

Amplifier AmplifierOfCall(std::string_view call_name) {
  if (!call_name.ends_with(".forward")) return Amplifier::kNone;
  return FactsOf(ApiOfCall(call_name)).amplifier;
}

Mixing MixingOfCall(std::string_view call_name) {
  if (!call_name.ends_with(".forward")) return Mixing::kNone;
  return FactsOf(ApiOfCall(call_name)).mixing;
}

Distance DistanceOfCall(std::string_view call_name) {
  if (!call_name.ends_with(".forward")) return Distance::kNone;
  return FactsOf(ApiOfCall(call_name)).distance;
}

bool IsSign(std::string_view call_name) { return Reduced(ApiOfCall(call_name)) == "sign"; }

bool IsConvolution(std::string_view call_name) {
  return Reduced(ApiOfCall(call_name)).starts_with("conv");
}

GradientKind GradientKindOf(std::string_view call_name) {
  static constexpr std::string_view kExponentials[] = {"cross_entropy", "exp",       "expm1",
                                                       "log_softmax",   "logsumexp", "sigmoid",
                                                       "softmax",       "softplus",  "softmin"};
  const std::string_view api = Reduced(ApiOfCall(call_name));
  if (api.empty() || !call_name.ends_with(".backward")) return GradientKind::kOther;
  if (api == "mul" || api == "multiply") return GradientKind::kFactor;
  if (api == "div" || api == "truediv" || api == "divide") return GradientKind::kQuotient;
  if (api == "atan2" || api == "arctan2" || api == "angle") return GradientKind::kAngle;
  if (ClassOfApi(api) == CallClass::kProduct) return GradientKind::kProduct;
  if (api.ends_with("_norm")) return GradientKind::kNormalisation;
  const bool is_exponential =
      std::find(std::begin(kExponentials), std::end(kExponentials), api) != std::end(kExponentials);
  return is_exponential ? GradientKind::kExponential : GradientKind::kOther;
}

bool SumsGradients(std::string_view call_name) {
  if (!call_name.ends_with(".backward")) return false;
  const std::string_view api = Reduced(ApiOfCall(call_name));
  return api == "linear" || api == "addmm" || IsAddition(call_name) || api.starts_with("conv") ||
         api.ends_with("_norm");
}

bool IsAddition(std::string_view call_name) {
  const std::string_view api = Reduced(ApiOfCall(call_name));
  return api == "add" || api == "sub";
}

bool ReadsShapeOnly(std::string_view call_name) {
  const std::string_view api = ApiOfCall(call_name);
  return api == "ones_like" || api == "zeros_like" || api == "full_like" || api == "new_ones" ||
         api == "new_zeros" || api == "new_full";
}

bool HasSteps(std::string_view call_name) {
  static constexpr std::string_view kStepped[] = {
      "abs", "amax",       "amin",       "clamp",   "clip",    "hardtanh", "leaky_relu", "max",
      "min", "max_pool2d", "max_pool1d", "maximum", "minimum", "relu",     "relu6"};
  const std::string_view api = Reduced(ApiOfCall(call_name));
  return std::find(std::begin(kStepped), std::end(kStepped), api) != std::end(kStepped);
}

double OwnError(CallClass call_class, double unit_roundoff, double reduction_length) {
  const double length = std::max(reduction_length, 1.0);
  // Sums are kept in float32 or wider, whatever the dtype; the result is rounded once.
  const double sum_roundoff = std::min(unit_roundoff, UnitRoundoff(DType::kFloat32));
  const double reduction = unit_roundoff + sum_roundoff * std::log2(length);
  const double product = unit_roundoff + sum_roundoff * std::sqrt(length);
  switch (call_class) {
    case CallClass::kCopy:
    case CallClass::kUninitialised:
    case CallClass::kElementwise:
      return unit_roundoff;
    case CallClass::kReduction:
      return reduction;
    case CallClass::kProduct:
      return product;
    case CallClass::kDefault:
      return std::max(reduction, product);
    case CallClass::kComposite:
      // Several calls in a row; eight of them, adding up, is where layers of models stand.
      return 8 * std::max(reduction, product);
  }
  return unit_roundoff;
}

double LargestNoise(double unit_roundoff) {
  return std::max(std::min(32 * std::sqrt(unit_roundoff), 0.1), 4 * unit_roundoff);
}

double ReductionLength(double largest_input, double second_input, double output) {
  if (!(output > 0)) return 1;
  const double reduction = largest_input / output;
  const double product = std::sqrt(largest_input * second_input / output);
  return std::max({1.0, reduction, product});
}

}  // namespace plumbline::measure
