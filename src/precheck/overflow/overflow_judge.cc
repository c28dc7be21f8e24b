#include "precheck/overflow/overflow_judge.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/text/text_parts.h"
#include "kernels/finite_scan.h"
#include "kernels/tensor_scan.h"
#include "tensor/float_range.h"

namespace plumbline::precheck {
namespace {

// What a CPU says that lacks the instructions for a product of half types; no fault of the call.
constexpr std::string_view kNoPrimitive =
    "could not create a primitive descriptor for a matmul primitive";

// Whether a tensor, whose elements are real, has an element that is none in `rounded_to`.
bool LeavesRange(const TensorView& view, DType rounded_to) {
  const kernels::Moments moments = kernels::ScanTensor(view, {}).moments;
  return moments.count > 0 &&
         (RoundsToNonFinite(rounded_to, moments.max) || RoundsToNonFinite(rounded_to, moments.min));
}

bool IsFloating(DType dtype) { return InfoOf(dtype).kind == DTypeKind::kFloat; }

// A float type that ends before another one does.
bool IsNarrower(DType dtype, DType than) {
  return IsFloating(dtype) && IsFloating(than) && LargestFinite(dtype) < LargestFinite(than);
}

OverflowSearch SearchInputs(const RanCall& ran) {
  OverflowSearch search(ran.inputs);
  const PreparedCall& call = ran.to_run->call;
  for (size_t i = 0; i < call.args.size(); ++i) {
    search.Look(call.args[i], fmt::format("input_args.{}", i));
  }
  for (const auto& [key, value] : call.kwargs) search.Look(value, "input_kwargs." + key);
  return search;
}

// Whether a call was left out on purpose, or went wrong.
OverflowResult ResultOf(const Skip& skip) {
  switch (skip.cause) {
    case SkipCause::kUnsupportedType:
    case SkipCause::kNotInInventory:
    case SkipCause::kFiltered:
    case SkipCause::kRandom:
    case SkipCause::kNoOutput:
      return OverflowResult::kSkip;
    default:
      break;
  }
  const bool lacks_primitive = skip.detail.find(kNoPrimitive) != std::string::npos;
  return lacks_primitive ? OverflowResult::kSkip : OverflowResult::kError;
}

void AddSentence(std::string_view sentence, std::string& message) {
  if (sentence.empty()) return;
  if (!message.empty()) message += "; ";
  message += sentence;
}

std::string FailureText(const RanCall& ran) {
  std::string text;
  const std::pair<std::string_view, const SideResult*> sides[] = {{"CPU", ran.bench},
                                                                  {"device", ran.device}};
  for (const auto& [name, side] : sides) {
    if (!side->forward) {
      AddSentence(fmt::format("{}: {}", name, side->forward.error().Text()), text);
    }
  }
  return text;
}

// A call of which at least one side has nothing; nothing: both have something.
std::optional<OverflowRow> RowOfFailure(const RanCall& ran, OverflowRow row) {
  if (ran.bench->forward && ran.device->forward) return std::nullopt;
  const Skip& skip = (ran.device->forward ? ran.bench : ran.device)->forward.error();
  row.result = ResultOf(skip);
  row.message = FailureText(ran);
  return row;
}

// Why the outputs of a call say nothing about overflow; empty: they do.
std::string WhyNothingToSee(const RanCall& ran, const OverflowSearch& bench,
                            const OverflowSearch& device) {
  if (ran.bench->forward->is_null() && ran.device->forward->is_null()) {
    return "returns None: there is nothing to look at";
  }
  if (bench.has_truth_value || device.has_truth_value) {
    return "returns a truth value, which cannot overflow";
  }
  const std::string& unknown = bench.unknown.empty() ? device.unknown : bench.unknown;
  const bool is_hidden = !unknown.empty() && !bench.has_overflow && !device.has_overflow;
  return is_hidden ? fmt::format("returns a {}, into which nobody can look", unknown)
                   : std::string();
}

std::string SidesText(const OverflowSearch& bench, const OverflowSearch& device) {
  if (bench.has_overflow && device.has_overflow) {
    return fmt::format("{} overflows on both sides", device.first);
  }
  if (device.has_overflow) {
    return fmt::format("{} overflows on the device and not on the CPU", device.first);
  }
  if (bench.has_overflow) {
    return fmt::format("{} overflows on the CPU and not on the device", bench.first);
  }
  return {};
}

}  // namespace

void OverflowSearch::Look(const CallValue& value, const std::string& path, const CallValue* other) {
  if (const auto* place = value.As<TensorPlace>()) return LookAtTensor(*place, path, other);
  if (const auto* number = value.As<double>()) {
    if (!std::isfinite(*number)) Found(path);
  } else if (value.As<bool>() != nullptr) {
    has_truth_value = true;
  } else if (const auto* special = value.As<SpecialValue>()) {
    LookAtSpecial(*special, path);
  } else if (const auto* sequence = value.As<CallSequence>()) {
    LookAtSequence(*sequence, path, other);
  } else if (const auto* map = value.As<CallMap>()) {
    LookAtMap(*map, path, other);
  }
}

void OverflowSearch::Found(const std::string& path) {
  if (!has_overflow) first = path;
  has_overflow = true;
}

void OverflowSearch::LookAtTensor(const TensorPlace& place, const std::string& path,
                                  const CallValue* other) {
  const Result<size_t> bytes = BytesOf(place);
  // The pool has checked the places of results; those of arguments are as they were planned.
  const bool is_inside =
      bytes && place.offset <= memory_.size() && *bytes <= memory_.size() - place.offset;
  if (!is_inside) {
    unknown = "tensor outside its memory";
    return;
  }
  const std::vector<int64_t> strides = ContiguousStrides(place.shape);
  const TensorView view{place.dtype, memory_.data() + place.offset, place.shape, strides};
  if (kernels::HasNonFinite(view, nullptr)) return Found(path);
  const auto* counterpart = other == nullptr ? nullptr : other->As<TensorPlace>();
  if (counterpart == nullptr || !IsNarrower(counterpart->dtype, place.dtype)) return;
  was_rounded = true;
  if (LeavesRange(view, counterpart->dtype)) Found(path);
}

void OverflowSearch::LookAtSpecial(const SpecialValue& special, const std::string& path) {
  if (special.kind == Special::kOther) {
    const std::string& name = special.type.empty() ? special.text : special.type;
    unknown = name.empty() ? "object" : name;
  }
  if (special.kind != Special::kNumpy) return;
  const std::optional<double> number = ParseReal(special.text);
  if (number && !std::isfinite(*number)) Found(path);
}

void OverflowSearch::LookAtSequence(const CallSequence& sequence, const std::string& path,
                                    const CallValue* other) {
  const auto* others = other == nullptr ? nullptr : other->As<CallSequence>();
  const bool is_alike = others != nullptr && others->items.size() == sequence.items.size();
  for (size_t i = 0; i < sequence.items.size(); ++i) {
    Look(sequence.items[i], fmt::format("{}.{}", path, i), is_alike ? &others->items[i] : nullptr);
  }
}

void OverflowSearch::LookAtMap(const CallMap& map, const std::string& path,
                               const CallValue* other) {
  const auto* others = other == nullptr ? nullptr : other->As<CallMap>();
  const bool is_alike = others != nullptr && others->size() == map.size();
  for (size_t i = 0; i < map.size(); ++i) {
    Look(map[i].second, fmt::format("{}.{}", path, map[i].first),
         is_alike ? &(*others)[i].second : nullptr);
  }
}

std::string_view OverflowWord(OverflowResult result) {
  constexpr std::array<std::string_view, kOverflowResults> kWords = {
      "normal", "abnormal", "not_reproduced", "skip", "error"};
  return kWords[static_cast<size_t>(result)];
}

OverflowRow SkippedRow(std::string name, const Skip& skip) {
  OverflowRow row;
  row.name = std::move(name);
  row.result = ResultOf(skip);
  row.message = skip.Text();
  return row;
}

OverflowRow ClassifyOverflow(const RanCall& ran) {
  OverflowRow row;
  row.name = ran.to_run->call.name;
  const OverflowSearch inputs = SearchInputs(ran);
  row.input = inputs.has_overflow;
  if (auto failed = RowOfFailure(ran, row)) return *std::move(failed);
  const CallValue &on_cpu = *ran.bench->forward, &on_device = *ran.device->forward;
  if (on_cpu.is_null() != on_device.is_null()) {
    row.result = OverflowResult::kError;
    row.message = fmt::format("the {} returns None and the other side does not",
                              on_cpu.is_null() ? "CPU" : "device");
    return row;
  }
  OverflowSearch bench(ran.bench_memory), device(ran.device_memory);
  bench.Look(on_cpu, "output", &on_device);
  device.Look(on_device, "output");
  if (row.message = WhyNothingToSee(ran, bench, device); !row.message.empty()) return row;
  row.cpu = bench.has_overflow;
  row.device = device.has_overflow;
  row.result = *row.cpu != *row.device ? OverflowResult::kAbnormal
               : *row.cpu              ? OverflowResult::kNormal
                                       : OverflowResult::kNotReproduced;
  row.message = SidesText(bench, device);
  if (*row.input) AddSentence(fmt::format("{} holds NaN or Inf", inputs.first), row.message);
  if (bench.was_rounded && (*row.cpu || *row.device)) {
    AddSentence("the CPU computed in a wider type, rounded to that of the device", row.message);
  }
  for (const SideResult* side : {ran.bench, ran.device}) AddSentence(side->note, row.message);
  return row;
}

}  // namespace plumbline::precheck
