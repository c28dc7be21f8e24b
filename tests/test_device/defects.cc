#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "test_device.h"

namespace plumbline_test_device {

enum class Kind : uint8_t {
  kScale, kNan, kBf16Acc, kLostCarry, kSleep, kHang, kAbort, kCrash, kError
};

struct Defect {
  int64_t number = 0;
  std::string op;  // as BaseName() spells it
  Kind kind = Kind::kScale;
  std::optional<at::ScalarType> dtype;
  double value = 0.0;
  int64_t lane = -1;
  int64_t skip = 0;
  int64_t times = -1;
  std::atomic<int64_t> seen{0};
  std::atomic<int64_t> hits{0};
};

namespace {

constexpr int64_t kLanes = 16;

struct DefectTable {
  std::mutex mutex;
  std::atomic<size_t> count{0};
  int64_t last_number = 0;
  std::vector<std::shared_ptr<Defect>> active;
  std::map<int64_t, std::shared_ptr<Defect>> all;  // hits can be asked for after clearing
};
DefectTable& TheDefectTable() {
  static DefectTable* const table = new DefectTable;
  return *table;
}

// "aten::add_" -> "add": a device's kernel is the same for the functional, the in-place and the
// `.out` form, and PyTorch itself turns most of the former two into the last.
std::string BaseName(const std::string& name) {
  std::string base = name.rfind("aten::", 0) == 0 ? name.substr(6) : name;
  const bool is_in_place = base.size() > 1 && base.back() == '_' && base[base.size() - 2] != '_';
  if (is_in_place) base.pop_back();
  return base;
}

bool IsNumeric(Kind kind) {
  return kind == Kind::kScale || kind == Kind::kNan || kind == Kind::kBf16Acc ||
         kind == Kind::kLostCarry;
}

Kind ParseKind(const std::string& text) {
  static const std::unordered_map<std::string, Kind> kinds = {
      {"scale", Kind::kScale},          {"nan", Kind::kNan},     {"bf16acc", Kind::kBf16Acc},
      {"lost_carry", Kind::kLostCarry}, {"sleep", Kind::kSleep}, {"hang", Kind::kHang},
      {"abort", Kind::kAbort},          {"crash", Kind::kCrash}, {"error", Kind::kError}};
  const auto found = kinds.find(text);
  TORCH_CHECK(found != kinds.end(), "defect: unknown kind \"", text,
              "\" (expected scale, nan, bf16acc, lost_carry, sleep, hang, abort, crash or error)");
  return found->second;
}

std::optional<at::ScalarType> ParseDType(const std::string& text) {
  static const std::unordered_map<std::string, at::ScalarType> dtypes = {
      {"float16", at::kHalf},
      {"bfloat16", at::kBFloat16},
      {"float32", at::kFloat},
      {"float64", at::kDouble},
      {"complex64", at::kComplexFloat},
      {"complex128", at::kComplexDouble},
      {"int8", at::kChar},
      {"uint8", at::kByte},
      {"int16", at::kShort},
      {"int32", at::kInt},
      {"int64", at::kLong},
      {"bool", at::kBool}};
  if (text.empty()) return std::nullopt;
  const auto found = dtypes.find(text);
  TORCH_CHECK(found != dtypes.end(), "defect: unknown dtype \"", text,
              "\" (expected a name as in torch.float32, without \"torch.\")");
  return found->second;
}

// Whether calls of this overload come to Fallback(), or to a copy within the device.
bool ReachesDevice(const c10::OperatorHandle& op) {
  using c10::DispatchKey;
  static const std::unordered_set<std::string> own = {
      "empty", "empty_strided", "view", "as_strided", "_reshape_alias", "set", "resize",
      "record_stream", "_copy_from_and_resize", "_local_scalar_dense", "_efficientzerotensor"};
  if (own.count(BaseName(op.operator_name().name)) > 0) return false;
  if (op.hasKernelForDispatchKey(DispatchKey::PrivateUse1)) return true;
  return !op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) &&
         !op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) &&
         !op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional);
}

// A defect that can never act would let a test pass for nothing.
void CheckOperator(const std::string& base) {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  bool is_known = false;
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (BaseName(name.name) != base) continue;
    const auto op = dispatcher.findSchema(name);
    if (!op) continue;
    is_known = true;
    if (ReachesDevice(*op)) return;
  }
  TORCH_CHECK(is_known, "defect: there is no operator \"", base,
              "\" (expected a base name as \"mm\" or \"_softmax_backward_data\", or \"ns::name\")");
  TORCH_CHECK(false, "defect: operator \"", base,
              "\" never reaches the device, since PyTorch makes it of other operators or moves no "
              "values for it. Run it once and see op_counts() for those that do");
}

// ---------------------------------------------------------------- numeric kinds

// Clears the bit that receives the carry out of the lower half of the mantissa (of the lowest byte,
// for integers of several bytes): wrong in about half of the elements.
at::Tensor WithoutCarry(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  switch (dense.scalar_type()) {
    case at::kDouble:
      return dense.view(at::kLong).bitwise_and(~(int64_t{1} << 26)).view(at::kDouble);
    case at::kFloat: return dense.view(at::kInt).bitwise_and(~(1 << 12)).view(at::kFloat);
    case at::kHalf: return dense.view(at::kShort).bitwise_and(~(1 << 5)).view(at::kHalf);
    case at::kBFloat16:
      return dense.view(at::kShort).bitwise_and(~(1 << 4)).view(at::kBFloat16);
    case at::kLong: case at::kInt: case at::kShort: return dense.bitwise_and(~(1 << 8));
    case at::kChar: case at::kByte: return dense.bitwise_and(0xEF);
    default: return dense;
  }
}

at::Tensor AsFaultySum(Accumulator accumulator, const std::string& base,
                       const torch::jit::Stack& arguments, const at::Tensor& result) {
  if (arguments.empty()) return {};
  return FaultySum(accumulator, base, arguments, result);
}

// The values that the defect makes of `result`, of the same shape and dtype. Complex numbers are
// seen as pairs of real ones.
at::Tensor SpoiledValues(const Defect& defect, const torch::jit::Stack& arguments,
                         const at::Tensor& result) {
  const bool is_float = result.is_floating_point();
  switch (defect.kind) {
    case Kind::kScale: return is_float ? result * defect.value : result;
    case Kind::kNan: return is_float ? at::full_like(result, std::nan("")) : result;
    case Kind::kBf16Acc: {
      const at::Tensor sum = AsFaultySum(Accumulator::kBFloat16, defect.op, arguments, result);
      if (sum.defined()) return sum;
      return is_float ? result.to(at::kBFloat16).to(result.scalar_type()) : result;
    }
    default: {
      const at::Tensor sum = AsFaultySum(Accumulator::kForgetsCarry, defect.op, arguments, result);
      return sum.defined() ? sum : WithoutCarry(result);
    }
  }
}

bool AreBytesEqual(const at::Tensor& one, const at::Tensor& other) {
  const at::Tensor left = one.contiguous();
  const at::Tensor right = other.contiguous();
  return std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

// Whether some byte of `result` changed.
bool Spoil(const Defect& defect, const torch::jit::Stack& arguments, const at::Tensor& result) {
  if (result.numel() == 0) return false;
  if (result.is_complex()) return Spoil(defect, {}, at::view_as_real(result));
  const at::Tensor before = result.clone();
  at::Tensor values = SpoiledValues(defect, arguments, before);
  const int64_t lane = defect.kind == Kind::kNan ? std::max<int64_t>(defect.lane, 0) : defect.lane;
  if (lane >= 0) {
    const at::Tensor is_lane =
        at::arange(result.numel()).remainder(kLanes).eq(lane).view(result.sizes());
    values = at::where(is_lane, values, before);
  }
  if (AreBytesEqual(values, before)) return false;
  result.copy_(values);
  return true;
}

}  // namespace

int64_t InjectDefect(const DefectOptions& options) {
  auto defect = std::make_shared<Defect>();
  defect->op = BaseName(options.op);
  defect->kind = ParseKind(options.kind);
  defect->dtype = ParseDType(options.dtype);
  defect->value = options.value;
  defect->lane = options.lane;
  defect->skip = options.skip;
  defect->times = options.times;
  TORCH_CHECK(options.lane < kLanes, "defect: lane ", options.lane, " (expected 0 to ",
              kLanes - 1, ")");
  CheckOperator(defect->op);
  DefectTable& table = TheDefectTable();
  const std::lock_guard lock(table.mutex);
  defect->number = ++table.last_number;
  table.all[defect->number] = defect;
  table.active.push_back(defect);
  table.count = table.active.size();
  return defect->number;
}

void ClearDefect(int64_t number) {
  DefectTable& table = TheDefectTable();
  const std::lock_guard lock(table.mutex);
  std::erase_if(table.active, [number](const std::shared_ptr<Defect>& defect) {
    return number < 0 || defect->number == number;
  });
  table.count = table.active.size();
}

int64_t DefectHits(int64_t number) {
  DefectTable& table = TheDefectTable();
  const std::lock_guard lock(table.mutex);
  const auto found = table.all.find(number);
  TORCH_CHECK(found != table.all.end(), "defect: there is no number ", number);
  return found->second->hits;
}

ActiveDefects MatchDefects(const c10::OperatorName& name, std::optional<at::ScalarType> dtype) {
  DefectTable& table = TheDefectTable();
  if (table.count.load(std::memory_order_relaxed) == 0) return {};
  const std::string base = BaseName(name.name);
  ActiveDefects matching;
  const std::lock_guard lock(table.mutex);
  for (const std::shared_ptr<Defect>& defect : table.active) {
    if (defect->op != base || (defect->dtype && defect->dtype != dtype)) continue;
    if (defect->seen++ < defect->skip) continue;
    if (defect->times >= 0 && defect->hits >= defect->times) continue;
    matching.push_back(defect);
  }
  return matching;
}

void SufferEvents(const ActiveDefects& defects, const c10::OperatorName& name) {
  for (const std::shared_ptr<Defect>& defect : defects) {
    if (IsNumeric(defect->kind)) continue;
    ++defect->hits;
    switch (defect->kind) {
      case Kind::kSleep:
        std::this_thread::sleep_for(std::chrono::duration<double>(defect->value));
        break;
      case Kind::kHang:
        for (;;) pause();
      case Kind::kAbort: std::abort();
      case Kind::kCrash: std::raise(SIGSEGV); break;
      default: TORCH_CHECK(false, "testdev: device error in ", name, " (injected)");
    }
  }
}

bool NeedArguments(const ActiveDefects& defects) {
  return std::any_of(defects.begin(), defects.end(), [](const std::shared_ptr<Defect>& defect) {
    return defect->kind == Kind::kBf16Acc || defect->kind == Kind::kLostCarry;
  });
}

void SpoilResults(const ActiveDefects& defects, const torch::jit::Stack& arguments,
                  const std::vector<at::Tensor>& results) {
  for (const std::shared_ptr<Defect>& defect : defects) {
    if (!IsNumeric(defect->kind)) continue;
    bool has_changed = false;
    for (const at::Tensor& result : results) {
      if (result.defined()) has_changed |= Spoil(*defect, arguments, result);
    }
    if (has_changed) ++defect->hits;
  }
}

}  // namespace plumbline_test_device
