// The sorted names of a store: found by text, by number, and by a part of them.

#ifndef PLUMBLINE_VIEW_STORE_NAME_INDEX_H_
#define PLUMBLINE_VIEW_STORE_NAME_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::view {

// Names stand in blocks; all but the first of a block leave out what they share with the one
// before.
struct NameSections {
  std::string text;              // the blocks
  std::vector<uint64_t> blocks;  // where each begins
  // Which blocks hold a trigram: bitmaps of as many words as the blocks need, of the classes below.
  std::vector<uint64_t> bitmaps;
  std::vector<uint32_t> classes;  // kTrigramClasses: the bitmap of each; kNoBitmap: no block has it
};
inline constexpr size_t kNamesPerBlock = 64;
inline constexpr uint32_t kNoBitmap = 0xFFFFFFFF;
// Letters without case, digits and marks are classes of their own; all else shares one.
inline constexpr size_t kByteClasses = 40;
inline constexpr size_t kTrigramClasses = kByteClasses * kByteClasses * kByteClasses;

// `names`: ascending bytewise, each once.
NameSections FormatNames(std::span<const std::string_view> names);

// Views of a mapped file. Immutable; thread-safe.
class NameIndex {
 public:
  NameIndex() = default;
  // kCorrupt: the sections do not hold `count` ascending names.
  static Result<NameIndex> Open(size_t count, std::string_view text,
                                std::span<const uint64_t> blocks, std::span<const uint64_t> bitmaps,
                                std::span<const uint32_t> classes);

  [[nodiscard]] size_t size() const { return count_; }
  [[nodiscard]] std::string At(size_t number) const;  // requires: number < size()
  [[nodiscard]] std::optional<uint32_t> Find(std::string_view name) const;
  // How many names stand before `text`.
  [[nodiscard]] size_t LowerBound(std::string_view text) const;
  // All names in order. The view is valid during the call.
  void ForEach(const std::function<void(uint32_t number, std::string_view name)>& visit) const;
  // Sets the bits of the names that hold `part`, without regard to the case of ASCII letters.
  // `bits`: one per name.
  void MarkContaining(std::string_view part, std::span<uint64_t> bits) const;

 private:
  class Walk;
  [[nodiscard]] std::vector<uint64_t> BlocksThatMayHold(std::string_view folded) const;

  size_t count_ = 0;
  std::string_view text_;
  std::span<const uint64_t> blocks_, bitmaps_;
  std::span<const uint32_t> classes_;
};

// With ASCII letters in lower case.
std::string FoldCase(std::string_view text);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_NAME_INDEX_H_
