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

// The members of a detail in the order of a record, for what writes them and what reads them.

template <class Io, class Side>
void VisitSide(Io& io, Side& side, const ValueSide* other) {
  for (auto* text : {&side.type, &side.dtype, &side.shape}) io.Text(*text);
  for (size_t i = 0; i < side.statistics.size(); ++i) {
    io.Scalar(side.statistics[i], other == nullptr ? nullptr : &other->statistics[i]);
  }
  io.Scalar(side.value, other == nullptr ? nullptr : &other->value);
  io.Text(side.md5);
  io.Truth(side.requires_grad);
  io.Text(side.data_name);
}

template <class Io, class Value>
void VisitValue(Io& io, Value& value) {
  io.Text(value.name);
  io.Role(value.role);
  io.Sides(value.target, value.golden);
  if (value.target) VisitSide(io, *value.target, nullptr);
  if (value.golden) VisitSide(io, *value.golden, value.target ? &*value.target : nullptr);
  for (auto* text : {&value.verdict, &value.reason, &value.reason_text}) io.Text(*text);
  io.Rounded(value.error);
  io.Rounded(value.explained);
  io.List(value.metrics, [&](auto& metric) {
    io.Text(metric.first);
    io.Number(metric.second);
  });
  io.List(value.notes, [&](auto& note) { io.Text(note); });
}

template <class Io, class Detail>
void VisitDetail(Io& io, Detail& detail) {
  for (auto* text : {&detail.pairing, &detail.verdict, &detail.reason, &detail.reason_text}) {
    io.Text(*text);
  }
  io.List(detail.merge, [&](auto& line) { io.Text(line); });
  io.List(detail.values, [&](auto& value) { VisitValue(io, value); });
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

  [[nodiscard]] bool failed() const { return failed_ || records_.failed(); }

  void Text(std::string_view& text) { text = Text(); }
  void Scalar(StoredScalar& scalar, const StoredScalar* other) {
    scalar = Scalar(other == nullptr ? StoredScalar() : *other);
  }
  void Truth(std::optional<bool>& truth) {
    const uint8_t bits = Byte();
    if ((bits & kRequiresKnown) != 0) truth = (bits & kRequiresGrad) != 0;
  }
  void Role(ValueRole& role) {
    const uint8_t number = Byte();
    if (number >= kValueRoles) failed_ = true;
    role = static_cast<ValueRole>(number < kValueRoles ? number : 0);
  }
  void Sides(std::optional<ValueSide>& target, std::optional<ValueSide>& golden) {
    const uint8_t sides = Byte();
    if ((sides & kHasTarget) != 0) target.emplace();
    if ((sides & kHasGolden) != 0) golden.emplace();
  }
  void Number(double& number) {
    const StoredScalar scalar = Scalar(StoredScalar());
    const double* const held = std::get_if<double>(&scalar);
    number = held == nullptr ? std::numeric_limits<double>::quiet_NaN() : *held;
  }
  void Rounded(double& number) { Number(number); }
  // Of things that take at least a byte each.
  template <class Element, class Visit>
  void List(std::vector<Element>& list, const Visit& visit) {
    const uint64_t count = records_.Next();
    if (count > records_.left()) failed_ = true;
    for (uint64_t i = 0; i < count && !failed(); ++i) visit(list.emplace_back());
  }

 private:
  std::string_view Text() {
    const uint64_t number = records_.Next();
    if (number == 0 || failed()) return {};
    if (number > texts_.size()) {
      failed_ = true;
      return {};
    }
    return texts_[number - 1];
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

namespace {

// Appends members to the records of a block.
class DetailAppender {
 public:
  DetailAppender(TextPool& texts, std::string& records) : texts_(texts), records_(records) {}

  void Text(std::string_view text) {
    AppendVarint(text.empty() ? 0 : uint64_t{texts_.Add(text)} + 1, records_);
  }
  void Byte(auto value) { records_ += static_cast<char>(value); }
  void Number(double number);
  // Errors need no more digits than a float has.
  void Rounded(double number) {
    const double rounded = static_cast<double>(static_cast<float>(number));
    Number(std::isinf(rounded) ? number : rounded);
  }
  void Scalar(const StoredScalar& scalar, const StoredScalar* other) {
    other == nullptr ? Alone(scalar) : Beside(scalar, *other);
  }
  void Truth(const std::optional<bool>& truth) {
    Byte(truth ? kRequiresKnown | (*truth ? kRequiresGrad : 0) : 0);
  }
  void Role(ValueRole role) { Byte(role); }
  void Sides(const std::optional<ValueSide>& target, const std::optional<ValueSide>& golden) {
    Byte((target ? kHasTarget : 0) | (golden ? kHasGolden : 0));
  }
  template <class Element, class Visit>
  void List(const std::vector<Element>& list, const Visit& visit) {
    AppendVarint(list.size(), records_);
    for (const Element& element : list) visit(element);
  }

 private:
  void Alone(const StoredScalar& scalar);
  void Beside(const StoredScalar& scalar, const StoredScalar& other);

  TextPool& texts_;
  std::string& records_;
};

void DetailAppender::Number(double number) {
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

void DetailAppender::Beside(const StoredScalar& scalar, const StoredScalar& other) {
  if (IsSame(scalar, other)) return Byte(Tag::kAsOther);
  const double* const x = std::get_if<double>(&scalar);
  const double* const y = std::get_if<double>(&other);
  constexpr size_t kWorthIt = 6;  // bytes; a float takes four, a double eight
  const uint64_t difference = x == nullptr || y == nullptr
                                  ? ~uint64_t{0}
                                  : std::bit_cast<uint64_t>(*x) ^ std::bit_cast<uint64_t>(*y);
  const size_t bytes = static_cast<size_t>(std::bit_width(difference) + 7) / 8;
  const bool is_float = x != nullptr && static_cast<double>(static_cast<float>(*x)) == *x;
  if (bytes > kWorthIt || is_float) return Alone(scalar);
  Byte(Tag::kNearOther);
  Byte(bytes);
  records_.append(reinterpret_cast<const char*>(&difference), bytes);
}

void DetailAppender::Alone(const StoredScalar& scalar) {
  if (const auto* truth = std::get_if<bool>(&scalar)) {
    Byte(*truth ? Tag::kTrue : Tag::kFalse);
  } else if (const auto* integer = std::get_if<int64_t>(&scalar)) {
    Byte(Tag::kInteger);
    AppendVarint(ZigZag(*integer), records_);
  } else if (const auto* real = std::get_if<double>(&scalar)) {
    Number(*real);
  } else if (const auto* text = std::get_if<std::string_view>(&scalar)) {
    Byte(Tag::kText);
    Text(*text);
  } else {
    Byte(Tag::kNothing);
  }
}

}  // namespace

uint32_t DetailBlockWriter::Add(const NodeDetail& detail) {
  const auto offset = static_cast<uint32_t>(records_.size());
  DetailAppender appender(texts_, records_);
  VisitDetail(appender, detail);
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
  NodeDetail detail;
  VisitDetail(reader, detail);
  if (reader.failed()) return Damaged("no detail begins where one should");
  detail.owner = std::move(raw);
  return detail;
}

}  // namespace plumbline::view
