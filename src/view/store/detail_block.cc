#include "view/store/detail_block.h"

#include <isa-l/igzip_lib.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "base/memory/bytes.h"
#include "base/memory/digest.h"
#include "view/store/varint.h"

namespace plumbline::view {
namespace {

// What a scalar is, in its first byte. Stored; never renumber.
enum class Tag : uint8_t {
  kNothing,
  kFalse,
  kTrue,
  kInteger,  // a varint follows, the sign in its lowest bit
  kFloat32,  // a double that a float holds exactly: four bytes
  kFloat64,
  kText,       // the number of a text
  kAsOther,    // what the other side has
  kNearOther,  // a double: how many of its lowest bytes differ from those of the other side's,
               // and these, XORed with them
};

constexpr uint8_t kHasTarget = 1, kHasGolden = 2;
constexpr uint8_t kRequiresKnown = 1, kRequiresGrad = 2;
// What deflate can reach, so that a hostile size is seen before memory is taken.
constexpr uint64_t kMostPacking = 1100;

uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

// NaN is the same as NaN.
bool IsSame(const StoredScalar& a, const StoredScalar& b) {
  const double* const x = std::get_if<double>(&a);
  const double* const y = std::get_if<double>(&b);
  if (x == nullptr || y == nullptr) return a == b;
  return std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(*y);
}

// Reads what DetailBlockWriter wrote. Damage gives empty values and failed().
class DetailReader {
 public:
  DetailReader(std::string_view texts, std::string_view records, uint32_t offset)
      : records_(records.substr(offset)) {
    VarintReader in(texts);
    const uint64_t count = in.Next();
    if (count > in.left()) failed_ = true;
    for (uint64_t i = 0; i < count && !in.failed() && !failed_; ++i) {
      texts_.push_back(in.Bytes(in.Next()));
    }
    failed_ |= in.failed();
  }

  NodeDetail Read() {
    NodeDetail detail;
    detail.pairing = Text();
    detail.verdict = Text();
    detail.reason = Text();
    detail.reason_text = Text();
    detail.merge = Texts();
    const uint64_t count = Count();
    for (uint64_t i = 0; i < count && !failed(); ++i) detail.values.push_back(Value());
    return detail;
  }
  [[nodiscard]] bool failed() const { return failed_ || records_.failed(); }

 private:
  // Of things that take at least a byte each.
  uint64_t Count() {
    const uint64_t count = records_.Next();
    if (count > records_.left()) failed_ = true;
    return failed() ? 0 : count;
  }
  std::string_view Text() {
    const uint64_t number = records_.Next();
    if (number == 0 || failed()) return {};
    if (number > texts_.size()) {
      failed_ = true;
      return {};
    }
    return texts_[number - 1];
  }
  std::vector<std::string_view> Texts() {
    std::vector<std::string_view> texts(Count());
    for (std::string_view& text : texts) text = Text();
    return texts;
  }
  template <class T>
  T Bits() {
    T bits{};
    const std::string_view bytes = records_.Bytes(sizeof(T));
    if (bytes.size() == sizeof(T)) std::memcpy(&bits, bytes.data(), sizeof(T));
    return bits;
  }
  uint8_t Byte() { return Bits<uint8_t>(); }

  StoredScalar Scalar(const StoredScalar& other) {
    switch (static_cast<Tag>(Byte())) {
      case Tag::kNothing:
        return {};
      case Tag::kFalse:
        return false;
      case Tag::kTrue:
        return true;
      case Tag::kInteger:
        return UnZigZag(records_.Next());
      case Tag::kFloat32:
        return static_cast<double>(Bits<float>());
      case Tag::kFloat64:
        return Bits<double>();
      case Tag::kText:
        return Text();
      case Tag::kAsOther:
        return other;
      case Tag::kNearOther:
        return NearOther(other);
    }
    failed_ = true;
    return {};
  }
  double NearOther(const StoredScalar& other) {
    const double* const number = std::get_if<double>(&other);
    const std::string_view bytes = records_.Bytes(Byte());
    if (number == nullptr || bytes.size() > sizeof(uint64_t)) failed_ = true;
    if (failed()) return 0;
    uint64_t difference = 0;
    std::memcpy(&difference, bytes.data(), bytes.size());
    return std::bit_cast<double>(std::bit_cast<uint64_t>(*number) ^ difference);
  }
  double Number() {
    const StoredScalar scalar = Scalar({});
    const double* const number = std::get_if<double>(&scalar);
    return number == nullptr ? std::numeric_limits<double>::quiet_NaN() : *number;
  }

  ValueSide Side(const ValueSide* other) {
    static const ValueSide kNoSide;
    const ValueSide& before = other == nullptr ? kNoSide : *other;
    ValueSide side;
    side.type = Text();
    side.dtype = Text();
    side.shape = Text();
    for (size_t i = 0; i < side.statistics.size(); ++i) {
      side.statistics[i] = Scalar(before.statistics[i]);
    }
    side.value = Scalar(before.value);
    side.md5 = Text();
    const uint8_t requires_grad = Byte();
    if ((requires_grad & kRequiresKnown) != 0) {
      side.requires_grad = (requires_grad & kRequiresGrad) != 0;
    }
    side.data_name = Text();
    return side;
  }

  StoredValue Value() {
    StoredValue value;
    value.name = Text();
    const uint8_t role = Byte();
    if (role >= kValueRoles) failed_ = true;
    value.role = static_cast<ValueRole>(role < kValueRoles ? role : 0);
    const uint8_t sides = Byte();
    if ((sides & kHasTarget) != 0) value.target = Side(nullptr);
    if ((sides & kHasGolden) != 0) value.golden = Side(value.target ? &*value.target : nullptr);
    value.verdict = Text();
    value.reason = Text();
    value.reason_text = Text();
    value.error = Number();
    value.explained = Number();
    const uint64_t metrics = Count();
    for (uint64_t i = 0; i < metrics && !failed(); ++i) {
      const std::string_view name = Text();
      value.metrics.emplace_back(name, Number());
    }
    value.notes = Texts();
    return value;
  }

  std::vector<std::string_view> texts_;
  VarintReader records_;
  bool failed_ = false;
};

Error Damaged(std::string_view what) {
  return {ErrorCode::kCorrupt, "a block of details is damaged: " + std::string(what)};
}

}  // namespace

std::string_view ValueRoleName(ValueRole role) {
  static constexpr std::string_view kNames[] = {"input", "parameter", "output", "buffer",
                                                "gradient"};
  return kNames[static_cast<size_t>(role)];
}

void DetailBlockWriter::AddText(std::string_view text) {
  AppendVarint(text.empty() ? 0 : uint64_t{texts_.Add(text)} + 1, records_);
}

void DetailBlockWriter::AddTexts(const std::vector<std::string_view>& texts) {
  AppendVarint(texts.size(), records_);
  for (const std::string_view text : texts) AddText(text);
}

void DetailBlockWriter::AddNumber(double number) {
  const auto narrow = static_cast<float>(number);
  const bool is_exact =
      std::bit_cast<uint64_t>(static_cast<double>(narrow)) == std::bit_cast<uint64_t>(number);
  records_ += static_cast<char>(is_exact ? Tag::kFloat32 : Tag::kFloat64);
  if (is_exact) {
    AppendU32(std::bit_cast<uint32_t>(narrow), records_);
  } else {
    AppendU64(std::bit_cast<uint64_t>(number), records_);
  }
}

// Errors need no more digits than a float has.
void DetailBlockWriter::AddRounded(double number) {
  const double rounded = static_cast<double>(static_cast<float>(number));
  AddNumber(std::isinf(rounded) ? number : rounded);
}

void DetailBlockWriter::AddScalar(const StoredScalar& scalar, const StoredScalar& other) {
  if (IsSame(scalar, other)) {
    records_ += static_cast<char>(Tag::kAsOther);
    return;
  }
  const double* const x = std::get_if<double>(&scalar);
  const double* const y = std::get_if<double>(&other);
  constexpr size_t kWorthIt = 6;  // bytes; a float takes four, a double eight
  const uint64_t difference = x == nullptr || y == nullptr
                                  ? ~uint64_t{0}
                                  : std::bit_cast<uint64_t>(*x) ^ std::bit_cast<uint64_t>(*y);
  const size_t bytes = static_cast<size_t>(std::bit_width(difference) + 7) / 8;
  const bool is_float = x != nullptr && static_cast<double>(static_cast<float>(*x)) == *x;
  if (bytes > kWorthIt || is_float) return AddScalar(scalar);
  records_ += static_cast<char>(Tag::kNearOther);
  records_ += static_cast<char>(bytes);
  records_.append(reinterpret_cast<const char*>(&difference), bytes);
}

void DetailBlockWriter::AddScalar(const StoredScalar& scalar) {
  if (const auto* truth = std::get_if<bool>(&scalar)) {
    records_ += static_cast<char>(*truth ? Tag::kTrue : Tag::kFalse);
  } else if (const auto* integer = std::get_if<int64_t>(&scalar)) {
    records_ += static_cast<char>(Tag::kInteger);
    AppendVarint(ZigZag(*integer), records_);
  } else if (const auto* real = std::get_if<double>(&scalar)) {
    AddNumber(*real);
  } else if (const auto* text = std::get_if<std::string_view>(&scalar)) {
    records_ += static_cast<char>(Tag::kText);
    AddText(*text);
  } else {
    records_ += static_cast<char>(Tag::kNothing);
  }
}

void DetailBlockWriter::AddSide(const ValueSide& side, const ValueSide* before) {
  AddText(side.type);
  AddText(side.dtype);
  AddText(side.shape);
  const auto add = [&](const StoredScalar& scalar, const StoredScalar* other) {
    if (other != nullptr) {
      AddScalar(scalar, *other);
    } else {
      AddScalar(scalar);
    }
  };
  for (size_t i = 0; i < side.statistics.size(); ++i) {
    add(side.statistics[i], before == nullptr ? nullptr : &before->statistics[i]);
  }
  add(side.value, before == nullptr ? nullptr : &before->value);
  AddText(side.md5);
  const int requires_grad =
      side.requires_grad ? kRequiresKnown | (*side.requires_grad ? kRequiresGrad : 0) : 0;
  records_ += static_cast<char>(requires_grad);
  AddText(side.data_name);
}

void DetailBlockWriter::AddValue(const StoredValue& value) {
  AddText(value.name);
  records_ += static_cast<char>(value.role);
  records_ += static_cast<char>((value.target ? kHasTarget : 0) | (value.golden ? kHasGolden : 0));
  if (value.target) AddSide(*value.target, nullptr);
  if (value.golden) AddSide(*value.golden, value.target ? &*value.target : nullptr);
  AddText(value.verdict);
  AddText(value.reason);
  AddText(value.reason_text);
  AddRounded(value.error);
  AddRounded(value.explained);
  AppendVarint(value.metrics.size(), records_);
  for (const auto& [name, number] : value.metrics) {
    AddText(name);
    AddNumber(number);
  }
  AddTexts(value.notes);
}

uint32_t DetailBlockWriter::Add(const NodeDetail& detail) {
  const auto offset = static_cast<uint32_t>(records_.size());
  AddText(detail.pairing);
  AddText(detail.verdict);
  AddText(detail.reason);
  AddText(detail.reason_text);
  AddTexts(detail.merge);
  AppendVarint(detail.values.size(), records_);
  for (const StoredValue& value : detail.values) AddValue(value);
  return offset;
}

Result<PackedBlock> DetailBlockWriter::Take() {
  // Texts first, behind their size.
  std::string texts;
  AppendVarint(texts_.size(), texts);
  for (size_t i = 0; i < texts_.size(); ++i) {
    AppendVarint(texts_[i].size(), texts);
    texts += texts_[i];
  }
  std::string raw;
  raw.reserve(sizeof(uint32_t) + texts.size() + records_.size());
  AppendU32(static_cast<uint32_t>(texts.size()), raw);
  raw += texts;
  raw += records_;
  texts_.Clear();
  records_.clear();
  std::string level_buffer(ISAL_DEF_LVL1_DEFAULT, '\0');
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.level = 1;
  stream.level_buf = reinterpret_cast<uint8_t*>(level_buffer.data());
  stream.level_buf_size = static_cast<uint32_t>(level_buffer.size());
  PackedBlock block;
  // A stored block of deflate adds five bytes to 65,535.
  block.bytes.resize(raw.size() + raw.size() / 4096 + 64);
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<uint8_t*>(raw.data());
  stream.avail_in = static_cast<uint32_t>(raw.size());
  stream.next_out = reinterpret_cast<uint8_t*>(block.bytes.data());
  stream.avail_out = static_cast<uint32_t>(block.bytes.size());
  if (isal_deflate_stateless(&stream) != COMP_OK) {
    return Error(ErrorCode::kInternal, "a block of details cannot be packed");
  }
  block.bytes.resize(block.bytes.size() - stream.avail_out);
  block.bytes.shrink_to_fit();
  block.raw_size = static_cast<uint32_t>(raw.size());
  block.crc = Crc32(std::as_bytes(std::span(raw)));
  return block;
}

Result<NodeDetail> ReadDetail(std::string_view packed, uint32_t raw_size, uint32_t crc,
                              uint32_t offset) {
  if (raw_size < sizeof(uint32_t) || raw_size / kMostPacking > packed.size()) {
    return Damaged("its size cannot be");
  }
  auto raw = std::make_shared<std::string>(raw_size, '\0');
  inflate_state state;
  isal_inflate_init(&state);
  state.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(packed.data()));
  state.avail_in = static_cast<uint32_t>(packed.size());
  state.next_out = reinterpret_cast<uint8_t*>(raw->data());
  state.avail_out = raw_size;
  if (isal_inflate_stateless(&state) != ISAL_DECOMP_OK || state.avail_out != 0) {
    return Damaged("it cannot be unpacked");
  }
  if (Crc32(std::as_bytes(std::span(*raw))) != crc) return Damaged("its checksum differs");
  const std::string_view all = *raw;
  uint32_t text_bytes = 0;
  std::memcpy(&text_bytes, all.data(), sizeof(text_bytes));
  const std::string_view rest = all.substr(sizeof(text_bytes));
  if (text_bytes > rest.size() || offset > rest.size() - text_bytes) return Damaged("it is cut");
  DetailReader reader(rest.substr(0, text_bytes), rest.substr(text_bytes), offset);
  NodeDetail detail = reader.Read();
  if (reader.failed()) return Damaged("no detail begins where one should");
  detail.owner = std::move(raw);
  return detail;
}

}  // namespace plumbline::view
