// Where a value was last seen: finds the row of given contents among those judged so far.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_CONTENT_TABLE_H_
#define PLUMBLINE_PIPELINE_CULPRIT_CONTENT_TABLE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/culprit/content_key.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Rows by the contents of their golden item. Holds eight bytes per row and looks the contents up
// in the rows, which must stay where they are. Single-threaded.
class ContentTable {
 public:
  explicit ContentTable(const std::vector<ComparedRow>& rows) : rows_(rows) {}

  // The last row remembered whose golden item has the contents `key`.
  [[nodiscard]] std::optional<uint32_t> Find(const ContentKey& key) const;
  // Brings the place of `key` near the processor, which takes longer than all else in Find().
  void Expect(const ContentKey& key) const;
  // From now on `row` is the last one with its contents. Requires: a golden item, whose key is
  // `key`.
  void Remember(const ContentKey& key, uint32_t row);

 private:
  struct Entry {
    uint32_t row = kFree;
    uint32_t tag = 0;  // other bits of the hash than choose the place
  };
  static constexpr uint32_t kFree = 0xFFFFFFFF;

  // The entry of `key`, or the free one where it belongs. Requires: not full.
  [[nodiscard]] size_t PlaceOf(const ContentKey& key, size_t hash) const;
  void Grow();

  const std::vector<ComparedRow>& rows_;
  std::vector<Entry> entries_;  // a power of two; at most half are taken
  size_t taken_ = 0;
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_CONTENT_TABLE_H_
