// What identifies the contents of a recorded tensor, so that a value can be followed from call to
// call.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_CONTENT_KEY_H_
#define PLUMBLINE_PIPELINE_CULPRIT_CONTENT_KEY_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Digest if recorded, else the statistics, with the number of elements: views of one tensor count
// as the same.
struct ContentKey {
  Text digest;
  std::array<uint64_t, 4> statistics{};  // bit patterns
  int64_t element_count = 0;

  [[nodiscard]] bool HasDigest() const { return !digest.empty(); }
  friend bool operator==(const ContentKey&, const ContentKey&) = default;
};

struct ContentKeyHash {
  size_t operator()(const ContentKey& key) const;
};

// Nothing for scalars and for tensors without digest and statistics.
std::optional<ContentKey> KeyOf(const Item& item);

// The key of `-item`, whose own key is `key`. Requires: a key without digest.
ContentKey NegativeOf(const Item& item, const ContentKey& key);

// Whether `item` is `s - other` for a number s, as far as statistics tell: of four, three relations
// hold for one unknown.
bool IsNumberLess(const Item& item, const Item& other);

// Whether the contents tell where they come from: not one value throughout, as masks and fresh
// buffers have, but for a single number that is not whole.
bool IsTelling(const Item& item);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_CONTENT_KEY_H_
