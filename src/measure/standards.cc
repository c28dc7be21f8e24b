#include "measure/standards.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "plumbline/tensor.h"

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
    ApiClass{"addmm", CallClass::kProduct},
    ApiClass{"avg_pool2d", CallClass::kReduction},
    ApiClass{"baddbmm", CallClass::kProduct},
    ApiClass{"batch_norm", CallClass::kReduction},
    ApiClass{"bmm", CallClass::kProduct},
    ApiClass{"cat", CallClass::kCopy},
    ApiClass{"chunk", CallClass::kCopy},
    ApiClass{"clamp", CallClass::kElementwise},
    ApiClass{"clone", CallClass::kCopy},
    ApiClass{"contiguous", CallClass::kCopy},
    ApiClass{"conv1d", CallClass::kProduct},
    ApiClass{"conv2d", CallClass::kProduct},
    ApiClass{"conv3d", CallClass::kProduct},
    ApiClass{"cos", CallClass::kElementwise},
    ApiClass{"cross_entropy", CallClass::kReduction},
    ApiClass{"cumsum", CallClass::kReduction},
    ApiClass{"detach", CallClass::kCopy},
    ApiClass{"div", CallClass::kElementwise},
    ApiClass{"einsum", CallClass::kProduct},
    ApiClass{"embedding", CallClass::kCopy},
    ApiClass{"empty", CallClass::kUninitialised},
    ApiClass{"empty_like", CallClass::kUninitialised},
    ApiClass{"empty_strided", CallClass::kUninitialised},
    ApiClass{"empty_with_format", CallClass::kUninitialised},
    ApiClass{"exp", CallClass::kElementwise},
    ApiClass{"expand", CallClass::kCopy},
    ApiClass{"flatten", CallClass::kCopy},
    ApiClass{"gather", CallClass::kCopy},
    ApiClass{"gelu", CallClass::kElementwise},
    ApiClass{"getitem", CallClass::kCopy},
    ApiClass{"group_norm", CallClass::kReduction},
    ApiClass{"index_select", CallClass::kCopy},
    ApiClass{"layer_norm", CallClass::kReduction},
    ApiClass{"linear", CallClass::kProduct},
    ApiClass{"log", CallClass::kElementwise},
    ApiClass{"log_softmax", CallClass::kReduction},
    ApiClass{"masked_fill", CallClass::kCopy},
    ApiClass{"matmul", CallClass::kProduct},
    ApiClass{"mean", CallClass::kReduction},
    ApiClass{"mm", CallClass::kProduct},
    ApiClass{"mul", CallClass::kElementwise},
    ApiClass{"neg", CallClass::kCopy},
    ApiClass{"new_empty", CallClass::kUninitialised},
    ApiClass{"new_empty_strided", CallClass::kUninitialised},
    ApiClass{"norm", CallClass::kReduction},
    ApiClass{"permute", CallClass::kCopy},
    ApiClass{"pow", CallClass::kElementwise},
    ApiClass{"relu", CallClass::kElementwise},
    ApiClass{"repeat", CallClass::kCopy},
    ApiClass{"reshape", CallClass::kCopy},
    ApiClass{"rms_norm", CallClass::kReduction},
    ApiClass{"rsqrt", CallClass::kElementwise},
    ApiClass{"scaled_dot_product_attention", CallClass::kProduct},
    ApiClass{"select", CallClass::kCopy},
    ApiClass{"sigmoid", CallClass::kElementwise},
    ApiClass{"silu", CallClass::kElementwise},
    ApiClass{"sin", CallClass::kElementwise},
    ApiClass{"softmax", CallClass::kReduction},
    ApiClass{"split", CallClass::kCopy},
    ApiClass{"sqrt", CallClass::kElementwise},
    ApiClass{"squeeze", CallClass::kCopy},
    ApiClass{"stack", CallClass::kCopy},
    ApiClass{"std", CallClass::kReduction},
    ApiClass{"sub", CallClass::kElementwise},
    ApiClass{"sum", CallClass::kReduction},
    ApiClass{"t", CallClass::kCopy},
    ApiClass{"tanh", CallClass::kElementwise},
    ApiClass{"transpose", CallClass::kCopy},
    ApiClass{"truediv", CallClass::kElementwise},
    ApiClass{"unsqueeze", CallClass::kCopy},
    ApiClass{"var", CallClass::kReduction},
    ApiClass{"view", CallClass::kCopy},
    ApiClass{"view_as", CallClass::kCopy},
    ApiClass{"where", CallClass::kCopy},
};

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

}  // namespace

CallClass ClassOfApi(std::string_view api_name) {
  const auto find = [](std::string_view name) {
    const auto found = std::lower_bound(
        kApis.begin(), kApis.end(), name,
        [](const ApiClass& entry, std::string_view key) { return entry.name < key; });
    return found != kApis.end() && found->name == name ? found : kApis.end();
  };
  const std::string_view name = Reduced(api_name);
  if (const auto found = find(name); found != kApis.end()) return found->call_class;
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return CallClass::kDefault;
  const auto found = find(name.substr(dot + 1));
  return found == kApis.end() ? CallClass::kDefault : found->call_class;
}

CallClass ClassOfCall(std::string_view call_name) {
  if (call_name.starts_with("Module.") || call_name.starts_with("Cell.")) {
    return CallClass::kDefault;
  }
  const size_t first = call_name.find('.');
  const size_t direction = call_name.rfind('.');
  if (first == std::string_view::npos || direction <= first) return CallClass::kDefault;
  const size_t number = call_name.rfind('.', direction - 1);
  if (number == std::string_view::npos || number <= first) return CallClass::kDefault;
  return ClassOfApi(call_name.substr(first + 1, number - first - 1));
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
