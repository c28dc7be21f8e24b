#include "precheck/mindspore_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/number_text.h"
#include "precheck/mindspore_metrics.h"

namespace plumbline::precheck {
namespace {

// Upstream's program passes up to here; its manual says 1e-4.
constexpr double kDocumentedMaxAbs = 1e-4;

Cell NumberCell(double value) { return Number{.value = value, .is_double = true}; }

// "(1, 4096)", "(5,)", "()": a tuple as Python prints it.
std::string ShapeText(const Shape& shape) {
  return shape.size() == 1 ? fmt::format("({},)", shape[0])
                           : fmt::format("({})", fmt::join(shape, ", "));
}

std::string_view SequenceWord(Sequence kind) {
  switch (kind) {
    case Sequence::kList:
      return "list";
    case Sequence::kTuple:
      return "tuple";
    case Sequence::kSize:
      return "torch.Size";
    case Sequence::kSlice:
      return "slice";
  }
  return "list";
}

// What stands in a column "Dtype" for a value of any kind.
std::string DTypeText(const CallValue& value) {
  if (const auto* tensor = value.As<TensorPlace>()) {
    return std::string(MindSporeDTypeText(tensor->dtype));
  }
  if (const auto* items = value.As<CallSequence>()) return std::string(SequenceWord(items->kind));
  if (const auto* special = value.As<SpecialValue>()) {
    return special->kind == Special::kDType ? "mindspore.dtype" : special->type;
  }
  if (value.As<CallMap>() != nullptr) return "dict";
  if (value.As<bool>() != nullptr) return "bool";
  if (value.As<int64_t>() != nullptr) return "int";
  if (value.As<double>() != nullptr) return "float";
  return value.As<std::string>() != nullptr ? "str" : "None";
}

bool IsContainer(const CallValue& value) {
  return value.As<CallSequence>() != nullptr || value.As<CallMap>() != nullptr;
}

bool IsFloatingValue(const CallValue& value) {
  const auto* tensor = value.As<TensorPlace>();
  return tensor != nullptr && InfoOf(tensor->dtype).kind == DTypeKind::kFloat;
}

// A plain number, bools among them.
std::optional<double> AsNumber(const CallValue& value) {
  if (const auto* truth = value.As<bool>()) return *truth ? 1 : 0;
  if (const auto* integer = value.As<int64_t>()) return static_cast<double>(*integer);
  if (const auto* real = value.As<double>()) return *real;
  return std::nullopt;
}

// Adds a sentence to the message of a row.
void Say(OutputRow& row, std::string_view sentence) {
  if (!row.message.empty()) row.message += ' ';
  row.message += sentence;
}

// Views a tensor in the memory of its side. Nothing: it does not lie within it.
std::optional<TensorView> ViewOf(const TensorPlace& place, const std::vector<int64_t>& strides,
                                 std::span<const std::byte> memory) {
  const Result<int64_t> count = ElementCount(place.shape);
  if (!count) return std::nullopt;
  const size_t size = InfoOf(place.dtype).size_bytes;
  if (place.offset > memory.size()) return std::nullopt;
  if (static_cast<uint64_t>(*count) > (memory.size() - place.offset) / size) return std::nullopt;
  return TensorView{place.dtype, memory.data() + place.offset, place.shape, strides};
}

// Judges one pair after the other and collects their rows.
class Judge {
 public:
  Judge(std::string prefix, std::span<const std::byte> bench, std::span<const std::byte> tested,
        const MindSporeLimits& limits)
      : prefix_(std::move(prefix)), bench_memory_(bench), tested_memory_(tested), limits_(limits) {}

  // `path` is "1" of the second output, "1_0" of the first item in it.
  void Add(const std::string& path, const CallValue& bench, const CallValue& tested);
  // An output that the tested side does not have.
  void AddMissing(const std::string& path, const CallValue& bench, std::string why);
  void AddSurplus(const std::string& path, const CallValue& tested, std::string why);
  // A sentence behind the message of the first row.
  void Note(std::string_view text);

  [[nodiscard]] bool AllZero(const CallValue& value, bool is_bench) const;
  DirectionOutcome Finish(std::string_view nothing);

 private:
  OutputRow& NewRow(const std::string& path, const CallValue& bench, const CallValue& tested);
  void AddItems(const std::string& path, const CallSequence& bench, const CallSequence& tested);
  void AddMembers(const std::string& path, const CallMap& bench, const CallMap& tested);
  void AddTensors(OutputRow& row, const TensorPlace& bench, const TensorPlace& tested);
  void AddPlain(OutputRow& row, const CallValue& bench, const CallValue& tested);
  void Decide(OutputRow& row, const MindSporeMetrics& metrics) const;

  std::string prefix_;
  std::span<const std::byte> bench_memory_, tested_memory_;
  const MindSporeLimits& limits_;
  std::vector<OutputRow> rows_;
};

OutputRow& Judge::NewRow(const std::string& path, const CallValue& bench, const CallValue& tested) {
  OutputRow& row = rows_.emplace_back();
  row.name = fmt::format("{}.output.{}", prefix_, path);
  row.bench_dtype = DTypeText(bench);
  row.device_dtype = DTypeText(tested);
  const auto* tensor = bench.As<TensorPlace>();
  row.shape = tensor != nullptr ? ShapeText(tensor->shape) : "()";
  row.status = CheckStatus::kError;
  return row;
}

void Judge::Add(const std::string& path, const CallValue& bench, const CallValue& tested) {
  const auto* bench_items = bench.As<CallSequence>();
  const auto* tested_items = tested.As<CallSequence>();
  if (bench_items != nullptr && tested_items != nullptr) {
    return AddItems(path, *bench_items, *tested_items);
  }
  const auto* bench_members = bench.As<CallMap>();
  const auto* tested_members = tested.As<CallMap>();
  if (bench_members != nullptr && tested_members != nullptr) {
    return AddMembers(path, *bench_members, *tested_members);
  }
  OutputRow& row = NewRow(path, bench, tested);
  const auto* bench_tensor = bench.As<TensorPlace>();
  const auto* tested_tensor = tested.As<TensorPlace>();
  if (bench_tensor != nullptr && tested_tensor != nullptr) {
    AddTensors(row, *bench_tensor, *tested_tensor);
  } else if (bench_tensor != nullptr || tested_tensor != nullptr || IsContainer(bench) ||
             IsContainer(tested)) {
    Say(row, fmt::format("The kinds differ: {} and {}.", row.bench_dtype, row.device_dtype));
  } else {
    AddPlain(row, bench, tested);
  }
}

void Judge::AddItems(const std::string& path, const CallSequence& bench,
                     const CallSequence& tested) {
  for (size_t i = 0; i < bench.items.size(); ++i) {
    const std::string inner = fmt::format("{}_{}", path, i);
    if (i < tested.items.size()) {
      Add(inner, bench.items[i], tested.items[i]);
    } else {
      AddMissing(inner, bench.items[i], "The tested side has fewer items.");
    }
  }
}

void Judge::AddMembers(const std::string& path, const CallMap& bench, const CallMap& tested) {
  for (const auto& [key, value] : bench) {
    const std::string inner = fmt::format("{}_{}", path, key);
    const auto found = std::find_if(tested.begin(), tested.end(), [&key = key](const auto& member) {
      return member.first == key;
    });
    if (found != tested.end()) {
      Add(inner, value, found->second);
    } else {
      AddMissing(inner, value, "The tested side has no such key.");
    }
  }
}

void Judge::AddMissing(const std::string& path, const CallValue& bench, std::string why) {
  OutputRow& row = NewRow(path, bench, CallValue());
  row.device_dtype.clear();
  row.message = std::move(why);
}

void Judge::AddSurplus(const std::string& path, const CallValue& tested, std::string why) {
  OutputRow& row = NewRow(path, CallValue(), tested);
  row.bench_dtype.clear();
  const auto* tensor = tested.As<TensorPlace>();
  if (tensor != nullptr) row.shape = ShapeText(tensor->shape);
  row.message = std::move(why);
}

void Judge::Note(std::string_view text) {
  if (!rows_.empty()) Say(rows_.front(), text);
}

// Shapes decide before values; the types may differ, as upstream has it: both are taken as float64.
void Judge::AddTensors(OutputRow& row, const TensorPlace& bench, const TensorPlace& tested) {
  if (bench.shape != tested.shape) {
    return Say(row,
               fmt::format("The shapes differ: the tested one is {}.", ShapeText(tested.shape)));
  }
  if (InfoOf(bench.dtype).kind == DTypeKind::kComplex ||
      InfoOf(tested.dtype).kind == DTypeKind::kComplex) {
    row.status = CheckStatus::kSkip;
    return Say(row, "The rule knows no complex numbers.");
  }
  const std::vector<int64_t> strides = ContiguousStrides(bench.shape);
  const auto bench_view = ViewOf(bench, strides, bench_memory_);
  const auto tested_view = ViewOf(tested, strides, tested_memory_);
  if (!bench_view || !tested_view) {
    // What an executor of another version, or one whose memory was damaged, would answer.
    return Say(row, "A result lies outside the memory of the call.");
  }
  if (bench_view->element_count() == 0) {
    row.status = CheckStatus::kSkip;
    return Say(row, "There are no elements to compare.");
  }
  Decide(row, MeasureMindSpore(*bench_view, *tested_view));
}

// NaN passes neither limit: both are asked for what must hold.
void Judge::Decide(OutputRow& row, const MindSporeMetrics& metrics) const {
  row.cosine = NumberCell(metrics.cosine);
  row.max_abs_error = NumberCell(metrics.max_abs_error);
  row.max_rel_error = NumberCell(metrics.max_rel_error);
  if (!(metrics.cosine > limits_.cosine)) {
    Say(row, fmt::format("Cosine {} is not above {}.", PythonFloat(metrics.cosine),
                         PythonFloat(limits_.cosine)));
  }
  if (!(metrics.max_abs_error < limits_.max_abs_error)) {
    Say(row, fmt::format("MaxAbsErr {} is not below {}.", PythonFloat(metrics.max_abs_error),
                         PythonFloat(limits_.max_abs_error)));
  }
  if (metrics.nonfinite_count > 0) {
    return Say(row,
               fmt::format("{} NaN or infinite, {} of them not the same on both sides; MaxAbsErr "
                           "of the others {}.",
                           CountText(metrics.nonfinite_count, "element is", "elements are"),
                           metrics.nonfinite_differs, PythonFloat(metrics.finite_max_abs)));
  }
  if (!row.message.empty()) return;
  row.status = CheckStatus::kPass;
  if (metrics.max_abs_error >= kDocumentedMaxAbs) {
    Say(row, fmt::format("MaxAbsErr is not below {}.", PythonFloat(kDocumentedMaxAbs)));
  }
  // The rule says little where all values are smaller than what it lets pass.
  const double magnitude = std::max(metrics.bench_magnitude, metrics.tested_magnitude);
  if (metrics.max_abs_error > 0 && magnitude < limits_.max_abs_error) {
    Say(row, fmt::format("All values are below the limit of MaxAbsErr, the largest is {}.",
                         PythonFloat(magnitude)));
  }
}

// Upstream calls everything that is no tensor an error, also where both sides say the same.
void Judge::AddPlain(OutputRow& row, const CallValue& bench, const CallValue& tested) {
  const std::optional<double> b = AsNumber(bench);
  const std::optional<double> t = AsNumber(tested);
  if (b && t) {
    const double error = std::abs(*b - *t);
    row.max_abs_error = NumberCell(error);
    const bool is_real = bench.As<double>() != nullptr || tested.As<double>() != nullptr;
    // Integers and truth values are right or wrong; the doubles of large integers hide the latter.
    const auto* bench_integer = bench.As<int64_t>();
    const auto* tested_integer = tested.As<int64_t>();
    const bool are_integers = bench_integer != nullptr && tested_integer != nullptr;
    const bool is_equal = are_integers ? *bench_integer == *tested_integer : *b == *t;
    const bool passes = is_real ? error < limits_.max_abs_error : is_equal;
    row.status = passes ? CheckStatus::kPass : CheckStatus::kError;
  } else if (const auto* text = bench.As<std::string>()) {
    const auto* other = tested.As<std::string>();
    if (other != nullptr && *text == *other) row.status = CheckStatus::kPass;
  } else if (const auto* special = bench.As<SpecialValue>()) {
    const auto* other = tested.As<SpecialValue>();
    const bool are_dtypes =
        other != nullptr && special->kind == Special::kDType && other->kind == Special::kDType;
    // The frameworks spell them differently.
    const auto dtype = are_dtypes ? ParseDType(special->text) : std::nullopt;
    if (dtype && dtype == ParseDType(other->text)) row.status = CheckStatus::kPass;
  }
  if (row.status != CheckStatus::kPass) {
    Say(row, "The values differ, or are of kinds that cannot be compared.");
  }
}

bool Judge::AllZero(const CallValue& value, bool is_bench) const {
  const auto* tensor = value.As<TensorPlace>();
  if (tensor == nullptr) return false;
  const std::vector<int64_t> strides = ContiguousStrides(tensor->shape);
  const auto view = ViewOf(*tensor, strides, is_bench ? bench_memory_ : tested_memory_);
  if (!view) return false;
  // Of negative zeros the metrics would say so, too; they are compared as numbers.
  if (view->element_count() == 0) return true;
  const MindSporeMetrics metrics = MeasureMindSpore(*view, *view);
  return metrics.nonfinite_count == 0 && metrics.bench_magnitude == 0;
}

// A direction without a row that was judged is skipped: no comparison is no pass.
DirectionOutcome Judge::Finish(std::string_view nothing) {
  DirectionOutcome outcome;
  std::vector<CheckStatus> statuses;
  for (const OutputRow& row : rows_) statuses.push_back(row.status);
  outcome.status = Worst(statuses);
  outcome.rows = std::move(rows_);
  if (outcome.status == CheckStatus::kNone) {
    outcome.status = CheckStatus::kSkip;
    outcome.skip = Skip{SkipCause::kNoOutput, std::string(nothing)};
  } else if (outcome.status == CheckStatus::kSkip) {
    outcome.skip = Skip{SkipCause::kNoOutput, outcome.rows.front().message};
  }
  return outcome;
}

// The outputs of a side: the items of a list or tuple, or the one value, without nulls.
std::vector<const CallValue*> OutputsOf(const CallValue& value, bool with_nulls) {
  std::vector<const CallValue*> outputs;
  const auto* items = value.As<CallSequence>();
  if (items == nullptr) {
    if (with_nulls || !value.is_null()) outputs.push_back(&value);
    return outputs;
  }
  for (const CallValue& item : items->items) {
    if (with_nulls || !item.is_null()) outputs.push_back(&item);
  }
  return outputs;
}

// Gradients that are there on one side only mean the same where the other one is zero: PyTorch
// accumulates nothing where MindSpore writes zeros.
void AddGradient(Judge& judge, size_t& number, const CallValue& bench, const CallValue& tested) {
  const bool has_bench = IsFloatingValue(bench), has_tested = IsFloatingValue(tested);
  if (has_bench && has_tested) {
    judge.Add(std::to_string(number++), bench, tested);
  } else if (has_bench && !judge.AllZero(bench, true)) {
    judge.AddMissing(std::to_string(number++), bench, "The tested side has no gradient here.");
  } else if (has_tested && !judge.AllZero(tested, false)) {
    judge.AddSurplus(std::to_string(number++), tested, "The benchmark has no gradient here.");
  }
}

}  // namespace

std::string_view MindSporeDTypeText(DType dtype) {
  const DTypeInfo& info = InfoOf(dtype);
  return info.mindspore_name.empty() ? info.name : info.mindspore_name;
}

DirectionOutcome JudgeForward(std::string_view call_name, const ReturnedSide& bench,
                              const ReturnedSide& tested, const MindSporeLimits& limits) {
  Judge judge(fmt::format("{}.forward", call_name), bench.memory, tested.memory, limits);
  const std::vector<const CallValue*> bench_outputs = OutputsOf(*bench.value, false);
  const std::vector<const CallValue*> tested_outputs = OutputsOf(*tested.value, false);
  for (size_t i = 0; i < bench_outputs.size(); ++i) {
    if (i < tested_outputs.size()) {
      judge.Add(std::to_string(i), *bench_outputs[i], *tested_outputs[i]);
    } else {
      judge.AddMissing(
          std::to_string(i), *bench_outputs[i],
          fmt::format("The tested side has {}, the benchmark {}.",
                      CountText(tested_outputs.size(), "output"), bench_outputs.size()));
    }
  }
  if (tested_outputs.size() > bench_outputs.size()) {
    judge.Note(
        fmt::format("The tested side has {} outputs, the benchmark {}: the others are not "
                    "compared.",
                    tested_outputs.size(), bench_outputs.size()));
  }
  return judge.Finish("the benchmark returned nothing");
}

DirectionOutcome JudgeBackward(std::string_view call_name, const ReturnedSide& bench,
                               const ReturnedSide& tested, GradientOrder order,
                               const MindSporeLimits& limits) {
  Judge judge(fmt::format("{}.backward", call_name), bench.memory, tested.memory, limits);
  std::vector<const CallValue*> bench_gradients = OutputsOf(*bench.value, true);
  std::vector<const CallValue*> tested_gradients = OutputsOf(*tested.value, true);
  const bool is_listed =
      order == GradientOrder::kListed || bench_gradients.size() != tested_gradients.size();
  if (is_listed) {
    const auto is_left_out = [](const CallValue* value) { return !IsFloatingValue(*value); };
    std::erase_if(bench_gradients, is_left_out);
    std::erase_if(tested_gradients, is_left_out);
  }
  size_t number = 0;
  const size_t count = is_listed ? std::min(bench_gradients.size(), tested_gradients.size())
                                 : bench_gradients.size();
  for (size_t i = 0; i < count; ++i) {
    // What was not recorded nobody needed in the training.
    if (order == GradientOrder::kRecorded && tested_gradients[i]->is_null()) continue;
    AddGradient(judge, number, *bench_gradients[i], *tested_gradients[i]);
  }
  if (is_listed && bench_gradients.size() != tested_gradients.size()) {
    judge.Note(
        fmt::format("The recording has {} and the benchmark {}: they were taken in order "
                    "and may not belong together.",
                    CountText(tested_gradients.size(), "gradient"), bench_gradients.size()));
  }
  return judge.Finish(order == GradientOrder::kAligned ? "neither side has a gradient"
                                                       : "no gradient was recorded");
}

}  // namespace plumbline::precheck
