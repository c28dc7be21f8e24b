#include "precheck/call_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "formats/json/dump_json.h"

namespace plumbline::precheck {

namespace {

constexpr std::string_view kValue = "value";
constexpr std::string_view kFormat = "format";

// What NumPy calls the scalars that are rebuilt, without "numpy.".
constexpr std::string_view kNumpyScalars[] = {
    "bool_",   "bytes_",  "complex128", "complex256", "complex64", "float128", "float16",
    "float32", "float64", "int16",      "int32",      "int64",     "int8",     "string_",
    "uint16",  "uint32",  "uint64",     "uint8",      "unicode_"};
// Types of scalars whose value is taken as it stands, NumPy's as dumps really spell them among
// them.
constexpr std::string_view kPlainScalars[] = {
    "bool",  "bool_", "float", "float16", "float32", "float64", "int",    "int16", "int32",
    "int64", "int8",  "str",   "str_",    "uint16",  "uint32",  "uint64", "uint8"};

// A value of a dump in a few words, for messages.
std::string Described(const Value& value) {
  constexpr size_t kShownBytes = 60;
  if (value.is_null()) return "null";
  if (const auto* text = value.As<std::string>()) {
    return fmt::format("the text \"{}\"", text->substr(0, kShownBytes));
  }
  if (const auto* list = value.As<ValueList>()) return fmt::format("a list of {}", list->size());
  if (const auto* big = value.As<BigInt>()) {
    return fmt::format("an integer of {} digits", big->digits.size());
  }
  if (const auto* tensor = value.As<TensorRecord>()) return fmt::format("a {}", tensor->type);
  if (const auto* map = value.As<ValueMap>()) {
    const Value* const type = value.Find(dump_json::kType);
    const auto* name = type == nullptr ? nullptr : type->As<std::string>();
    if (name != nullptr) return fmt::format("an object of type {}", name->substr(0, kShownBytes));
    return map->empty() ? "an object that the recorder could not describe"
                        : fmt::format("an object of {} members", map->size());
  }
  return "a number";
}

Skip BadArgument(std::string_view path, std::string_view problem) {
  return Skip{SkipCause::kBadArgument, fmt::format("{}: {}", path, problem)};
}

class Builder {
 public:
  explicit Builder(const PlaceTensor& place) : place_(place) {}

  OrSkip<CallValue> Build(const Value& value, const std::string& path, int depth) {
    if (depth > kMostArgumentDepth) {
      return BadArgument(path, fmt::format("nested deeper than {} levels", kMostArgumentDepth));
    }
    if (value.is_null()) return CallValue();
    if (const auto* truth = value.As<bool>()) return CallValue(*truth);
    if (const auto* number = value.As<int64_t>()) return CallValue(*number);
    if (const auto* number = value.As<double>()) return CallValue(*number);
    if (const auto* text = value.As<std::string>()) return CallValue(*text);
    if (const auto* tensor = value.As<TensorRecord>()) return place_(*tensor, path);
    if (const auto* list = value.As<ValueList>()) return BuildList(*list, path, depth);
    if (const auto* map = value.As<ValueMap>()) return BuildObject(value, *map, {path, depth});
    return BadArgument(path, Described(value) + " does not fit 64 bits");
  }

 private:
  struct Place {
    const std::string& path;
    int depth;
  };

  OrSkip<CallValue> BuildList(const ValueList& list, const std::string& path, int depth) {
    CallSequence sequence;
    sequence.items.reserve(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      auto item = Build(list[i], fmt::format("{}.{}", path, i), depth + 1);
      if (!item) return item;
      sequence.items.push_back(*std::move(item));
    }
    return CallValue(std::move(sequence));
  }

  OrSkip<CallValue> BuildObject(const Value& value, const ValueMap& map, const Place& at) {
    if (map.empty()) return BadArgument(at.path, Described(value));
    const Value* const type = value.Find(dump_json::kType);
    if (type == nullptr) return BuildDict(map, at);
    const auto* const name = type->As<std::string>();
    if (name == nullptr) return BadArgument(at.path, "an object whose type is no text");
    return BuildTyped(value, *name, at);
  }

  OrSkip<CallValue> BuildDict(const ValueMap& map, const Place& at) {
    CallMap members;
    for (const auto& [key, member] : map) {
      auto built = Build(member, fmt::format("{}.{}", at.path, key), at.depth + 1);
      if (!built) return built;
      members.emplace_back(key, *std::move(built));
    }
    return CallValue(std::move(members));
  }

  OrSkip<CallValue> BuildTyped(const Value& object, std::string_view type, const Place& at) {
    const Value* const value = object.Find(kValue);
    if (type == "ellipsis") return CallValue(SpecialValue{Special::kEllipsis, "", "..."});
    if (type == "torch.Size" || type == "slice") {
      const auto* const parts = value == nullptr ? nullptr : value->As<ValueList>();
      if (parts == nullptr) return BadArgument(at.path, fmt::format("a {} without values", type));
      return BuildIntegers(*parts, type == "slice" ? Sequence::kSlice : Sequence::kSize, at);
    }
    if (type == "torch.memory_format") return BuildMemoryFormat(object, at);
    if (type == "torch.dtype" || type == "torch.device") {
      const auto* const text = value == nullptr ? nullptr : value->As<std::string>();
      if (text == nullptr) return BadArgument(at.path, fmt::format("a {} without text", type));
      if (type == "torch.device") return CallValue(SpecialValue{Special::kDevice, "", *text});
      return BuildDType(*text, at);
    }
    constexpr std::string_view kNumpy = "numpy.";
    if (value == nullptr || value->is_null()) return BadArgument(at.path, Described(object));
    if (type.starts_with(kNumpy)) return BuildNumpy(type.substr(kNumpy.size()), *value, at);
    if (std::ranges::count(kPlainScalars, type) == 0)
      return BadArgument(at.path, Described(object));
    const bool is_plain = value->As<bool>() != nullptr || value->As<int64_t>() != nullptr ||
                          value->As<double>() != nullptr || value->As<std::string>() != nullptr;
    if (is_plain) return Build(*value, at.path, at.depth);
    return BadArgument(at.path, fmt::format("a {} that is {}", type, Described(*value)));
  }

  // Sizes and slices: integers, and null in slices.
  static OrSkip<CallValue> BuildIntegers(const ValueList& parts, Sequence kind, const Place& at) {
    constexpr size_t kSliceParts = 3;
    const bool is_slice = kind == Sequence::kSlice;
    if (is_slice && parts.size() != kSliceParts) {
      return BadArgument(at.path, fmt::format("a slice of {} parts (expected start, stop and step)",
                                              parts.size()));
    }
    CallSequence sequence{kind, {}};
    for (const Value& part : parts) {
      const std::optional<int64_t> number = RecordedInteger(part);
      if (!number && !(is_slice && part.is_null())) {
        return BadArgument(at.path, fmt::format("a {} with {} in it", is_slice ? "slice" : "size",
                                                Described(part)));
      }
      CallValue& item = sequence.items.emplace_back();
      if (number) item = CallValue(*number);
    }
    return CallValue(std::move(sequence));
  }

  static OrSkip<CallValue> BuildMemoryFormat(const Value& object, const Place& at) {
    const Value* const format = object.Find(kFormat);
    const Value* const found = format != nullptr ? format : object.Find(kValue);
    const auto* const text = found == nullptr ? nullptr : found->As<std::string>();
    if (text == nullptr) return BadArgument(at.path, "a torch.memory_format without name");
    // Recorders leave out the module or not, depending on the release.
    return CallValue(SpecialValue{Special::kMemoryFormat, "",
                                  text->starts_with("torch.") ? *text : "torch." + *text});
  }

  // Texts that name no dtype, and modules but these, are not resolved: they could be anything.
  static OrSkip<CallValue> BuildDType(std::string_view text, const Place& at) {
    for (const std::string_view module : {"torch.", "numpy."}) {
      const bool is_name = text.starts_with(module) && text.size() > module.size() &&
                           std::ranges::all_of(text.substr(module.size()), [](char c) {
                             return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
                           });
      if (is_name) return CallValue(SpecialValue{Special::kDType, "", std::string(text)});
    }
    return BadArgument(at.path,
                       fmt::format("a dtype \"{}\" (expected one of torch or numpy)", text));
  }

  static OrSkip<CallValue> BuildNumpy(std::string_view type, const Value& value, const Place& at) {
    if (std::ranges::count(kNumpyScalars, type) == 0) {
      return BadArgument(at.path, fmt::format("a NumPy scalar of type {}", type));
    }
    std::string text;
    if (const auto* number = value.As<int64_t>()) {
      text = fmt::to_string(*number);
    } else if (const auto* real = value.As<double>()) {
      text = fmt::to_string(*real);
    } else if (const auto* truth = value.As<bool>()) {
      text = *truth ? "True" : "False";
    } else if (const auto* spelled = value.As<std::string>()) {
      text = *spelled;
    } else if (const auto* big = value.As<BigInt>()) {
      text = big->digits;
    } else {
      return BadArgument(at.path, fmt::format("a numpy.{} that is {}", type, Described(value)));
    }
    return CallValue(SpecialValue{Special::kNumpy, std::string(type), std::move(text)});
  }

  const PlaceTensor& place_;
};

}  // namespace

std::optional<int64_t> RecordedInteger(const Value& value) {
  if (const auto* number = value.As<int64_t>()) return *number;
  const Value* const inner = value.Find(kValue);
  const auto* const number = inner == nullptr ? nullptr : inner->As<int64_t>();
  return number == nullptr ? std::nullopt : std::optional<int64_t>(*number);
}

OrSkip<CallValue> BuildValue(const Value& value, const std::string& path,
                             const PlaceTensor& place) {
  return Builder(place).Build(value, path, 0);
}

OrSkip<std::vector<CallValue>> BuildPositional(const Value* arguments, const PlaceTensor& place) {
  const std::string path(dump_json::kInputArgs);
  if (arguments == nullptr) {
    return BadArgument(path, "not recorded (expected a recording with data_mode all or input)");
  }
  const auto* const list = arguments->As<ValueList>();
  if (list == nullptr) {
    return BadArgument(path, fmt::format("{} (expected a list)", Described(*arguments)));
  }
  std::vector<CallValue> values;
  values.reserve(list->size());
  for (size_t i = 0; i < list->size(); ++i) {
    auto value = BuildValue((*list)[i], fmt::format("{}.{}", path, i), place);
    if (!value) return std::move(value).error();
    values.push_back(*std::move(value));
  }
  return values;
}

OrSkip<CallMap> BuildKeyword(const Value* arguments, const PlaceTensor& place) {
  const std::string path(dump_json::kInputKwargs);
  CallMap values;
  if (arguments == nullptr || arguments->is_null()) return values;
  const auto* const map = arguments->As<ValueMap>();
  if (map == nullptr) {
    return BadArgument(path, fmt::format("{} (expected an object)", Described(*arguments)));
  }
  for (const auto& [key, argument] : *map) {
    auto value = BuildValue(argument, fmt::format("{}.{}", path, key), place);
    if (!value) return std::move(value).error();
    values.emplace_back(key, *std::move(value));
  }
  return values;
}

}  // namespace plumbline::precheck
