// Distinct texts, numbered in the order of their arrival.

#ifndef PLUMBLINE_VIEW_STORE_TEXT_POOL_H_
#define PLUMBLINE_VIEW_STORE_TEXT_POOL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory/name_table.h"

namespace plumbline::view {

// Up to 2^32 - 2 texts, in one piece of memory. Thread-compatible.
class TextPool {
 public:
  [[nodiscard]] size_t size() const { return ends_.size(); }
  [[nodiscard]] std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(chars_).substr(begin, ends_[i] - begin);
  }
  // The number of `text`, which is new or known. The view of another text of the pool will not do.
  uint32_t Add(std::string_view text) {
    chars_ += text;
    ends_.push_back(chars_.size());
    const size_t number = table_.Add(ends_.size() - 1, [this](size_t k) { return (*this)[k]; });
    if (number + 1 < ends_.size()) {
      ends_.pop_back();
      chars_.resize(chars_.size() - text.size());
    }
    return static_cast<uint32_t>(number);
  }
  [[nodiscard]] std::optional<uint32_t> Find(std::string_view text) const {
    const auto found = table_.Find(text, [this](size_t k) { return (*this)[k]; });
    return found ? std::optional(static_cast<uint32_t>(*found)) : std::nullopt;
  }

  // All texts one after the other, and where each ends.
  [[nodiscard]] std::string_view chars() const { return chars_; }
  [[nodiscard]] const std::vector<uint64_t>& ends() const { return ends_; }

  void Clear() { *this = TextPool(); }
  // So that texts of so many characters are not moved while they are added.
  void ReserveChars(size_t count) { chars_.reserve(count); }

 private:
  std::string chars_;
  std::vector<uint64_t> ends_;
  NameTable table_;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_TEXT_POOL_H_
