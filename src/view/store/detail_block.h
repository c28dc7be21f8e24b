// Details of nodes in packed blocks: a few hundred nodes share the texts they repeat.

#ifndef PLUMBLINE_VIEW_STORE_DETAIL_BLOCK_H_
#define PLUMBLINE_VIEW_STORE_DETAIL_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "plumbline/result.h"
#include "view/store/node_detail.h"
#include "view/store/text_pool.h"

namespace plumbline::view {

// A block as it stands in the file: deflated, with what checks it.
struct PackedBlock {
  std::string bytes;
  uint32_t raw_size = 0;
  uint32_t crc = 0;  // CRC-32 of the raw bytes
};

// Collects the details of one block. Single-threaded.
class DetailBlockWriter {
 public:
  // Appends a detail; where it begins among the records of the block.
  uint32_t Add(const NodeDetail& detail);
  [[nodiscard]] bool is_full() const { return records_.size() + texts_.chars().size() >= kBytes; }
  [[nodiscard]] bool is_empty() const { return records_.empty(); }
  // The block, after which another one begins. kInternal when the library fails.
  Result<PackedBlock> Take();

 private:
  // What is unpacked for one node: a tenth of a millisecond.
  static constexpr size_t kBytes = size_t{1} << 16;

  TextPool texts_;
  std::string records_;
};

// The detail that begins at `offset` of the records of a block. kCorrupt: the bytes are not those
// of a block, or hold no detail there.
Result<NodeDetail> ReadDetail(std::string_view packed, uint32_t raw_size, uint32_t crc,
                              uint32_t offset);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_DETAIL_BLOCK_H_
