#include "record/value.h"

#include <cstring>

namespace plumbline {
namespace {

constexpr int kHasParent = 1;
// Optional fields of a packed tensor.
constexpr int kHasGrad = 1, kGradTrue = 2, kHasMaxFinite = 4, kHasMinFinite = 8, kHasDigest = 16,
              kHasDataName = 32;
constexpr int kMaxDepth = 500;  // deeper than any walk packs (400): damaged bytes

// Cursor over packed bytes. Every read checks what remains; failed_ sticks.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T Number() {
    T value{};
    if (bytes_.size() < sizeof(T)) {
      failed_ = true;
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
    return value;
  }

  std::string Text() {
    const auto length = Number<uint32_t>();
    if (failed_ || bytes_.size() < length) {
      failed_ = true;
      return {};
    }
    std::string text(reinterpret_cast<const char*>(bytes_.data()), length);
    bytes_ = bytes_.subspan(length);
    return text;
  }

  PackTag Tag() { return static_cast<PackTag>(Number<uint8_t>()); }

  Statistic Stat() {
    switch (Tag()) {
      case PackTag::kFalse:
        return false;
      case PackTag::kTrue:
        return true;
      case PackTag::kInt:
        return Number<int64_t>();
      case PackTag::kFloat:
        return Number<double>();
      case PackTag::kNull:
        return std::monostate{};
      default:
        failed_ = true;
        return std::monostate{};
    }
  }

  TensorRecord Tensor() {
    TensorRecord tensor;
    const auto flags = Number<uint8_t>();
    tensor.type = Text();
    tensor.dtype_text = Text();
    const auto rank = Number<uint8_t>();
    for (int i = 0; i < rank && !failed_; ++i) tensor.shape.push_back(Number<int64_t>());
    tensor.max = Stat();
    tensor.min = Stat();
    tensor.mean = Stat();
    tensor.norm = Stat();
    if (flags & kHasGrad) tensor.requires_grad = (flags & kGradTrue) != 0;
    if (flags & kHasMaxFinite) tensor.max_finite = Stat();
    if (flags & kHasMinFinite) tensor.min_finite = Stat();
    if (flags & kHasDigest) tensor.digest = Text();
    if (flags & kHasDataName) tensor.data_name = Text();
    return tensor;
  }

  Value Read(PackTag tag, int depth) {
    if (depth > kMaxDepth) failed_ = true;
    if (failed_) return {};
    switch (tag) {
      case PackTag::kNull:
        return {};
      case PackTag::kFalse:
        return false;
      case PackTag::kTrue:
        return true;
      case PackTag::kInt:
        return Number<int64_t>();
      case PackTag::kFloat:
        return Number<double>();
      case PackTag::kBigInt:
        return BigInt{Text()};
      case PackTag::kString:
        return Text();
      case PackTag::kTensor:
        return Tensor();
      case PackTag::kMap:
        return Members(depth + 1);
      case PackTag::kList: {
        ValueList list;
        for (PackTag t = Tag(); !failed_ && t != PackTag::kEnd; t = Tag()) {
          list.push_back(Read(t, depth + 1));
        }
        return list;
      }
      case PackTag::kEnd:
      case PackTag::kKey:
        break;
    }
    failed_ = true;
    return {};
  }

  ValueMap Members(int depth) {
    ValueMap map;
    for (PackTag t = Tag(); !failed_ && t != PackTag::kEnd; t = Tag()) {
      if (t != PackTag::kKey) {
        failed_ = true;
        break;
      }
      std::string key = Text();
      const PackTag value_tag = Tag();
      map.emplace_back(std::move(key), Read(value_tag, depth));
    }
    return map;
  }

  [[nodiscard]] bool ok() const { return !failed_ && bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  bool failed_ = false;
};

const Value* FindMember(const ValueMap& map, std::string_view key) {
  for (const auto& [name, value] : map) {
    if (name == key) return &value;
  }
  return nullptr;
}

}  // namespace

const Value* Value::Find(std::string_view key) const {
  const auto* map = As<ValueMap>();
  return map == nullptr ? nullptr : FindMember(*map, key);
}

const Value* Call::Find(std::string_view key) const { return FindMember(members, key); }

template <class T>
void EntryPacker::Number(T value) {
  const size_t at = buffer_.size();
  buffer_.resize(at + sizeof(T));
  std::memcpy(buffer_.data() + at, &value, sizeof(T));
}

void EntryPacker::Text(std::string_view text) {
  Number(static_cast<uint32_t>(text.size()));
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  buffer_.insert(buffer_.end(), begin, begin + text.size());
}

void EntryPacker::Begin(std::string_view name, const std::string_view* parent, uint32_t stack_id) {
  buffer_.clear();
  Number(static_cast<uint8_t>(parent != nullptr ? kHasParent : 0));
  Number(stack_id);
  Text(name);
  if (parent != nullptr) Text(*parent);
}

void EntryPacker::Key(std::string_view key) {
  Tag(PackTag::kKey);
  Text(key);
}

void EntryPacker::Int(int64_t v) {
  Tag(PackTag::kInt);
  Number(v);
}

void EntryPacker::Float(double v) {
  Tag(PackTag::kFloat);
  Number(v);
}

void EntryPacker::Big(std::string_view digits) {
  Tag(PackTag::kBigInt);
  Text(digits);
}

void EntryPacker::String(std::string_view text) {
  Tag(PackTag::kString);
  Text(text);
}

void EntryPacker::Stat(const Statistic& value) {
  if (const auto* d = std::get_if<double>(&value)) {
    Float(*d);
  } else if (const auto* i = std::get_if<int64_t>(&value)) {
    Int(*i);
  } else if (const auto* b = std::get_if<bool>(&value)) {
    Bool(*b);
  } else {
    Null();
  }
}

void EntryPacker::Tensor(const PackedTensor& tensor) {
  int flags = 0;
  if (tensor.requires_grad) flags |= kHasGrad;
  if (tensor.requires_grad == true) flags |= kGradTrue;
  if (tensor.max_finite) flags |= kHasMaxFinite;
  if (tensor.min_finite) flags |= kHasMinFinite;
  if (!tensor.digest.empty()) flags |= kHasDigest;
  if (!tensor.data_name.empty()) flags |= kHasDataName;
  Tag(PackTag::kTensor);
  Number(static_cast<uint8_t>(flags));
  Text(tensor.type);
  Text(tensor.dtype_text);
  Number(static_cast<uint8_t>(tensor.shape.size()));
  for (const int64_t dimension : tensor.shape) Number(dimension);
  Stat(tensor.max);
  Stat(tensor.min);
  Stat(tensor.mean);
  Stat(tensor.norm);
  if (tensor.max_finite) Stat(*tensor.max_finite);
  if (tensor.min_finite) Stat(*tensor.min_finite);
  if (!tensor.digest.empty()) Text(tensor.digest);
  if (!tensor.data_name.empty()) Text(tensor.data_name);
}

void EntryPacker::BeginTyped(std::string_view type) {
  BeginMap();
  Key("type");
  String(type);
  Key("value");
}

void EntryPacker::Raw(std::span<const std::byte> packed) {
  buffer_.insert(buffer_.end(), packed.begin(), packed.end());
}

std::span<const std::byte> EntryPacker::Finish() {
  Tag(PackTag::kEnd);
  return buffer_;
}

Result<UnpackedEntry> UnpackEntry(std::span<const std::byte> packed) {
  Unpacker in(packed);
  UnpackedEntry entry;
  const auto flags = in.Number<uint8_t>();
  entry.stack_id = in.Number<uint32_t>();
  entry.call.name = in.Text();
  entry.has_parent = (flags & kHasParent) != 0;
  if (entry.has_parent) entry.parent = in.Text();
  entry.call.members = in.Members(0);
  if (!in.ok()) return Error(ErrorCode::kCorrupt, "journal entry: damaged packed values");
  entry.call.kind = KindOfCall(entry.call.name);
  return entry;
}

CallKind KindOfCall(std::string_view name) {
  // Only the last three segments can hold the direction: "x.forward.0", "x.0.forward",
  // "x.parameters_grad", "x.parameters_grad.0".
  for (int i = 0; i < 3 && !name.empty(); ++i) {
    const size_t dot = name.rfind('.');
    const std::string_view segment = dot == std::string_view::npos ? name : name.substr(dot + 1);
    if (segment == "forward") return CallKind::kForward;
    if (segment == "backward") return CallKind::kBackward;
    if (segment == "parameters_grad") return CallKind::kParametersGrad;
    name = dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
  }
  return CallKind::kOther;
}

}  // namespace plumbline
