// The tensors of recorded calls: what they are called, what they are, what is known of them.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text/text_parts.h"
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "watch/points/recording.h"

namespace plumbline::watch {

bool IsActivation(std::string_view op) {
  // In lower case, without what frameworks put between and behind the words.
  static constexpr std::array<std::string_view, 21> kActivations = {
      "elu",       "fastgelu", "gelu",  "hsigmoid", "hardsigmoid", "hswish",  "hardswish",
      "leakyrelu", "logsigmoid", "logsoftmax", "prelu", "relu", "relu6", "reluv2",
      "sigmoid",   "softmax",  "tanh",  "npufastgelu", "logsoftmaxv2", "softmaxv2", "geluv2"};
  std::string word = LowerCase(op.substr(op.rfind('.') + 1));
  std::erase(word, '_');
  return std::ranges::find(kActivations, word) != kActivations.end();
}

namespace {

std::optional<int64_t> WholeOf(const Statistic& statistic) {
  const auto* whole = std::get_if<int64_t>(&statistic);
  return whole == nullptr ? std::nullopt : std::optional(*whole);
}

std::optional<uint64_t> CountOf(const std::optional<int64_t>& count) {
  if (!count || *count < 0) return std::nullopt;
  return static_cast<uint64_t>(*count);
}

// What a sum of this type may lose where it is nearly 0: half of the smallest number above it.
double UnderflowOf(std::optional<DType> dtype) {
  if (dtype == DType::kFloat16) return 0x1p-25;
  if (dtype == DType::kBFloat16) return 0x1p-134;
  if (dtype == DType::kFloat64 || dtype == DType::kComplex128) return 0;
  return 0x1p-150;
}

// How exact the numbers of a dump.json are. plumbline computes in double and rounds once, to the
// type of the tensor (half types by way of float32); other recorders let the framework sum in that
// type or in float32, into which they convert wider ones first.
void TakeSlack(std::optional<DType> dtype, bool by_plumbline, RecordedStatistics& out) {
  constexpr double kFloat = 0x1p-24, kDouble = 0x1p-53, kSums = 16, kTwice = 1.001;
  const double own = dtype ? UnitRoundoff(*dtype) : kFloat;
  const double rounding = (own == 0 ? kDouble : own) * kTwice;
  const bool is_complex = dtype && InfoOf(*dtype).kind == DTypeKind::kComplex;
  const bool is_wide = dtype && InfoOf(*dtype).size_bytes > 4;
  out.mean_slack = rounding;
  out.sum_absolute_slack = UnderflowOf(dtype);
  if (is_complex) out.relative_slack = rounding;
  if (by_plumbline) {
    // 64-bit integers above 2^53 are rounded.
    if (is_wide && own == 0) out.relative_slack = kDouble;
    return;
  }
  out.mean_slack = std::max(rounding, kFloat);
  out.summation_slack = kSums * kFloat;
  const bool may_round = own < kFloat && (!dtype || InfoOf(*dtype).size_bytes >= 4);
  if (!may_round) return;
  out.relative_slack = kFloat;
  out.absolute_slack = 0x1p-150;
  out.may_overflow = true;
}

RecordedStatistics StatisticsOf(const TensorRecord& record, bool by_plumbline) {
  RecordedStatistics out;
  out.dtype = ParseDType(record.dtype_text);
  out.shape = record.shape;
  out.max = NumberOrTruth(record.max);
  out.min = NumberOrTruth(record.min);
  out.mean = NumberOrTruth(record.mean);
  out.norm = NumberOrTruth(record.norm);
  // Of a tensor without dimensions it is the value itself.
  if (out.norm && record.shape.empty()) out.norm = std::fabs(*out.norm);
  out.whole_max = WholeOf(record.max);
  out.whole_min = WholeOf(record.min);
  if (record.max_finite) out.finite_max = NumberOrTruth(*record.max_finite);
  if (record.min_finite) out.finite_min = NumberOrTruth(*record.min_finite);
  out.nan_count = CountOf(record.nan_count);
  out.inf_count = CountOf(record.inf_count);
  out.zero_count = CountOf(record.zero_count);
  out.digest = record.digest.value_or("");
  TakeSlack(out.dtype, by_plumbline, out);
  return out;
}

bool HasNumbers(const RecordedStatistics& statistics) {
  return statistics.max || statistics.min || statistics.mean || statistics.norm ||
         statistics.nan_count || !statistics.digest.empty();
}

// Walks the members of a call.
class TensorWalk {
 public:
  TensorWalk(const Call& call, int64_t place, bool by_plumbline, std::vector<WatchedTensor>& out)
      : call_(call), place_(place), by_plumbline_(by_plumbline), out_(out) {
    const auto name = ParseCallName(call.name);
    if (name) op_ = name->class_name.empty() ? name->path : name->class_name;
    // Saved values have their gradients beside them: "x_grad.0.debug".
    const bool is_saved_gradient = call.name.find("_grad.") != std::string::npos &&
                                   call.name.find(".debug") != std::string::npos;
    is_gradient_ = call.kind == CallKind::kBackward || call.kind == CallKind::kParametersGrad ||
                   is_saved_gradient;
  }

  void Run() {
    for (const auto& [key, value] : call_.members) {
      if (call_.kind == CallKind::kParametersGrad) {
        Walk(value, {"parameters_grad", key, false});
      } else if (key == "input_args" || key == "input_kwargs" || key == "input") {
        Walk(value, {"input", "", true});
      } else if (key == "parameters") {
        Walk(value, {"parameters", "", false});
      } else if (key == "output") {
        Walk(value, {"output", "", false});
      } else {
        Walk(value, {key.empty() ? "value" : key, "", false});
      }
    }
  }

 private:
  struct Role {
    std::string_view io;
    std::string slot;
    bool is_input = false;
  };

  static std::string Below(const Role& role, const std::string& part) {
    return role.slot.empty() ? part : role.slot + "." + part;
  }

  void Walk(const Value& value, const Role& role) {
    if (const auto* tensor = value.As<TensorRecord>()) return Add(*tensor, role);
    if (const auto* list = value.As<ValueList>()) {
      // One gradient of a parameter is its gradient.
      const bool is_sole = role.io == "parameters_grad" && list->size() == 1;
      for (size_t i = 0; i < list->size(); ++i) {
        Role inner = role;
        if (!is_sole) inner.slot = Below(role, std::to_string(i));
        Walk((*list)[i], inner);
      }
    }
    if (const auto* map = value.As<ValueMap>()) {
      for (const auto& [key, member] : *map) {
        Role inner = role;
        inner.slot = Below(role, key);
        Walk(member, inner);
      }
    }
  }

  void Add(const TensorRecord& record, const Role& role) {
    WatchedTensor& tensor = out_.emplace_back();
    tensor.name = call_.name;
    tensor.io = role.io;
    tensor.slot = role.slot.empty() ? "0" : role.slot;
    tensor.op = op_;
    tensor.is_input = role.is_input;
    tensor.place = place_;
    tensor.slot_number = number_++;
    tensor.dtype = record.dtype_text;
    tensor.shape = record.shape;
    tensor.has_shape = true;
    tensor.file = record.data_name.value_or("");
    tensor.statistics = StatisticsOf(record, by_plumbline_);
    tensor.has_statistics = HasNumbers(tensor.statistics);
    if (role.io == "parameters") {
      tensor.kinds |= kWeight;
      tensor.is_trained = record.requires_grad.value_or(false);
    }
    if (is_gradient_) tensor.kinds |= kGradient;
    const bool is_result = role.io == "output" && call_.kind == CallKind::kForward;
    if (is_result && IsActivation(op_)) tensor.kinds |= kActivation;
  }

  const Call& call_;
  int64_t place_;
  bool by_plumbline_;
  std::vector<WatchedTensor>& out_;
  std::string op_;
  bool is_gradient_ = false;
  int64_t number_ = 0;
};

}  // namespace

void AppendTensors(const Call& call, int64_t place, bool by_plumbline,
                   std::vector<WatchedTensor>& out) {
  TensorWalk(call, place, by_plumbline, out).Run();
}

}  // namespace plumbline::watch
