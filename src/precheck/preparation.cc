#include "precheck/preparation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/text/text_parts.h"
#include "formats/json/dump_json.h"
#include "load/run_reader.h"
#include "precheck/call_arguments.h"
#include "precheck/index_rules.h"
#include "precheck/input_data.h"
#include "precheck/standards.h"

namespace plumbline::precheck {

namespace {

// APIs that need more than their arguments; all by name.

// Some devices compute these in HF32 whatever the inputs are: inputs that HF32 holds make the
// results comparable, and the benchmark stays in float32.
constexpr std::string_view kInHf32[] = {"conv1d", "conv2d"};
// What it returns depends on the type of an argument, which raising it would change.
constexpr std::string_view kNeverRaised[] = {"type_as"};
constexpr std::string_view kFusedAttention = "npu_fusion_attention";
// Its masks of these modes have a form of their own, whatever was recorded.
constexpr int64_t kFirstFullMask = 2, kLastFullMask = 4;
constexpr int64_t kFullMaskSize = 2048;

struct NoBackward {
  std::string_view api, why;
};
constexpr NoBackward kNoBackward[] = {
    {"repeat_interleave", "what its backward needs is not recorded"},
    {"masked_select", "the number of its elements depends on drawn values"},
};

// Types that tensors of an API are converted to: the kernels of the CPU know no others.
struct Conversion {
  std::string_view api;
  DType from, to;
  bool first_only = false;  // the first argument alone, and only one that is drawn
};
constexpr Conversion kConversions[] = {
    {"cross_entropy", DType::kInt32, DType::kInt64},
    {"histc", DType::kInt64, DType::kFloat32},
    {"histc", DType::kInt8, DType::kFloat32, true},
    {"histc", DType::kInt32, DType::kFloat32, true},
};

// Arguments with which an API returns something else each time.
enum class Draws : uint8_t { kIfAboveZero, kIfBelowOne, kIfTrue };
struct RandomArgument {
  std::string_view api;
  size_t position;
  std::string_view keyword;
  Draws draws;
};
constexpr RandomArgument kRandomArguments[] = {
    {"multi_head_attention_forward", 10, "dropout_p", Draws::kIfAboveZero},
    {"npu_fusion_attention", SIZE_MAX, "keep_prob", Draws::kIfBelowOne},
    {"npu_multi_head_attention", SIZE_MAX, "dropout_prob", Draws::kIfAboveZero},
    {"rrelu", 3, "training", Draws::kIfTrue},
    {"rrelu_", 3, "training", Draws::kIfTrue},
    {"scaled_dot_product_attention", 4, "dropout_p", Draws::kIfAboveZero},
};

bool IsAmong(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::optional<DType> DTypeOfRecord(std::string_view text) {
  if (const std::optional<DType> dtype = ParseDType(text)) return dtype;
  constexpr std::pair<std::string_view, DType> kAliases[] = {
      {"torch.half", DType::kFloat16},     {"torch.float", DType::kFloat32},
      {"torch.double", DType::kFloat64},   {"torch.short", DType::kInt16},
      {"torch.int", DType::kInt32},        {"torch.long", DType::kInt64},
      {"torch.cfloat", DType::kComplex64}, {"torch.cdouble", DType::kComplex128}};
  for (const auto& [alias, dtype] : kAliases) {
    if (text == alias) return dtype;
  }
  return std::nullopt;
}

bool IsTensorType(std::string_view type) {
  return type == "torch.Tensor" || type == "torch.nn.parameter.Parameter" ||
         type == "torch.nn.Parameter";
}

bool IsDifferentiable(DType dtype) {
  const DTypeKind kind = InfoOf(dtype).kind;
  return kind == DTypeKind::kFloat || kind == DTypeKind::kComplex;
}

// The types among float16, bfloat16 and float32 that tensors have, each once, in order of
// appearance.
using RaisedTypes = std::vector<DType>;
void Collect(const TensorPlace& tensor, RaisedTypes& types) {
  const DType dtype = tensor.dtype;
  const bool counts =
      dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32;
  if (counts && std::ranges::find(types, dtype) == types.end()) types.push_back(dtype);
}

// What the benchmark computes with instead of `tensor`, where the call mixes `types`: one type is
// raised to the next wider one; of several all are float32.
std::optional<DType> RaisedType(const TensorPlace& tensor, const RaisedTypes& types,
                                std::string_view api) {
  if (IsAmong(kNeverRaised, api)) return std::nullopt;
  if (IsFloat8(tensor.dtype)) return DType::kFloat32;
  if (std::ranges::find(types, tensor.dtype) == types.end()) return std::nullopt;
  if (tensor.dtype != DType::kFloat32) return DType::kFloat32;
  if (types.size() > 1 || IsAmong(kInHf32, api)) return std::nullopt;
  return DType::kFloat64;
}

// The type of the first recorded output, if that is a tensor.
std::optional<DType> OutputType(const Call& forward) {
  const Value* const output = forward.Find(dump_json::kOutput);
  const auto* const list = output == nullptr ? nullptr : output->As<ValueList>();
  const Value* const first = list == nullptr ? output : list->empty() ? nullptr : &list->front();
  const auto* const tensor = first == nullptr ? nullptr : first->As<TensorRecord>();
  return tensor == nullptr ? std::nullopt : DTypeOfRecord(tensor->dtype_text);
}

bool IsHalf(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

// The type of the region of mixed precision that the call was recorded in: inputs of several types
// meet in no other way, and an output is of another type than the inputs only there.
std::optional<DType> AutocastType(const RaisedTypes& types, std::optional<DType> output) {
  const bool output_is_half = output && IsHalf(*output);
  if (types.size() > 1) {
    if (output_is_half && std::ranges::find(types, *output) != types.end()) return output;
    return *std::ranges::find_if(types, IsHalf);
  }
  if (output_is_half && (types.empty() || types[0] != *output)) return output;
  // APIs that autocast computes in float32 turn half inputs into float32 outputs.
  if (output == DType::kFloat32 && types.size() == 1 && IsHalf(types[0])) return types[0];
  return std::nullopt;
}

Skip TooLarge(const std::string& path, const TensorFill& fill, uint64_t limit) {
  constexpr size_t kShownSizes = 8;
  const auto shown = static_cast<std::ptrdiff_t>(std::min(fill.shape.size(), kShownSizes));
  double bytes = InfoOf(fill.dtype).size_bytes;
  for (const int64_t size : fill.shape) bytes *= static_cast<double>(size);
  return Skip{
      SkipCause::kOutOfMemory,
      fmt::format("{} of shape ({}{}) and type {} is {:.3g} bytes, and all inputs of a call "
                  "may be {:.3g}",
                  path, fmt::join(fill.shape.begin(), fill.shape.begin() + shown, ", "),
                  fill.shape.size() > kShownSizes ? ", ..." : "", InfoOf(fill.dtype).name, bytes,
                  static_cast<double>(limit))};
}

class Preparer {
 public:
  Preparer(const RecordedCall& recorded, const PreparationOptions& options)
      : recorded_(recorded), options_(options) {
    call_.name = recorded.name;
    call_.type = recorded.type;
    call_.api = recorded.api;
  }

  OrSkip<PreparedCall> Run() {
    const Value* const kwargs = recorded_.forward->Find(dump_json::kInputKwargs);
    const Value* const out = kwargs == nullptr ? nullptr : kwargs->Find("out");
    writes_out_ = out != nullptr && !out->is_null();
    if (auto mode = FindMaskMode(kwargs); !mode) return std::move(mode).error();
    const PlaceTensor place = [this](const TensorRecord& record, const std::string& path) {
      return Place(record, path);
    };
    auto positional = BuildPositional(recorded_.forward->Find(dump_json::kInputArgs), place);
    if (!positional) return std::move(positional).error();
    call_.args = *std::move(positional);
    auto keyword = BuildKeyword(kwargs, place);
    if (!keyword) return std::move(keyword).error();
    call_.kwargs = *std::move(keyword);
    if (const std::optional<Skip> random = FindRandomArgument()) return *random;
    FloorTarget();
    KeepIndicesLegal(call_);
    RaiseInputs();
    if (recorded_.backward != nullptr) AddBackward(place);
    return std::move(call_);
  }

 private:
  // Of fused attention: whether its mask has a form of its own.
  OrSkip<void> FindMaskMode(const Value* kwargs) {
    const Value* const mode = kwargs == nullptr ? nullptr : kwargs->Find("sparse_mode");
    if (recorded_.api != kFusedAttention || mode == nullptr) return {};
    const std::optional<int64_t> number = RecordedInteger(*mode);
    if (!number) {
      return Skip{SkipCause::kBadArgument, "input_kwargs.sparse_mode: expected an integer"};
    }
    has_full_mask_ = *number >= kFirstFullMask && *number <= kLastFullMask;
    return {};
  }

  OrSkip<CallValue> Place(const TensorRecord& record, const std::string& path) {
    TensorFill fill;
    const bool is_recorded = !options_.tensor_directory.empty() && record.data_name;
    if (!IsTensorType(record.type)) {
      return Skip{SkipCause::kBadArgument, fmt::format("{}: a {}", path, record.type)};
    }
    if (options_.find_tensor) {
      if (auto described = DescribeHeld(record, path, fill); !described) {
        return std::move(described).error();
      }
    } else if (is_recorded) {
      if (auto described = DescribeFile(record, path, fill); !described) {
        return std::move(described).error();
      }
    } else if (auto described = Describe(record, path, fill); !described) {
      return std::move(described).error();
    }
    fill.rounds_to_hf32 = fill.dtype == DType::kFloat32 && IsAmong(kInHf32, recorded_.api);
    if (auto reserved = Reserve(path, fill); !reserved) return std::move(reserved).error();
    TensorPlace place;
    place.dtype = fill.dtype;
    place.shape = fill.shape;
    place.offset = fill.offset;
    place.requires_grad = !in_backward_ && !writes_out_ && IsDifferentiable(fill.dtype) &&
                          record.requires_grad.value_or(false);
    call_.fills.push_back(std::move(fill));
    return CallValue(std::move(place));
  }

  // From the statistics alone.
  OrSkip<void> Describe(const TensorRecord& record, const std::string& path, TensorFill& fill) {
    const std::optional<DType> dtype = DTypeOfRecord(record.dtype_text);
    if (!dtype) {
      return Skip{SkipCause::kBadArgument,
                  fmt::format("{}: a tensor of type {}, for which no elements can be drawn", path,
                              record.dtype_text)};
    }
    fill.dtype = *dtype;
    fill.shape = record.shape;
    GeneratedData data;
    const std::string_view direction = in_backward_ ? "backward" : "forward";
    data.key = StreamKey(options_.seed, {recorded_.name, direction, path});
    if (has_full_mask_ && !in_backward_ && path == "input_kwargs.atten_mask") {
      fill.dtype = DType::kBool;
      fill.shape = {kFullMaskSize, kFullMaskSize};
      data.pattern = Pattern::kStrictlyUpper;
    } else if (std::ranges::find(fill.shape, 0) == fill.shape.end()) {
      auto range = RangeOf(record, fill.dtype);
      if (!range) {
        return Skip{range.error().cause, fmt::format("{}: {}", path, range.error().detail)};
      }
      data.range = *range;
      fill.dtype = Converted(fill.dtype, path == "input_args.0");
    }
    fill.source = data;
    return {};
  }

  // What came with the call.
  OrSkip<void> DescribeHeld(const TensorRecord& record, const std::string& path, TensorFill& fill) {
    const std::optional<TensorView> view =
        record.data_name ? options_.find_tensor(*record.data_name) : std::nullopt;
    if (!view) return Skip{SkipCause::kMissingData, path + ": came without its elements"};
    const std::optional<DType> recorded = DTypeOfRecord(record.dtype_text);
    if (!std::ranges::equal(view->sizes, record.shape) || recorded.value_or(view->dtype) != view->dtype) {
      return Skip{SkipCause::kMissingData, path + ": came with elements of another tensor"};
    }
    fill.shape = record.shape;
    fill.dtype = Converted(view->dtype, /*is_first=*/false);
    fill.source = HeldData{{view->data, view->size_bytes()}, view->dtype};
    return {};
  }

  // A file of another type or shape than the dump says is of another tensor, and the call with it
  // would be another call.
  OrSkip<void> DescribeFile(const TensorRecord& record, const std::string& path, TensorFill& fill) {
    const std::string& name = *record.data_name;
    if (!name.ends_with(".pt") && !name.ends_with(".npy")) {
      return Skip{SkipCause::kMissingData,
                  fmt::format("{}: not a tensor file (expected .pt or .npy)", name)};
    }
    const auto file =
        load::OpenTensorIn(options_.tensor_directory, name, torch_pt::DataCheck::kTrust);
    if (!file) return Skip{SkipCause::kMissingData, file.error().message()};
    const TensorView view = file->view();
    const auto refuse = [&](std::string_view what, std::string_view got,
                            std::string_view expected) {
      return Skip{SkipCause::kMissingData, fmt::format("{}: {}: holds {} {} (expected {}, as "
                                                       "dump.json says)",
                                                       path, name, what, got, expected)};
    };
    if (!std::ranges::equal(view.sizes, record.shape)) {
      return refuse("the shape", fmt::format("({})", fmt::join(view.sizes, ", ")),
                    fmt::format("({})", fmt::join(record.shape, ", ")));
    }
    // What the dump spells in a way of its own, the file alone says.
    const DType recorded = DTypeOfRecord(record.dtype_text).value_or(view.dtype);
    // NumPy has no bfloat16; recorders write float32, which holds all of its values.
    const bool is_widened =
        recorded == DType::kBFloat16 && view.dtype == DType::kFloat32 && name.ends_with(".npy");
    if (view.dtype != recorded && !is_widened) {
      return refuse("elements of type", InfoOf(view.dtype).name, InfoOf(recorded).name);
    }
    fill.shape = record.shape;
    fill.dtype = Converted(recorded, /*is_first=*/false);
    fill.source = RecordedData{options_.tensor_directory, name, view.dtype};
    return {};
  }

  [[nodiscard]] DType Converted(DType dtype, bool is_first) const {
    if (in_backward_) return dtype;
    for (const Conversion& conversion : kConversions) {
      const bool is_meant = conversion.api == recorded_.api && conversion.from == dtype;
      if (is_meant && (is_first || !conversion.first_only)) return conversion.to;
    }
    return dtype;
  }

  // Sizes come from a file that nobody vouches for: nothing is computed before they are bounded.
  OrSkip<void> Reserve(const std::string& path, TensorFill& fill) {
    const Result<int64_t> count = ElementCount(fill.shape);
    const uint64_t element_bytes = InfoOf(fill.dtype).size_bytes;
    const uint64_t left =
        options_.memory_limit - std::min<uint64_t>(options_.memory_limit, call_.input_bytes);
    if (!count || static_cast<uint64_t>(*count) > left / element_bytes) {
      return TooLarge(path, fill, options_.memory_limit);
    }
    fill.offset = call_.input_bytes;
    // An empty tensor takes room as well, so that an offset belongs to one tensor.
    const uint64_t bytes = std::max<uint64_t>(static_cast<uint64_t>(*count) * element_bytes, 1);
    call_.input_bytes += (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
    return {};
  }

  [[nodiscard]] std::optional<Skip> FindRandomArgument() const {
    if (options_.keep_random) return std::nullopt;
    for (const RandomArgument& random : kRandomArguments) {
      if (random.api != recorded_.api) continue;
      const CallValue* const value = FindArgument(call_, random.position, random.keyword);
      if (value == nullptr || !MakesRandom(random, *value)) continue;
      return Skip{SkipCause::kRandom,
                  fmt::format("with this {} {} returns something else each time", random.keyword,
                              recorded_.api)};
    }
    return std::nullopt;
  }

  [[nodiscard]] bool MakesRandom(const RandomArgument& random, const CallValue& value) const {
    if (const auto* truth = value.As<bool>()) return random.draws == Draws::kIfTrue && *truth;
    const auto* const real = value.As<double>();
    const auto* const whole = value.As<int64_t>();
    if (real == nullptr && whole == nullptr) return false;
    const double number = real != nullptr ? *real : static_cast<double>(*whole);
    if (random.draws == Draws::kIfBelowOne) return number < 1;
    constexpr size_t kTraining = 13;  // of multi_head_attention_forward
    const CallValue* const training = FindArgument(call_, kTraining, "training");
    const auto* const trains = training == nullptr ? nullptr : training->As<bool>();
    return random.draws == Draws::kIfAboveZero && number > 0 && (trains == nullptr || *trains);
  }

  // A class that is ignored, such as -100, is recorded as the least target and would be drawn from.
  void FloorTarget() {
    if (recorded_.api != "cross_entropy") return;
    constexpr size_t kTarget = 1;
    const CallValue* const target = FindArgument(call_, kTarget, "target");
    const auto* const tensor = target == nullptr ? nullptr : target->As<TensorPlace>();
    if (tensor == nullptr) return;
    for (TensorFill& fill : call_.fills) {
      auto* const data = std::get_if<GeneratedData>(&fill.source);
      if (data == nullptr || fill.offset != tensor->offset) continue;
      if (data->range.low <= 0) data->range.low = 0;
      if (data->range.raw_low <= 0) data->range.raw_low = 0;
    }
  }

  void RaiseInputs() {
    RaisedTypes types;
    ForEachInput(call_, [&](TensorPlace& tensor) { Collect(tensor, types); });
    ForEachInput(call_, [&](TensorPlace& tensor) {
      tensor.raised = RaisedType(tensor, types, recorded_.api);
    });
    call_.autocast = AutocastType(types, OutputType(*recorded_.forward));
  }

  // Why no backward can be run, apart from the gradients themselves; all reasons.
  [[nodiscard]] std::string WhyNoBackward() {
    std::vector<std::string> reasons;
    if (writes_out_) reasons.emplace_back("the call writes into the argument out");
    for (const NoBackward& row : kNoBackward) {
      if (row.api == recorded_.api) reasons.push_back(fmt::format("{}: {}", row.api, row.why));
    }
    bool any = false;
    ForEachInput(call_, [&](const TensorPlace& tensor) { any = any || tensor.requires_grad; });
    if (!any && !writes_out_) reasons.emplace_back("no input requires a gradient");
    return fmt::format("{}", fmt::join(reasons, "; "));
  }

  OrSkip<std::vector<CallValue>> BuildGradients(const PlaceTensor& place) const {
    const auto skip = [](std::string_view why) {
      return Skip{SkipCause::kBackwardSkipped, std::string(why)};
    };
    const Value* const input = recorded_.backward->Find(dump_json::kInput);
    const auto* const list = input == nullptr ? nullptr : input->As<ValueList>();
    if (list == nullptr) return skip("no incoming gradients were recorded");
    std::vector<CallValue> grads;
    bool any = false;
    for (size_t i = 0; i < list->size(); ++i) {
      const std::string path = fmt::format("{}.{}", dump_json::kInput, i);
      auto grad = BuildValue((*list)[i], path, place);
      if (!grad) return std::move(grad).error();
      const bool is_tensor = grad->As<TensorPlace>() != nullptr;
      if (!is_tensor && !grad->is_null()) {
        return skip(fmt::format("{}: an incoming gradient that is no tensor", path));
      }
      any = any || is_tensor;
      grads.push_back(*std::move(grad));
    }
    if (!any) return skip("no incoming gradients were recorded");
    return grads;
  }

  void AddBackward(const PlaceTensor& place) {
    if (std::string why = WhyNoBackward(); !why.empty()) {
      call_.backward_skip = Skip{SkipCause::kBackwardSkipped, std::move(why)};
      return;
    }
    in_backward_ = true;
    const size_t forward_bytes = call_.input_bytes, forward_fills = call_.fills.size();
    auto grads = BuildGradients(place);
    if (!grads) {
      // The forward runs without what was placed for the backward.
      call_.input_bytes = forward_bytes;
      call_.fills.resize(forward_fills);
      call_.backward_skip = std::move(grads).error();
      return;
    }
    RaisedTypes types;
    for (CallValue& grad : *grads) {
      ForEachTensor(grad, [&](const TensorPlace& tensor) { Collect(tensor, types); });
    }
    for (CallValue& grad : *grads) {
      ForEachTensor(grad, [&](TensorPlace& tensor) {
        tensor.raised = RaisedType(tensor, types, recorded_.api);
      });
    }
    call_.grads = *std::move(grads);
  }

  const RecordedCall& recorded_;
  const PreparationOptions& options_;
  PreparedCall call_;
  bool in_backward_ = false;
  bool writes_out_ = false;
  bool has_full_mask_ = false;
};

}  // namespace

OrSkip<PreparedCall> PrepareCall(const RecordedCall& recorded, const PreparationOptions& options) {
  return Preparer(recorded, options).Run();
}

}  // namespace plumbline::precheck
