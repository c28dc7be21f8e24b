#include "formats/dump_json_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/number_text.h"
#include "formats/dump_json_keys.h"
#include "formats/keep_last.h"

namespace plumbline::dump_json {
namespace {

using json::Kind;
using json::Number;

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "true or false";
    case Kind::kNumber:
      return "a number";
    case Kind::kString:
      return "a text";
    case Kind::kArray:
      return "a list";
    case Kind::kObject:
      return "an object";
    case Kind::kNone:
      break;
  }
  return "nothing";
}

double ToDouble(std::string_view digits) {
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc::result_out_of_range) return value;
  const double infinity = std::numeric_limits<double>::infinity();
  return digits[0] == '-' ? -infinity : infinity;
}

// Statistics written as text: "3.5", "nan", "-inf", "12", "None".
std::optional<Statistic> StatisticFromText(std::string_view text) {
  if (text == "None" || text == "null" || text == "N/A") return Statistic();
  json::Reader in(text);
  Number number;
  if (in.Peek() != Kind::kNumber || !in.ReadNumber(number) || !in.ReadEnd()) return std::nullopt;
  if (const auto* digits = std::get_if<std::string_view>(&number)) return ToDouble(*digits);
  if (const auto* integer = std::get_if<int64_t>(&number)) return *integer;
  return std::get<double>(number);
}

// Leaves the last member of each key, at the place of the first, as a Python dict does.
void KeepLastOfEachKey(ValueMap& map) {
  constexpr size_t kFewMembers = 8;
  bool repeated = map.size() > kFewMembers;
  for (size_t i = 1; i < map.size() && !repeated; ++i) {
    const auto before = map.begin() + static_cast<std::ptrdiff_t>(i);
    repeated = std::any_of(map.begin(), before,
                           [&](const auto& member) { return member.first == map[i].first; });
  }
  if (!repeated) return;
  KeepLastOfEach(map, [](const auto& member) -> const std::string& { return member.first; });
}

bool IsText(const ValueMap& map, std::string_view key) {
  return std::any_of(map.begin(), map.end(), [key](const auto& member) {
    return member.first == key && member.second.template As<std::string>() != nullptr;
  });
}

}  // namespace

bool ValueReader::WrongType(std::string_view key, std::string_view expected, Kind got) {
  problem_ =
      fmt::format("{} has the wrong type (expected {}, got {})", key, expected, KindName(got));
  return false;
}

bool ValueReader::Read(Value& out) {
  switch (in_.Peek()) {
    case Kind::kNull:
      out = Value();
      return in_.ReadNull();
    case Kind::kBool: {
      bool truth;
      if (!in_.ReadBool(truth)) return false;
      out = truth;
      return true;
    }
    case Kind::kNumber:
      return ReadNumber(out);
    case Kind::kString: {
      std::string_view text;
      if (!in_.ReadString(text)) return false;
      out = std::string(text);
      return true;
    }
    case Kind::kArray:
      return ReadList(out);
    case Kind::kObject:
      return ReadObject(out);
    case Kind::kNone:
      break;
  }
  return in_.SkipValue();  // fails and says where
}

bool ValueReader::ReadNumber(Value& out) {
  Number number;
  if (!in_.ReadNumber(number)) return false;
  if (const auto* integer = std::get_if<int64_t>(&number)) {
    out = *integer;
  } else if (const auto* real = std::get_if<double>(&number)) {
    out = *real;
  } else {
    out = BigInt{std::string(std::get<std::string_view>(number))};
  }
  return true;
}

bool ValueReader::ReadList(Value& out) {
  if (!in_.EnterArray()) return false;
  auto& list = out.Emplace<ValueList>();
  while (in_.NextElement()) {
    if (!Read(list.emplace_back())) return false;
  }
  return !in_.failed();
}

bool ValueReader::ReadMembers(ValueMap& out) {
  if (!in_.EnterObject()) return false;
  std::string_view key;
  while (in_.NextMember(key)) {
    out.emplace_back(key, Value());
    if (!Read(out.back().second)) return false;
  }
  KeepLastOfEachKey(out);
  return !in_.failed();
}

bool ValueReader::ReadObject(Value& out) {
  if (const Head* head = EnterKnownHead()) {
    auto& tensor = out.Emplace<TensorRecord>();
    tensor.type = head->type;
    tensor.dtype_text = head->dtype_text;
    tensor.shape = head->shape;
    return ReadStatistic(in_, kMax, tensor.max) && ReadTensor(in_, tensor, {true, true, {}});
  }
  const size_t start = in_.offset();
  if (!in_.EnterObject()) return false;
  ValueMap map;
  std::string_view key;
  while (in_.NextMember(key)) {
    const bool tensor =
        key == kDType && map.size() == 1 && IsText(map, kType) && in_.Peek() == Kind::kString;
    if (tensor) {
      std::string type = std::move(*map[0].second.As<std::string>());
      auto& record = out.Emplace<TensorRecord>();
      record.type = std::move(type);
      return ReadTensorMember(in_, kDType, record) && ReadTensor(in_, record, {true, false, start});
    }
    map.emplace_back(key, Value());
    if (!Read(map.back().second)) return false;
  }
  if (in_.failed()) return false;
  KeepLastOfEachKey(map);
  if (IsText(map, kType) && IsText(map, kDType)) {
    // A tensor with its keys in an unusual order: read it again, now knowing that.
    json::Reader again(feed_.text().substr(start, in_.offset() - start));
    return again.EnterObject() && ReadTensor(again, out.Emplace<TensorRecord>(), {});
  }
  out = std::move(map);
  return true;
}

const ValueReader::Head* ValueReader::EnterKnownHead() {
  for (const Head& head : heads_) {
    if (head.text.empty()) return nullptr;
    if (in_.EnterKnown(head.text)) return &head;
  }
  return nullptr;
}

void ValueReader::RememberHead(size_t start, const TensorRecord& tensor) {
  const std::string_view text = feed_.text().substr(start, in_.offset() - start);
  heads_[oldest_head_] = {std::string(text), tensor.type, tensor.dtype_text, tensor.shape};
  oldest_head_ = (oldest_head_ + 1) % heads_.size();
}

bool ValueReader::ReadTensor(json::Reader& in, TensorRecord& tensor, Progress progress) {
  std::string_view key;
  while (in.NextMember(key)) {
    // Only where nothing but type, dtype and shape stands before: that is all a head keeps.
    if (progress.start && key == kMax && progress.has_shape) RememberHead(*progress.start, tensor);
    if (progress.has_shape || key != kShape) progress.start.reset();
    progress.has_shape = progress.has_shape || key == kShape;
    if (!progress.has_type && key == kType) {
      std::string_view text;
      if (in.Peek() != Kind::kString) return WrongType(kType, "a text", in.Peek());
      if (!in.ReadString(text)) return false;
      tensor.type = text;
    } else if (!ReadTensorMember(in, key, tensor)) {
      return false;
    }
  }
  if (in.failed()) return false;
  if (!progress.has_shape) {
    problem_ = "a tensor has no shape";
    return false;
  }
  return true;
}

bool ValueReader::ReadTensorMember(json::Reader& in, std::string_view key, TensorRecord& tensor) {
  if (key == kDType) {
    std::string_view text;
    if (in.Peek() != Kind::kString) return WrongType(key, "a text", in.Peek());
    if (!in.ReadString(text)) return false;
    tensor.dtype_text = text;
    return true;
  }
  if (key == kShape) return ReadShape(in, tensor.shape);
  if (key == kMax) return ReadStatistic(in, kMax, tensor.max);
  if (key == kMin) return ReadStatistic(in, kMin, tensor.min);
  if (key == kMean) return ReadStatistic(in, kMean, tensor.mean);
  if (key == kNorm) return ReadStatistic(in, kNorm, tensor.norm);
  if (key == kRequiresGrad) return ReadGrad(in, tensor.requires_grad);
  if (key == kMaxFinite) return ReadOptionalStatistic(in, kMaxFinite, tensor.max_finite);
  if (key == kMinFinite) return ReadOptionalStatistic(in, kMinFinite, tensor.min_finite);
  if (key == kDigest) return ReadDigest(in, tensor.digest);
  if (key == kDataName) return ReadOptionalText(in, kDataName, tensor.data_name);
  if (key == kNanCount) return ReadCount(in, kNanCount, tensor.nan_count);
  if (key == kInfCount) return ReadCount(in, kInfCount, tensor.inf_count);
  if (key == kZeroCount) return ReadCount(in, kZeroCount, tensor.zero_count);
  return in.SkipValue();
}

bool ValueReader::ReadStatistic(json::Reader& in, std::string_view key, Statistic& out) {
  const Kind kind = in.Peek();
  if (kind == Kind::kNumber) {
    Number number;
    if (!in.ReadNumber(number)) return false;
    if (const auto* real = std::get_if<double>(&number)) {
      out = *real;
    } else if (const auto* integer = std::get_if<int64_t>(&number)) {
      out = *integer;
    } else {
      out = ToDouble(std::get<std::string_view>(number));
    }
    return true;
  }
  if (kind == Kind::kNull) {
    out = std::monostate();
    return in.ReadNull();
  }
  if (kind == Kind::kBool) {
    bool truth;
    if (!in.ReadBool(truth)) return false;
    out = truth;
    return true;
  }
  if (kind == Kind::kNone) return in.SkipValue();
  std::string_view text;
  if (kind != Kind::kString) return WrongType(key, "a number", kind);
  if (!in.ReadString(text)) return false;
  const auto value = StatisticFromText(text);
  if (!value) return WrongType(key, "a number", kind);
  out = *value;
  return true;
}

bool ValueReader::ReadOptionalStatistic(json::Reader& in, std::string_view key,
                                        std::optional<Statistic>& out) {
  return ReadStatistic(in, key, out.emplace());
}

bool ValueReader::ReadShape(json::Reader& in, Shape& shape) {
  if (in.Peek() == Kind::kNone) return in.SkipValue();
  if (in.Peek() != Kind::kArray) return WrongType(kShape, "a list", in.Peek());
  shape.clear();
  in.EnterArray();
  while (in.NextElement()) {
    Number number;
    if (in.Peek() == Kind::kNone) return in.SkipValue();
    if (in.Peek() != Kind::kNumber) return WrongType(kShape, "a list of sizes", in.Peek());
    if (!in.ReadNumber(number)) return false;
    const auto* size = std::get_if<int64_t>(&number);
    if (size == nullptr || *size < 0) {
      problem_ = "shape holds a number that is no size (expected whole numbers from 0)";
      return false;
    }
    shape.push_back(*size);
  }
  return !in.failed();
}

bool ValueReader::ReadGrad(json::Reader& in, std::optional<bool>& out) {
  switch (in.Peek()) {
    case Kind::kBool:
      return in.ReadBool(out.emplace());
    case Kind::kNull:
      out.reset();
      return in.ReadNull();
    case Kind::kNone:
      return in.SkipValue();
    default:
      return WrongType(kRequiresGrad, "true or false", in.Peek());
  }
}

bool ValueReader::ReadDigest(json::Reader& in, std::optional<std::string>& out) {
  if (in.Peek() != Kind::kNumber) return ReadOptionalText(in, kDigest, out);
  // 26.2.0 stores the value itself instead of an xor digest for tensors without dimensions.
  Number number;
  if (!in.ReadNumber(number)) return false;
  if (const auto* real = std::get_if<double>(&number)) {
    out = PythonFloat(*real);
  } else if (const auto* integer = std::get_if<int64_t>(&number)) {
    out = fmt::to_string(*integer);
  } else {
    out = std::string(std::get<std::string_view>(number));
  }
  return true;
}

bool ValueReader::ReadOptionalText(json::Reader& in, std::string_view key,
                                   std::optional<std::string>& out) {
  std::string_view text;
  switch (in.Peek()) {
    case Kind::kString:
      if (!in.ReadString(text)) return false;
      out = std::string(text);
      return true;
    case Kind::kNull:
      out.reset();
      return in.ReadNull();
    case Kind::kNone:
      return in.SkipValue();
    default:
      return WrongType(key, "a text", in.Peek());
  }
}

bool ValueReader::ReadCount(json::Reader& in, std::string_view key, std::optional<int64_t>& out) {
  if (in.Peek() == Kind::kNone) return in.SkipValue();
  if (in.Peek() != Kind::kNumber) return WrongType(key, "a whole number", in.Peek());
  Number number;
  if (!in.ReadNumber(number)) return false;
  const auto* count = std::get_if<int64_t>(&number);
  if (count == nullptr) return WrongType(key, "a whole number", Kind::kNumber);
  out = *count;
  return true;
}

}  // namespace plumbline::dump_json
