#include "precheck/call_value.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "base/text/json.h"
#include "base/text/number_text.h"

namespace plumbline::precheck {
namespace {

// Levels of JSON, of which a list takes two and a map three: trees of forty levels.
constexpr int kDeepest = 128;
constexpr size_t kMostDimensions = 64;
constexpr int64_t kAlignment = 64;

constexpr std::array<std::string_view, 4> kSequences = {"list", "tuple", "size", "slice"};
constexpr std::array<std::pair<std::string_view, Special>, 5> kSpecials = {
    {{"dtype", Special::kDType},
     {"memory_format", Special::kMemoryFormat},
     {"device", Special::kDevice},
     {"ellipsis", Special::kEllipsis},
     {"other", Special::kOther}}};
constexpr std::string_view kNumpy = "numpy", kDict = "dict", kTensor = "tensor";

// `{"key":` of a node that is no plain value.
void Open(std::string_view key, std::string& out) {
  out += "{\"";
  out += key;
  out += "\":";
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void operator()(std::monostate /*null*/) { out_ += "null"; }
  void operator()(bool value) { out_ += value ? "true" : "false"; }
  void operator()(int64_t value) { fmt::format_to(std::back_inserter(out_), "{}", value); }
  void operator()(double value) { AppendJsonFloat(value, out_); }
  void operator()(const std::string& value) { json::AppendString(value, out_); }

  void operator()(const SpecialValue& value) {
    if (value.kind == Special::kNumpy) {
      Open(kNumpy, out_);
      out_ += '[';
      json::AppendString(value.type, out_);
      out_ += ',';
      json::AppendString(value.text, out_);
      out_ += "]}";
      return;
    }
    for (const auto& [key, kind] : kSpecials) {
      if (kind == value.kind) Open(key, out_);
    }
    json::AppendString(value.text.empty() ? value.type : value.text, out_);
    out_ += '}';
  }

  void operator()(const CallSequence& value) {
    Open(kSequences[static_cast<size_t>(value.kind)], out_);
    out_ += '[';
    for (size_t i = 0; i < value.items.size(); ++i) {
      if (i > 0) out_ += ',';
      std::visit(*this, value.items[i].storage());
    }
    out_ += "]}";
  }

  void operator()(const CallMap& value) {
    Open(kDict, out_);
    AppendJson(value, out_);
    out_ += '}';
  }

  void operator()(const TensorPlace& value) {
    Open(kTensor, out_);
    fmt::format_to(std::back_inserter(out_), "[\"{}\",[", InfoOf(value.dtype).name);
    for (size_t i = 0; i < value.shape.size(); ++i) {
      fmt::format_to(std::back_inserter(out_), "{}{}", i > 0 ? "," : "", value.shape[i]);
    }
    fmt::format_to(std::back_inserter(out_), "],{},{},", value.offset,
                   value.requires_grad ? "true" : "false");
    if (value.raised) {
      fmt::format_to(std::back_inserter(out_), "\"{}\"", InfoOf(*value.raised).name);
    } else {
      out_ += "null";
    }
    // Only results have a type of their own, which arguments never had.
    if (!value.type.empty()) {
      out_ += ',';
      json::AppendString(value.type, out_);
    }
    out_ += "]}";
  }

 private:
  std::string& out_;
};

// Reads one tree. The reader's limit of depth bounds the recursion.
class TreeReader {
 public:
  explicit TreeReader(std::string_view text) : in_(text, kDeepest) {}

  Result<CallValue> ReadAll() {
    PL_TRY_ASSIGN(CallValue value, Read());
    if (!in_.ReadEnd()) return in_.error();
    return value;
  }

 private:
  [[nodiscard]] Error Wrong(std::string_view what) const {
    if (in_.failed()) return in_.error();
    return {ErrorCode::kCorrupt, fmt::format("byte {}: {}", in_.offset(), what)};
  }

  Result<CallValue> Read() {
    switch (in_.Peek()) {
      case json::Kind::kNull:
        if (in_.ReadNull()) return CallValue();
        break;
      case json::Kind::kBool:
        if (bool truth = false; in_.ReadBool(truth)) return CallValue(truth);
        break;
      case json::Kind::kNumber:
        return ReadNumber();
      case json::Kind::kString: {
        PL_TRY_ASSIGN(std::string text, ReadText());
        return CallValue(std::move(text));
      }
      case json::Kind::kObject:
        return ReadObject();
      default:
        break;
    }
    return Wrong("expected a value of a call");
  }

  Result<CallValue> ReadNumber() {
    json::Number number;
    if (!in_.ReadNumber(number)) return in_.error();
    if (const auto* integer = std::get_if<int64_t>(&number)) return CallValue(*integer);
    if (const auto* real = std::get_if<double>(&number)) return CallValue(*real);
    // Wider than any tensor holds: only its text is known.
    return CallValue(SpecialValue{Special::kOther, "int", std::string(std::get<2>(number))});
  }

  Result<std::string> ReadText() {
    std::string_view text;
    if (in_.Peek() != json::Kind::kString || !in_.ReadString(text)) return Wrong("expected a text");
    return std::string(text);
  }

  // A node with one member, which says what it is.
  Result<CallValue> ReadObject() {
    std::string_view key;
    if (!in_.EnterObject() || !in_.NextMember(key)) return Wrong("expected a kind of value");
    PL_TRY_ASSIGN(CallValue value, ReadNode(std::string(key)));
    if (in_.NextMember(key) || in_.failed()) return Wrong("expected one kind of value");
    return value;
  }

  Result<CallValue> ReadNode(const std::string& key) {
    for (size_t i = 0; i < kSequences.size(); ++i) {
      if (key == kSequences[i]) return ReadSequence(static_cast<Sequence>(i));
    }
    for (const auto& [name, kind] : kSpecials) {
      if (key != name) continue;
      PL_TRY_ASSIGN(std::string text, ReadText());
      return CallValue(SpecialValue{kind, kind == Special::kOther ? text : std::string(), text});
    }
    if (key == kDict) return ReadMap();
    if (key == kNumpy) return ReadNumpy();
    if (key == kTensor) return ReadTensor();
    return Wrong(fmt::format("unknown kind of value {}", key));
  }

  Result<CallValue> ReadSequence(Sequence kind) {
    CallSequence sequence{kind, {}};
    if (!in_.EnterArray()) return in_.error();
    while (in_.NextElement()) {
      PL_TRY_ASSIGN(CallValue item, Read());
      sequence.items.push_back(std::move(item));
    }
    if (in_.failed()) return in_.error();
    if (kind == Sequence::kSlice && sequence.items.size() != 3) {
      return Wrong("expected start, stop and step of a slice");
    }
    return CallValue(std::move(sequence));
  }

  Result<CallValue> ReadMap() {
    CallMap map;
    if (!in_.EnterArray()) return in_.error();
    while (in_.NextElement()) {
      if (!in_.EnterArray() || !in_.NextElement()) return Wrong("expected a key and a value");
      PL_TRY_ASSIGN(std::string key, ReadText());
      if (!in_.NextElement()) return Wrong("expected a value behind the key");
      PL_TRY_ASSIGN(CallValue value, Read());
      if (in_.NextElement() || in_.failed()) return Wrong("expected a key and one value");
      map.emplace_back(std::move(key), std::move(value));
    }
    if (in_.failed()) return in_.error();
    return CallValue(std::move(map));
  }

  Result<CallValue> ReadNumpy() {
    SpecialValue scalar{Special::kNumpy, {}, {}};
    if (!in_.EnterArray() || !in_.NextElement()) return Wrong("expected a type and a text");
    PL_TRY_ASSIGN(scalar.type, ReadText());
    if (!in_.NextElement()) return Wrong("expected a text behind the type");
    PL_TRY_ASSIGN(scalar.text, ReadText());
    if (in_.NextElement() || in_.failed()) return Wrong("expected a type and one text");
    return CallValue(std::move(scalar));
  }

  Result<CallValue> ReadTensor() {
    TensorPlace place;
    if (!in_.EnterArray() || !in_.NextElement()) return Wrong("expected a tensor");
    PL_TRY_ASSIGN(place.dtype, ReadDType());
    if (!in_.NextElement()) return Wrong("expected the shape of a tensor");
    PL_TRY_ASSIGN(place.shape, ReadShape());
    if (!in_.NextElement()) return Wrong("expected the offset of a tensor");
    PL_TRY_ASSIGN(const int64_t offset, ReadNatural());
    if (offset % kAlignment != 0) return Wrong("expected an offset that is a multiple of 64");
    place.offset = static_cast<size_t>(offset);
    if (!in_.NextElement() || !in_.ReadBool(place.requires_grad)) {
      return Wrong("expected whether a gradient is wanted");
    }
    if (!in_.NextElement()) return Wrong("expected the raised type of a tensor");
    if (in_.Peek() == json::Kind::kNull) {
      (void)in_.ReadNull();
    } else {
      PL_TRY_ASSIGN(place.raised, ReadDType());
    }
    if (!in_.NextElement()) {
      if (in_.failed()) return in_.error();
      return CallValue(std::move(place));
    }
    if (in_.Peek() == json::Kind::kNull) {
      (void)in_.ReadNull();
    } else {
      PL_TRY_ASSIGN(place.type, ReadText());
    }
    if (in_.NextElement() || in_.failed()) return Wrong("expected the end of a tensor");
    return CallValue(std::move(place));
  }

  Result<DType> ReadDType() {
    PL_TRY_ASSIGN(const std::string text, ReadText());
    const std::optional<DType> dtype = ParseDType(text);
    if (!dtype) return Wrong(fmt::format("unknown type of elements {}", text));
    return *dtype;
  }

  Result<int64_t> ReadNatural() {
    json::Number number;
    if (in_.Peek() != json::Kind::kNumber || !in_.ReadNumber(number)) {
      return Wrong("expected a number");
    }
    const auto* integer = std::get_if<int64_t>(&number);
    if (integer == nullptr || *integer < 0) return Wrong("expected a natural number");
    return *integer;
  }

  Result<Shape> ReadShape() {
    Shape shape;
    if (!in_.EnterArray()) return Wrong("expected a shape");
    while (in_.NextElement()) {
      if (shape.size() == kMostDimensions) return Wrong("expected at most 64 dimensions");
      PL_TRY_ASSIGN(const int64_t size, ReadNatural());
      shape.push_back(size);
    }
    if (in_.failed()) return in_.error();
    // What no memory holds overflows where its bytes are counted.
    const Result<int64_t> count = ElementCount(shape);
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 16;
    if (!count || *count > kMost) return Wrong("the shape has too many elements");
    return shape;
  }

  json::Reader in_;
};

}  // namespace

void AppendJson(const CallValue& value, std::string& out) {
  std::visit(Writer(out), value.storage());
}

void AppendJson(const CallMap& map, std::string& out) {
  out += '[';
  for (size_t i = 0; i < map.size(); ++i) {
    out += i > 0 ? ",[" : "[";
    json::AppendString(map[i].first, out);
    out += ',';
    AppendJson(map[i].second, out);
    out += ']';
  }
  out += ']';
}

Result<CallValue> ParseCallValue(std::string_view json) { return TreeReader(json).ReadAll(); }

Result<size_t> BytesOf(const TensorPlace& place) {
  PL_TRY_ASSIGN(const int64_t count, ElementCount(place.shape));
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(count), InfoOf(place.dtype).size_bytes, &bytes)) {
    return Error(ErrorCode::kCorrupt, "a tensor has more bytes than there are addresses");
  }
  return bytes;
}

}  // namespace plumbline::precheck
