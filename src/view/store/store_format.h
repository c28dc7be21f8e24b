// The bytes of a store file (docs/formats/view_store.md): what writer and reader share.

#ifndef PLUMBLINE_VIEW_STORE_STORE_FORMAT_H_
#define PLUMBLINE_VIEW_STORE_STORE_FORMAT_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "view/store/node_columns.h"

namespace plumbline::view {

static_assert(std::endian::native == std::endian::little, "columns are mapped as they stand");

inline constexpr std::array<char, 8> kStoreMagic = {'P', 'L', 'V', 'I', 'E', 'W', '\r', '\n'};
inline constexpr uint32_t kStoreVersion = 1;
inline constexpr size_t kSectionAlignment = 8;

// Stored; append only.
enum class Section : uint32_t {
  kFacts,   // one JSON object
  kPlaces,  // PlaceRow
  kNameText,
  kNameBlocks,
  kTrigramBitmaps,
  kTrigrams,  // the bitmap of each class
  kByName,
  kByOrder,
  kFrameText,
  kFrameEnds,
  kStackFrames,  // numbers of frames
  kStackEnds,
  kFormText,
  kFormEnds,
  kOperationText,
  kOperationEnds,
  kDetailBlocks,  // BlockRow
  kDetails,
  kLinks,       // LinkRow
  kLinkEnds,    // EndRow
  kEndsByNode,  // numbers of ends, ordered by node
  kLinkText,
  kLinkTextEnds,
  kFirstColumn,  // and all others of NodeColumnsOf behind it
};
inline constexpr size_t kSectionCount =
    static_cast<size_t>(Section::kFirstColumn) + kNodeColumnCount;

struct SectionRow {
  uint64_t offset = 0, size = 0;  // bytes
};

struct StoreHeader {
  std::array<char, 8> magic = kStoreMagic;
  uint32_t version = kStoreVersion;
  uint32_t section_count = kSectionCount;
  uint64_t file_size = 0;
  uint64_t node_count = 0;
  uint64_t name_count = 0;
  uint64_t digest_low = 0, digest_high = 0;  // XXH3-128 of the sections
  std::array<SectionRow, kSectionCount> sections{};
};

struct PlaceRow {
  int64_t step = 0, rank = 0;
  uint32_t target = kNoNode, target_count = 0, golden = kNoNode, golden_count = 0;
};

struct BlockRow {
  uint64_t offset = 0;  // in kDetails
  uint32_t packed_size = 0, raw_size = 0;
  uint32_t crc = 0;
  uint32_t reserved = 0;
};

struct LinkRow {
  uint64_t layer = 0;
  uint32_t first_end = 0, end_count = 0;
  uint32_t key = 0;  // of the texts of links
  uint32_t is_message = 0;
};

struct EndRow {
  uint32_t node = kNoNode, link = 0;
  uint32_t mismatch = 0;  // of the texts of links; text 0 is empty
  uint32_t role = 0;
};

// A place of a detail: the block, and where it begins among the block's records.
inline uint64_t DetailAt(uint32_t block, uint32_t offset) { return uint64_t{block} << 32 | offset; }

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_STORE_FORMAT_H_
