// Integers in as few bytes as they need (LEB128): seven bits a byte, the lowest first.

#ifndef PLUMBLINE_VIEW_STORE_VARINT_H_
#define PLUMBLINE_VIEW_STORE_VARINT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace plumbline::view {

inline void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

// Reads from the front of a text. A read beyond the end, or of more than 64 bits, gives zero and
// sets failed(), which stays. Thread-compatible.
class VarintReader {
 public:
  VarintReader() = default;
  explicit VarintReader(std::string_view text) : text_(text) {}

  uint64_t Next() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at_ < text_.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(text_[at_++]);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }
  std::string_view Bytes(uint64_t count) {
    if (count > text_.size() - at_) {
      failed_ = true;
      return {};
    }
    const std::string_view bytes = text_.substr(at_, count);
    at_ += count;
    return bytes;
  }
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] size_t left() const { return text_.size() - at_; }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  std::string_view text_;
  size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_VARINT_H_
