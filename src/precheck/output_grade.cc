#include "precheck/output_grade.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/number_text.h"
#include "precheck/grading/paired_elements.h"
#include "precheck/output_metrics.h"
#include "precheck/standards.h"
#include "tensor/element_value.h"

namespace plumbline::precheck {
namespace {

std::string Digits(double value) {
  std::string text;
  AppendGeneral(value, 4, text);
  return text;
}

Number Fixed(double value) { return {value, true, false}; }
// A count of nothing, where upstream has an integer in place of a quotient.
Number Zero() { return {0, false, true}; }
// A double where the arithmetic was in doubles, else the float that it is rounded to.
Number OfElements(double value, bool is_double) {
  return {is_double ? value : static_cast<double>(static_cast<float>(value)), is_double, false};
}
Number ShareOfSome(double share, uint64_t of) { return of == 0 ? Zero() : Fixed(share); }

std::string ShapeText(const Shape& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

// ---- Kinds of values ----

// The name that a user of the framework knows the type by.
std::string TypeText(const CallValue& value) {
  if (value.is_null()) return "NoneType";
  if (value.As<bool>() != nullptr) return "bool";
  if (value.As<int64_t>() != nullptr) return "int";
  if (value.As<double>() != nullptr) return "float";
  if (value.As<std::string>() != nullptr) return "str";
  if (value.As<CallMap>() != nullptr) return "dict";
  if (value.As<TensorPlace>() != nullptr) return "torch.Tensor";
  if (const auto* sequence = value.As<CallSequence>()) {
    switch (sequence->kind) {
      case Sequence::kList:
        return "list";
      case Sequence::kTuple:
        return "tuple";
      case Sequence::kSize:
        return "torch.Size";
      case Sequence::kSlice:
        return "slice";
    }
  }
  switch (value.As<SpecialValue>()->kind) {
    case Special::kDType:
      return "torch.dtype";
    case Special::kMemoryFormat:
      return "torch.memory_format";
    case Special::kDevice:
      return "torch.device";
    case Special::kEllipsis:
      return "ellipsis";
    case Special::kNumpy:
      return fmt::format("numpy.{}", value.As<SpecialValue>()->type);
    case Special::kOther:
      return value.As<SpecialValue>()->type;
  }
  return "object";
}
std::string ClassText(const CallValue& value) {
  return fmt::format("<class '{}'>", TypeText(value));
}

bool IsTree(const CallValue& value) {
  return value.As<CallSequence>() != nullptr || value.As<CallMap>() != nullptr;
}

// Whether the two can be compared at all: alike, or True beside 1, as Python has it.
bool AreAlike(const CallValue& bench, const CallValue& device) {
  if (bench.As<bool>() != nullptr && device.As<int64_t>() != nullptr) return true;
  if (bench.storage().index() != device.storage().index()) return false;
  const auto* special = bench.As<SpecialValue>();
  return special == nullptr || (special->kind == device.As<SpecialValue>()->kind &&
                                special->type == device.As<SpecialValue>()->type);
}

// Of plain values of one kind. NaN is equal to nothing: it never passes.
bool AreEqual(const CallValue& bench, const CallValue& device) {
  if (const auto* integer = device.As<int64_t>()) {
    if (const auto* truth = bench.As<bool>()) return static_cast<int64_t>(*truth) == *integer;
    return *bench.As<int64_t>() == *integer;
  }
  if (const auto* truth = device.As<bool>()) return *bench.As<bool>() == *truth;
  if (const auto* real = device.As<double>()) return *bench.As<double>() == *real;
  if (const auto* text = device.As<std::string>()) return *bench.As<std::string>() == *text;
  return bench.As<SpecialValue>()->text == device.As<SpecialValue>()->text;
}

// Types that can be compared: all floats, all complex ones, all integers; bool only with itself and
// uint8, of which it is one.
bool AreComparable(DType bench, DType device) {
  const auto kind = [](DType dtype) {
    const DTypeKind of = InfoOf(dtype).kind;
    return of == DTypeKind::kUnsigned ? DTypeKind::kSigned : of;
  };
  if (kind(bench) == kind(device)) return true;
  return (bench == DType::kBool && device == DType::kUInt8) ||
         (bench == DType::kUInt8 && device == DType::kBool);
}

// Narrow floats have digits for a share of 0.001 only; wider ones are judged by 0.0001, too.
bool IsNarrow(DType dtype) {
  return InfoOf(dtype).kind == DTypeKind::kFloat && InfoOf(dtype).size_bytes <= 2;
}

// ---- One float output ----

// Fills the cells of a standard.
void FillStandard(Standard standard, const FloatMetrics& metrics, OutputRow* row) {
  const auto of_normal = [&](double value) {
    return metrics.normal == 0 ? Zero() : OfElements(value, metrics.is_double);
  };
  switch (standard) {
    case Standard::kBinary:
      row->error_rate = Fixed(metrics.error_rate);
      return;
    case Standard::kThousandth:
      row->thousandth = Fixed(metrics.thousandth);
      return;
    case Standard::kUlp:
      row->max_ulp = OfElements(metrics.max_ulp, metrics.is_double);
      row->mean_ulp = OfElements(metrics.mean_ulp, metrics.is_double);
      row->ulp_proportion = Fixed(metrics.ulp_proportion);
      return;
    case Standard::kBenchmark:
      row->small_value_error_ratio = ShareOfSome(metrics.abs_error_ratio, metrics.small);
      row->rmse = Fixed(metrics.rmse);
      row->max_rel_error = of_normal(metrics.max_rel_error);
      row->mean_rel_error = of_normal(metrics.mean_rel_error);
      row->error_balance = Fixed(metrics.error_balance);
      return;
    case Standard::kAccumulative:
      row->error_balance = Fixed(metrics.error_balance);
      [[fallthrough]];
    case Standard::kAbsolute:
      row->inf_nan_error_ratio = ShareOfSome(metrics.inf_nan_error_ratio, metrics.not_finite);
      row->rel_error_ratio = ShareOfSome(metrics.rel_error_ratio, metrics.normal);
      row->abs_error_ratio = ShareOfSome(metrics.abs_error_ratio, metrics.small);
      return;
  }
}

void Say(std::string_view sentence, OutputRow* row) {
  if (!row->message.empty()) row->message += ' ';
  row->message += sentence;
}

// What a reader has to know of the numbers of a standard.
void SayOfStandard(Standard standard, const FloatMetrics& metrics, DType device_dtype,
                   OutputRow* row) {
  if (!HasStandard(device_dtype)) {
    Say(fmt::format("No standard has limits for {}: the benchmark is not more precise.",
                    InfoOf(device_dtype).torch_name),
        row);
  } else if (IsFloat8(device_dtype)) {
    Say(fmt::format("The benchmark was rounded to {} before.", InfoOf(device_dtype).torch_name),
        row);
  }
  if (standard == Standard::kUlp && metrics.zero_bench_ulps != 0) {
    Say(fmt::format("{} of a zero benchmark measured in units of the last place of 1.",
                    CountText(metrics.zero_bench_ulps, "element is", "elements are")),
        row);
  }
}

// First step of the ladder: true if the directions agree, or there are none to compare.
bool PassesCosine(const FloatMetrics& metrics, OutputRow* row) {
  switch (metrics.cosine_case) {
    case CosineCase::kOneElement:
      Say("One element has no cosine similarity.", row);
      return true;
    case CosineCase::kBothZero:
      row->is_all_zero = true;
      Say("Both sides are all zero, which proves little.", row);
      return true;
    case CosineCase::kBenchZero:
      Say("Only the benchmark is all zero.", row);
      return false;
    case CosineCase::kDeviceZero:
      Say("Only the device is all zero.", row);
      return false;
    case CosineCase::kNotFinite:
      row->cosine = Fixed(metrics.cosine);
      Say("NaN or infinity among the values: there is no cosine similarity.", row);
      return false;
    case CosineCase::kPlain:
      break;
  }
  row->cosine = Fixed(metrics.cosine);
  if (metrics.cosine > kCosineAbove) return true;
  Say(fmt::format("Cosine similarity {} is not above {}.", Digits(metrics.cosine), kCosineAbove),
      row);
  return false;
}

// Fills the cell of a share; true if the share suffices. NaN among the errors counts as large.
bool PassesShare(double share, double limit, const FloatMetrics& metrics, Cell* cell,
                 OutputRow* row) {
  *cell = Fixed(share);
  const auto n = static_cast<double>(metrics.count);
  Say(fmt::format("{:.0f} of {:.0f} elements have a relative error of {} or more, fewer than {} % "
                  "may.",
                  std::round((1 - share) * n), n, Digits(limit), Digits(100 * limit)),
      row);
  return share > 1 - limit;
}

// Sums of terms that nearly cancel leave the rounding of the terms, which is large beside what is
// left: normalisations in half types have such elements on every device. A relative error there is
// no error as long as the absolute one is within a unit of the last place of the largest value; it
// is not proven right either.
CheckStatus OfLargeShare(const FloatMetrics& metrics, DType device_dtype, OutputRow* row) {
  const double unit = 2 * UnitRoundoff(device_dtype) * metrics.bench_max;
  // Beside an infinite benchmark every error is within it.
  if (metrics.has_not_finite || !(metrics.max_abs_error <= unit)) return CheckStatus::kError;
  Say(fmt::format("No error is above {}, one unit of the last place of the largest value: rounding "
                  "may do that.",
                  Digits(unit)),
      row);
  return CheckStatus::kWarning;
}

// Whether an error that is small by itself is one of a tensor of small values, such as gradients: a
// wrong factor there would pass by the absolute limit, and the cosine does not see it. Errors of a
// unit of the smallest number of the type are none.
bool IsLargeBeside(const FloatMetrics& metrics, DType device_dtype) {
  const UlpFormat format = UlpFormatOf(device_dtype);
  const double least = std::ldexp(1.0, format.min_exponent - format.mantissa_bits);
  return metrics.max_abs_error > kSmallErrorShare * metrics.bench_max &&
         metrics.max_abs_error > 2 * least;
}

// The steps after the cosine. Cells behind the step that decides stay blank.
CheckStatus ClimbLadder(const FloatMetrics& metrics, DType device_dtype, OutputRow* row) {
  if (!PassesCosine(metrics, row)) return CheckStatus::kError;
  row->max_abs_error = OfElements(metrics.max_abs_error, metrics.is_double);
  const bool is_small = metrics.max_abs_error < kMaxAbsErrorBelow;
  Say(fmt::format("Maximum absolute error {} is {}below {}.", Digits(metrics.max_abs_error),
                  is_small ? "" : "not ", kMaxAbsErrorBelow),
      row);
  if (is_small && !IsLargeBeside(metrics, device_dtype)) return CheckStatus::kPass;
  if (is_small) {
    Say(fmt::format("That is much beside the largest value, {}.", Digits(metrics.bench_max)), row);
  }
  const auto passes_thousandth = [&] {
    return PassesShare(metrics.thousandth, kThousandth, metrics, &row->thousandth, row);
  };
  if (IsNarrow(device_dtype)) {
    if (!PassesShare(metrics.hundredth, kHundredth, metrics, &row->hundredth, row)) {
      return OfLargeShare(metrics, device_dtype, row);
    }
    return passes_thousandth() ? CheckStatus::kPass : CheckStatus::kWarning;
  }
  // Both shares belong to one step: their cells are filled together.
  row->ten_thousandth = Fixed(metrics.ten_thousandth);
  if (!passes_thousandth()) return OfLargeShare(metrics, device_dtype, row);
  const bool passes =
      PassesShare(metrics.ten_thousandth, kTenThousandth, metrics, &row->ten_thousandth, row);
  return passes ? CheckStatus::kPass : CheckStatus::kWarning;
}

// ---- The trees ----

// Where in the answer a value stands: "1_0", and the key of the map that it is directly in.
struct Place {
  std::string index = "0";
  std::string key;
};

class Grader {
 public:
  Grader(std::string_view call_name, std::string_view api, Direction direction,
         const ReturnedPair& pair, const GradeOptions& options)
      : call_name_(call_name), api_(api), direction_(direction), pair_(pair), options_(options) {}

  DirectionOutcome Grade() {
    const bool one_only =
        direction_ == Direction::kForward ? ComparesFirstOutputOnly(api_) : IsDropout(call_name_);
    GradeTop(*pair_.bench, *pair_.device, one_only);
    const bool is_known = pair_.bench_arguments != nullptr && pair_.device_arguments != nullptr;
    if (is_known) GradeArguments(*pair_.bench_arguments, *pair_.device_arguments);
    DirectionOutcome outcome;
    std::vector<CheckStatus> statuses;
    for (const OutputRow& row : rows_) statuses.push_back(row.status);
    outcome.status = Worst(statuses);
    outcome.rows = std::move(rows_);
    if (outcome.status == CheckStatus::kSkip) outcome.skip = first_skip_;
    return outcome;
  }

 private:
  // Lists and maps at the top give one row per item; everything else is row 0.
  void GradeTop(const CallValue& bench, const CallValue& device, bool one_only) {
    const auto* items = bench.As<CallSequence>();
    const auto* device_items = device.As<CallSequence>();
    if (one_only && items != nullptr && device_items != nullptr && !items->items.empty() &&
        !device_items->items.empty()) {
      return GradeValue(items->items[0], device_items->items[0], {});
    }
    if (IsTree(bench) && AreAlike(bench, device)) return GradeItems(bench, device, {"", ""});
    GradeValue(bench, device, {});
  }

  // Of a place among the arguments; null: it was not changed, and nothing else is known.
  static const CallValue* ValueAt(const ArgumentsAfter& arguments, std::string_view place) {
    for (const CallMap* map : {&arguments.changed, &arguments.kept}) {
      for (const auto& [at, value] : *map) {
        if (at == place) return &value;
      }
    }
    return nullptr;
  }

  // Arguments that a side at least changed in place.
  void GradeArguments(const ArgumentsAfter& bench, const ArgumentsAfter& device) {
    group_ = "input";
    for (const auto& [place, value] : bench.changed) {
      GradeArgument(place, &value, ValueAt(device, place));
    }
    for (const auto& [place, value] : device.changed) {
      const bool is_new = std::ranges::find(bench.changed, place, &CallMap::value_type::first) ==
                          bench.changed.end();
      if (is_new) GradeArgument(place, ValueAt(bench, place), &value);
    }
  }

  void GradeArgument(const std::string& at, const CallValue* bench, const CallValue* device) {
    const Place place = {at, ""};
    if (bench == nullptr || device == nullptr) {
      static const CallValue kNothing;
      return AddError(bench == nullptr ? kNothing : *bench, device == nullptr ? kNothing : *device,
                      place,
                      fmt::format("Only the {} changed this argument in place.",
                                  device == nullptr ? "benchmark" : "device"));
    }
    // What the call returned is judged as such.
    if (bench->is_null() || device->is_null()) return;
    const size_t first = rows_.size();
    GradeValue(*bench, *device, place);
    for (size_t i = first; i < rows_.size(); ++i) {
      rows_[i].message = "Changed in place. " + rows_[i].message;
    }
  }

  static std::string Below(const Place& place, size_t k) {
    return place.index.empty() ? std::to_string(k) : fmt::format("{}_{}", place.index, k);
  }
  static Place RowOf(const Place& place) {
    return place.index.empty() ? Place{"0", place.key} : place;
  }

  void GradeItems(const CallValue& bench, const CallValue& device, const Place& place) {
    if (bench.As<CallMap>() != nullptr) return GradeMaps(bench, device, place);
    const std::vector<CallValue>& items = bench.As<CallSequence>()->items;
    const std::vector<CallValue>& device_items = device.As<CallSequence>()->items;
    if (items.empty()) {
      return AddSkip(bench, device, RowOf(place), "The benchmark returned nothing.");
    }
    if (items.size() > device_items.size()) {
      return AddError(bench, device, RowOf(place),
                      fmt::format("The benchmark returned {}, the device {}.",
                                  CountText(items.size(), "value"), device_items.size()));
    }
    for (size_t k = 0; k < items.size(); ++k) {
      GradeValue(items[k], device_items[k], {Below(place, k), ""});
    }
  }

  void GradeMaps(const CallValue& bench, const CallValue& device, const Place& place) {
    const CallMap& map = *bench.As<CallMap>();
    const CallMap& device_map = *device.As<CallMap>();
    if (map.empty() && device_map.empty()) {
      return AddSkip(bench, device, RowOf(place), "The benchmark returned nothing.");
    }
    const auto has = [](const CallMap& in, const std::string& key) {
      return std::any_of(in.begin(), in.end(), [&](const auto& item) { return item.first == key; });
    };
    for (const auto& [key, value] : map) {
      if (!has(device_map, key)) return AddLostKey(bench, device, place, key, "benchmark");
    }
    for (const auto& [key, value] : device_map) {
      if (!has(map, key)) return AddLostKey(bench, device, place, key, "device");
    }
    for (size_t k = 0; k < map.size(); ++k) {
      const std::string& key = map[k].first;
      const auto found = std::find_if(device_map.begin(), device_map.end(),
                                      [&](const auto& item) { return item.first == key; });
      GradeValue(map[k].second, found->second, {Below(place, k), key});
    }
  }

  void AddLostKey(const CallValue& bench, const CallValue& device, const Place& place,
                  std::string_view key, std::string_view side) {
    AddError(bench, device, RowOf(place),
             fmt::format("Only the {} has the key \"{}\".", side, key));
  }

  void GradeValue(const CallValue& bench, const CallValue& device, const Place& place) {
    if (!AreAlike(bench, device)) {
      return AddError(bench, device, place,
                      fmt::format("The benchmark returned {}, the device {}.", TypeText(bench),
                                  TypeText(device)));
    }
    if (IsTree(bench)) return GradeItems(bench, device, place);
    if (bench.is_null()) return AddSkip(bench, device, place, "The benchmark returned no value.");
    if (bench.As<TensorPlace>() != nullptr) return GradeTensors(bench, device, place);
    const auto* special = bench.As<SpecialValue>();
    if (special != nullptr && special->kind == Special::kOther) {
      return AddError(bench, device, place,
                      fmt::format("Values of type {} cannot be compared.", TypeText(bench)));
    }
    OutputRow row = NewRow(bench, device, place);
    const bool is_equal = AreEqual(bench, device);
    row.status = is_equal ? CheckStatus::kPass : CheckStatus::kError;
    if (is_equal) row.error_rate = Zero();
    Say(is_equal ? "The values are equal." : "The values differ.", &row);
    rows_.push_back(std::move(row));
  }

  // ---- Rows ----

  OutputRow NewRow(const CallValue& bench, const CallValue& device, const Place& place) const {
    OutputRow row;
    row.name =
        fmt::format("{}.{}.{}.{}", call_name_, DirectionName(direction_), group_, place.index);
    const auto type = [](const CallValue& value) {
      const auto* tensor = value.As<TensorPlace>();
      return tensor == nullptr ? ClassText(value) : std::string(InfoOf(tensor->dtype).torch_name);
    };
    row.bench_dtype = type(bench);
    row.device_dtype = type(device);
    if (const auto* tensor = device.As<TensorPlace>()) row.shape = ShapeText(tensor->shape);
    if (!place.key.empty()) Say(fmt::format("Key \"{}\".", place.key), &row);
    return row;
  }

  void AddError(const CallValue& bench, const CallValue& device, const Place& place,
                std::string_view reason) {
    OutputRow row = NewRow(bench, device, place);
    row.status = CheckStatus::kError;
    Say(reason, &row);
    rows_.push_back(std::move(row));
  }

  void AddSkip(const CallValue& bench, const CallValue& device, const Place& place,
               std::string_view reason, SkipCause cause = SkipCause::kNoOutput) {
    OutputRow row = NewRow(bench, device, place);
    SkipRow(cause, reason, &row);
    rows_.push_back(std::move(row));
  }

  void SkipRow(SkipCause cause, std::string_view reason, OutputRow* row) {
    const Skip skip = {cause, std::string(reason)};
    row->status = CheckStatus::kSkip;
    Say(skip.Text(), row);
    if (!first_skip_) first_skip_ = skip;
  }

  // ---- Tensors ----

  // The elements, or null if they are not all in the memory.
  static const std::byte* DataOf(const TensorPlace& tensor, std::span<const std::byte> memory,
                                 size_t count) {
    const size_t element_bytes = InfoOf(tensor.dtype).size_bytes;
    if (tensor.offset > memory.size()) return nullptr;
    return count > (memory.size() - tensor.offset) / element_bytes ? nullptr
                                                                   : memory.data() + tensor.offset;
  }

  void GradeTensors(const CallValue& bench, const CallValue& device, const Place& place) {
    const TensorPlace& bench_tensor = *bench.As<TensorPlace>();
    const TensorPlace& device_tensor = *device.As<TensorPlace>();
    if (bench_tensor.shape != device_tensor.shape) {
      return AddError(bench, device, place,
                      fmt::format("The shape is {} on the benchmark and {} on the device.",
                                  ShapeText(bench_tensor.shape), ShapeText(device_tensor.shape)));
    }
    if (!AreComparable(bench_tensor.dtype, device_tensor.dtype)) {
      return AddError(bench, device, place,
                      fmt::format("The types {} of the benchmark and {} of the device are of "
                                  "different kinds.",
                                  InfoOf(bench_tensor.dtype).torch_name,
                                  InfoOf(device_tensor.dtype).torch_name));
    }
    const Result<int64_t> count = ElementCount(bench_tensor.shape);
    if (!count) {
      return AddSkip(bench, device, place, "The shape is not one of a tensor.",
                     SkipCause::kCpuFailed);
    }
    if (*count == 0) return AddSkip(bench, device, place, "The output has no elements.");
    const auto elements = static_cast<size_t>(*count);
    const OutputPair pair = {bench_tensor.dtype, DataOf(bench_tensor, pair_.bench_memory, elements),
                             device_tensor.dtype,
                             DataOf(device_tensor, pair_.device_memory, elements), elements};
    if (pair.bench == nullptr || pair.device == nullptr) {
      return AddSkip(bench, device, place,
                     "The elements are not in the memory that was handed over.",
                     pair.bench == nullptr ? SkipCause::kCpuFailed : SkipCause::kDeviceFailed);
    }
    OutputRow row = NewRow(bench, device, place);
    JudgeElements(pair, place, &row);
    if (options_.explain && IsWrong(row.status)) {
      row.facts = ExplainPair(pair);
    }
    rows_.push_back(std::move(row));
  }

  void JudgeElements(const OutputPair& pair, const Place& place, OutputRow* row) {
    if (IsDropout(call_name_)) return JudgeDropout(pair, row);
    const DTypeKind kind = InfoOf(pair.device_dtype).kind;
    if (kind != DTypeKind::kFloat && kind != DTypeKind::kComplex) return JudgeExact(pair, row);
    // Float8 has a rule for units of the last place only.
    Standard standard = StandardOfApi(api_);
    if (IsFloat8(pair.device_dtype) && standard != Standard::kBinary) standard = Standard::kUlp;
    const FloatMetrics metrics = MeasureFloats(pair, standard);
    std::optional<FiniteSides> sides;
    if (metrics.has_not_finite) sides = WithoutEqualSpecials(pair);
    if (sides && sides->nan == sides->elements) {
      return SkipRow(SkipCause::kNoOutput, "All elements are NaN on both sides.", row);
    }
    if (HasStandard(pair.device_dtype)) FillStandard(standard, metrics, row);
    SayOfStandard(standard, metrics, pair.device_dtype, row);
    if (!sides) {
      row->status = JudgeFloats(pair, metrics, place, row);
      return;
    }
    Say(SpecialsText(*sides), row);
    row->status = CheckStatus::kPass;
    if (sides->not_judged() < sides->elements) {
      OutputPair rest = pair;
      rest.bench = sides->bench.data();
      rest.device = sides->device.data();
      row->status = JudgeFloats(rest, MeasureFloats(rest, standard), place, row);
      row->is_all_zero = false;  // there is more than the zeros
    }
    // NaN is no result to trust, though the device does what the inputs ask for.
    if (sides->nan > 0) row->status = std::max(row->status, CheckStatus::kWarning);
  }

  // By the steps of the ladder; where they say error, by what may excuse it.
  CheckStatus JudgeFloats(const OutputPair& pair, const FloatMetrics& metrics, const Place& place,
                          OutputRow* row) const {
    CheckStatus status = ClimbLadder(metrics, pair.device_dtype, row);
    DType computed_in = pair.device_dtype;
    const PreparedCall* const call = options_.given.call;
    const bool in_region = call != nullptr && call->autocast && computed_in == DType::kFloat32 &&
                           !metrics.has_not_finite;
    if (in_region && status != CheckStatus::kPass) {
      computed_in = *call->autocast;
      Say(fmt::format("In a region of {0} a device may compute it in {0}, by whose limits:",
                      InfoOf(computed_in).torch_name),
          row);
      OutputPair narrow = pair;
      narrow.limits_of = computed_in;
      status = ClimbLadder(MeasureFloats(narrow, Standard::kThousandth), computed_in, row);
      // Calls of a region that return float32 compute in it nearly always; gradients need not.
      const bool is_result = direction_ == Direction::kForward;
      if (is_result) status = std::max(status, CheckStatus::kWarning);
    }
    const bool is_excused = status == CheckStatus::kError && !metrics.has_not_finite &&
                            (IsLeftOfRounding(pair, metrics, {computed_in, place}, row) ||
                             IsSumOfRoundings(metrics, {computed_in, place}, row) ||
                             IsOfRoundedResult(metrics, computed_in, row));
    return is_excused ? CheckStatus::kWarning : status;
  }

  struct ComputedValue {
    DType type;  // that the device computed in
    const Place& place;
  };
  // Whether all terms cancelled, on the benchmark to within its own precision: what both sides have
  // left are roundings of the terms, in which there is nothing to compare.
  bool IsLeftOfRounding(const OutputPair& pair, const FloatMetrics& metrics,
                        const ComputedValue& computed, OutputRow* row) const {
    const bool is_result = direction_ == Direction::kForward;
    const double scale = is_result ? ForwardScale(options_.given, pair.count)
                                   : GradientScale(options_.given, ArgumentAt(computed.place));
    const auto limit = [&](DType type) { return kRoundingsLeft * UnitRoundoff(type) * scale; };
    const double bench_limit = limit(pair.bench_dtype), device_limit = limit(computed.type);
    if (!(scale > 0) || !std::isfinite(scale) || !(metrics.bench_max <= bench_limit) ||
        !(metrics.device_max <= device_limit)) {
      return false;
    }
    Say(fmt::format("Nothing but rounding is left: no element is above {} on the benchmark and {} "
                    "on the device, {} roundings of terms of {}.",
                    Digits(bench_limit), Digits(device_limit), kRoundingsLeft, Digits(scale)),
        row);
    return true;
  }

  static size_t ArgumentAt(const Place& place) {
    return static_cast<size_t>(std::strtoull(place.index.c_str(), nullptr, 10));
  }

  // The same of the gradient of what a call adds last, which is a sum of incoming gradients: those
  // that were recorded are rounded themselves, and cancel to within that.
  bool IsSumOfRoundings(const FloatMetrics& metrics, const ComputedValue& computed,
                        OutputRow* row) const {
    if (direction_ == Direction::kForward || !AddsItsLastTensor(api_)) return false;
    const double scale = SummedGradientScale(options_.given, ArgumentAt(computed.place));
    const double limit = kRoundingsLeft * UnitRoundoff(computed.type) * scale;
    if (!std::isfinite(limit) || !(std::max(metrics.bench_max, metrics.device_max) <= limit)) {
      return false;
    }
    Say(fmt::format("The incoming gradients cancel: no element is above {} on either side, {} "
                    "roundings of terms of {}.",
                    Digits(limit), Digits(kRoundingsLeft), Digits(scale)),
        row);
    return true;
  }

  // Whether the error of the result, whose exponential the backward takes, explains that of the
  // gradient. It is judged with the forward.
  bool IsOfRoundedResult(const FloatMetrics& metrics, DType computed_in, OutputRow* row) const {
    if (direction_ == Direction::kForward || !ExponentiatesItsResult(api_)) return false;
    const double result_error = LargestResultError(options_.given);
    const double share = std::expm1(result_error) + kResultRoundings * UnitRoundoff(computed_in);
    if (!(metrics.max_abs_error <= share * metrics.bench_max)) return false;
    Say(fmt::format("The gradient is the exponential of the result, which is off by up to {}: that "
                    "alone may change it by {} %.",
                    Digits(result_error), Digits(100 * share)),
        row);
    return true;
  }

  void JudgeExact(const OutputPair& pair, OutputRow* row) const {
    const ExactMetrics metrics = MeasureExact(pair);
    if (IsQuantization(api_) && InfoOf(pair.device_dtype).kind != DTypeKind::kBool) {
      const bool passes = metrics.max_abs_error <= kQuantizedMaxAbsError;
      row->max_abs_error = Fixed(metrics.max_abs_error);
      row->status = passes ? CheckStatus::kPass : CheckStatus::kError;
      return Say(
          fmt::format("Maximum absolute error {} of quantised values is {}above {}.",
                      Digits(metrics.max_abs_error), passes ? "not " : "", kQuantizedMaxAbsError),
          row);
    }
    row->error_rate = Fixed(metrics.error_rate);
    row->status = metrics.mismatches == 0 ? CheckStatus::kPass : CheckStatus::kError;
    Say(metrics.mismatches == 0
            ? "All elements are equal."
            : fmt::format("{} of {} elements differ.", metrics.mismatches, metrics.count),
        row);
  }

  // Which elements fall out is random on each side; how many is not. NaN and infinity do not come
  // from a dropout.
  void JudgeDropout(const OutputPair& pair, OutputRow* row) const {
    const auto n = static_cast<double>(pair.count);
    const SpecialCounts bench = CountSpecials(pair.bench_dtype, pair.bench, pair.count);
    const SpecialCounts device = CountSpecials(pair.device_dtype, pair.device, pair.count);
    const double bench_share = static_cast<double>(bench.zeros) / n;
    const double device_share = static_cast<double>(device.zeros) / n;
    const bool is_few = pair.count < kDropoutElements;
    const uint64_t apart =
        std::max(bench.zeros, device.zeros) - std::min(bench.zeros, device.zeros);
    const bool is_near = static_cast<double>(apart) / n < kDropoutShareBelow;
    const bool is_broken = device.not_finite > bench.not_finite;
    // What both sides keep is the same value, scaled alike.
    const bool is_scaled = ScalesWhatItKeeps(api_);
    const KeptElements kept = is_scaled ? KeptOf(pair) : KeptElements{};
    const bool is_right = !is_broken && (is_few || is_near) && kept.apart == 0;
    row->status = is_right ? CheckStatus::kPass : CheckStatus::kError;
    Say(fmt::format("{} % of the elements are zero on the benchmark, {} % on the device.",
                    Digits(100 * bench_share), Digits(100 * device_share)),
        row);
    if (is_few) {
      Say(fmt::format("Of fewer than {} elements it says nothing.", kDropoutElements), row);
      // Neither does anything else then.
      if (is_right && is_scaled && kept.both == 0) row->status = CheckStatus::kWarning;
    }
    if (kept.apart > 0) {
      Say(fmt::format("{} of {} elements that both sides keep differ by more than {} %.",
                      kept.apart, kept.both, 100 * kKeptErrorAtMost),
          row);
    }
    if (is_broken) {
      Say(fmt::format("NaN or infinity: {} on the benchmark, {} on the device.", bench.not_finite,
                      device.not_finite),
          row);
    }
  }

  std::string_view call_name_, api_;
  Direction direction_;
  const ReturnedPair& pair_;
  const GradeOptions& options_;
  std::string_view group_ = "output";  // what the rows are of, by their name
  std::vector<OutputRow> rows_;
  std::optional<Skip> first_skip_;
};

}  // namespace

std::string_view DirectionName(Direction direction) {
  return direction == Direction::kForward ? "forward" : "backward";
}

DirectionOutcome GradeDirection(std::string_view call_name, std::string_view api,
                                Direction direction, const ReturnedPair& pair,
                                const GradeOptions& options) {
  return Grader(call_name, api, direction, pair, options).Grade();
}

}  // namespace plumbline::precheck
