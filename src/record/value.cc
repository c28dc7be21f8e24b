#include "record/value.h"

#include <cstring>

namespace plumbline {
namespace {

constexpr int kHasParent = 1;
// Optional fields of a packed tensor.
constexpr int kHasGrad = 1, kGradTrue = 2, kHasMaxFinite = 4, kHasMinFinite = 8, kHasDigest = 16,
              kHasDataName = 32;
constexpr int kMaxDepth = 500;  // deeper than any walk packs (400): damaged bytes

Value ValueOf(const Statistic& statistic) {
  return std::visit([](const auto& held) { return Value(held); }, statistic);
}

// The keys of a tensor that is a map. `late` null: its values have not come.
void AddLateMembers(const LateValues* late, ValueMap& map) {
  const TensorStats stats = late == nullptr ? TensorStats() : late->stats;
  if (late == nullptr || !late->digest.starts_with("0x")) {  // summary_mode xor has no statistics
    map.emplace_back("Max", ValueOf(stats.max));
    map.emplace_back("Min", ValueOf(stats.min));
    map.emplace_back("Mean", ValueOf(stats.mean));
    map.emplace_back("Norm", ValueOf(stats.norm));
  }
  if (stats.max_finite) map.emplace_back("Max_except_inf_nan", ValueOf(*stats.max_finite));
  if (stats.min_finite) map.emplace_back("Min_except_inf_nan", ValueOf(*stats.min_finite));
  if (late != nullptr && !late->digest.empty()) map.emplace_back("md5", late->digest);
}

// Cursor over packed bytes. Every read checks what remains; failed_ sticks.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes, const LateTable* late = nullptr)
      : bytes_(bytes), late_(late) {}

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

  std::string_view BorrowText() {
    const auto length = Number<uint32_t>();
    if (failed_ || bytes_.size() < length) {
      failed_ = true;
      return {};
    }
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), length);
    bytes_ = bytes_.subspan(length);
    return text;
  }

  std::string Text() { return std::string(BorrowText()); }

  PackTag Tag() { return static_cast<PackTag>(Number<uint8_t>()); }

  Statistic Stat() { return StatOf(Tag()); }

  Statistic StatOf(PackTag tag) {
    switch (tag) {
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
    const PackTag first = Tag();
    const LateValues* late = nullptr;
    if (first == PackTag::kLate) {
      late = FindLate();
    } else {
      tensor.max = StatOf(first);
      tensor.min = Stat();
      tensor.mean = Stat();
      tensor.norm = Stat();
    }
    if (flags & kHasGrad) tensor.requires_grad = (flags & kGradTrue) != 0;
    if (flags & kHasMaxFinite) tensor.max_finite = Stat();
    if (flags & kHasMinFinite) tensor.min_finite = Stat();
    if (flags & kHasDigest) tensor.digest = Text();
    if (flags & kHasDataName) tensor.data_name = Text();
    if (late != nullptr) SetStats(late->stats, &tensor);
    if (late != nullptr && !late->digest.empty()) tensor.digest = late->digest;
    return tensor;
  }

  // Null, and counted, if its values have not come.
  const LateValues* FindLate() {
    const auto number = Number<uint64_t>();
    if (failed_) return nullptr;
    const auto it = late_ == nullptr ? LateTable::const_iterator() : late_->find(number);
    if (late_ != nullptr && it != late_->end()) return &it->second;
    ++late_missing_;
    return nullptr;
  }

  LateValues Late() {
    LateValues values;
    const auto flags = Number<uint8_t>();
    values.stats.max = Stat();
    values.stats.min = Stat();
    values.stats.mean = Stat();
    values.stats.norm = Stat();
    if (flags & kHasMaxFinite) values.stats.max_finite = Stat();
    if (flags & kHasMinFinite) values.stats.min_finite = Stat();
    if (flags & kHasDigest) values.digest = Text();
    return values;
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
      case PackTag::kLate:
        break;
    }
    failed_ = true;
    return {};
  }

  ValueMap Members(int depth) {
    ValueMap map;
    for (PackTag t = Tag(); !failed_ && t != PackTag::kEnd; t = Tag()) {
      if (t == PackTag::kLate) {
        AddLateMembers(FindLate(), map);
        continue;
      }
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

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool at_end() const { return bytes_.empty(); }
  [[nodiscard]] uint32_t late_missing() const { return late_missing_; }
  [[nodiscard]] bool ok() const { return !failed_ && bytes_.empty(); }

 private:
  static void SetStats(const TensorStats& stats, TensorRecord* tensor) {
    tensor->max = stats.max;
    tensor->min = stats.min;
    tensor->mean = stats.mean;
    tensor->norm = stats.norm;
    tensor->max_finite = stats.max_finite;
    tensor->min_finite = stats.min_finite;
  }

  std::span<const std::byte> bytes_;
  const LateTable* late_;
  uint32_t late_missing_ = 0;
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
  if (tensor.late) {
    LateMembers(*tensor.late);
  } else {
    Stat(tensor.max);
    Stat(tensor.min);
    Stat(tensor.mean);
    Stat(tensor.norm);
  }
  if (tensor.max_finite) Stat(*tensor.max_finite);
  if (tensor.min_finite) Stat(*tensor.min_finite);
  if (!tensor.digest.empty()) Text(tensor.digest);
  if (!tensor.data_name.empty()) Text(tensor.data_name);
}

void EntryPacker::LateMembers(uint64_t number) {
  Tag(PackTag::kLate);
  Number(number);
}

void EntryPacker::Late(uint64_t number, const LateValues& values) {
  const TensorStats& stats = values.stats;
  int flags = 0;
  if (stats.max_finite) flags |= kHasMaxFinite;
  if (stats.min_finite) flags |= kHasMinFinite;
  if (!values.digest.empty()) flags |= kHasDigest;
  Number(number);
  Number(static_cast<uint8_t>(flags));
  for (const Statistic& statistic : {stats.max, stats.min, stats.mean, stats.norm}) {
    Stat(statistic);
  }
  if (stats.max_finite) Stat(*stats.max_finite);
  if (stats.min_finite) Stat(*stats.min_finite);
  if (!values.digest.empty()) Text(values.digest);
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

Result<EntryHead> PeekEntry(std::span<const std::byte> packed) {
  Unpacker in(packed);
  EntryHead head;
  const auto flags = in.Number<uint8_t>();
  head.stack_id = in.Number<uint32_t>();
  head.name = in.BorrowText();
  head.has_parent = (flags & kHasParent) != 0;
  if (head.has_parent) head.parent = in.BorrowText();
  head.has_members = in.Tag() != PackTag::kEnd;
  if (in.failed()) return Error(ErrorCode::kCorrupt, "journal entry: damaged packed values");
  return head;
}

Result<UnpackedEntry> UnpackEntry(std::span<const std::byte> packed, const LateTable* late) {
  Unpacker in(packed, late);
  UnpackedEntry entry;
  const auto flags = in.Number<uint8_t>();
  entry.stack_id = in.Number<uint32_t>();
  entry.call.name = in.Text();
  entry.has_parent = (flags & kHasParent) != 0;
  if (entry.has_parent) entry.parent = in.Text();
  entry.call.members = in.Members(0);
  if (!in.ok()) return Error(ErrorCode::kCorrupt, "journal entry: damaged packed values");
  entry.call.kind = KindOfCall(entry.call.name);
  entry.late_missing = in.late_missing();
  return entry;
}

Status UnpackLate(std::span<const std::byte> packed, LateTable* table) {
  Unpacker in(packed);
  while (!in.at_end()) {
    const auto number = in.Number<uint64_t>();
    LateValues values = in.Late();
    if (in.failed()) return Error(ErrorCode::kCorrupt, "journal values: damaged record");
    table->insert_or_assign(number, std::move(values));
  }
  return {};
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
