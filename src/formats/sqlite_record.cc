#include "formats/sqlite_record.h"

#include <bit>
#include <cmath>

#include "base/utf8.h"

namespace plumbline::sqlite {
namespace {

// Types of the file format; 13 + 2n is a text of n bytes.
constexpr uint64_t kNull = 0, kReal = 7, kZero = 8, kOne = 9, kText = 13;

void AppendBigEndian(uint64_t value, size_t bytes, std::string& out) {
  char text[sizeof(value)];
  for (int i = 7; i >= 0; --i, value >>= 8) text[i] = static_cast<char>(value);
  out.append(text + sizeof(text) - bytes, bytes);
}

// Bytes of an integer that is stored as short as it fits, and the type of that length.
struct IntegerForm {
  size_t bytes;
  uint64_t type;
};

IntegerForm FormOf(int64_t value) {
  constexpr IntegerForm kForms[] = {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {6, 5}};
  if (value == 0 || value == 1) return {0, value == 0 ? kZero : kOne};
  for (const IntegerForm& form : kForms) {
    const int64_t most = (int64_t{1} << (8 * form.bytes - 1)) - 1;
    if (value >= -most - 1 && value <= most) return form;
  }
  return {8, 6};
}

}  // namespace

void AppendVarint(uint64_t value, std::string& out) {
  if (value < 0x80) {
    out += static_cast<char>(value);
    return;
  }
  auto groups = static_cast<int>((std::bit_width(value) + 6) / 7);
  const bool is_longest = groups > 8;  // then the last byte has eight bits
  if (is_longest) groups = 8;
  for (int i = groups - 1; i >= 0; --i) {
    const int shift = 7 * i + (is_longest ? 8 : 0);
    const uint64_t more = i > 0 || is_longest ? 0x80 : 0;
    out += static_cast<char>((value >> shift & 0x7F) | more);
  }
  if (is_longest) out += static_cast<char>(value & 0xFF);
}

void PackedRows::Clear() {
  bytes_.clear();
  ends_.clear();
}

void PackedRows::AddCell(const Cell& cell) {
  if (const auto* text = std::get_if<std::string_view>(&cell)) {
    const size_t before = values_.size();
    if (IsUtf8(*text)) {
      values_ += *text;
    } else {
      values_ += ReplaceInvalidUtf8(*text);
    }
    AppendVarint(kText + 2 * (values_.size() - before), types_);
    return;
  }
  if (const auto* integer = std::get_if<int64_t>(&cell)) {
    const IntegerForm form = FormOf(*integer);
    types_ += static_cast<char>(form.type);
    AppendBigEndian(static_cast<uint64_t>(*integer), form.bytes, values_);
    return;
  }
  const auto* real = std::get_if<double>(&cell);
  if (real == nullptr || std::isnan(*real)) {
    types_ += static_cast<char>(kNull);
    return;
  }
  types_ += static_cast<char>(kReal);
  AppendBigEndian(std::bit_cast<uint64_t>(*real), sizeof(*real), values_);
}

void PackedRows::Add(std::span<const Cell> cells) {
  types_.assign(1, static_cast<char>(kNull));
  values_.clear();
  for (const Cell& cell : cells.subspan(1)) AddCell(cell);
  // How long the types are stands before them and counts itself: a byte for up to 126 others, and
  // never more than two.
  AppendVarint(types_.size() + (types_.size() < 127 ? 1 : 2), bytes_);
  bytes_ += types_;
  bytes_ += values_;
  ends_.push_back(bytes_.size());
}

}  // namespace plumbline::sqlite
