#include "formats/hdf5_chunks.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "formats/hdf5_handle.h"

namespace plumbline::hdf5 {
namespace {

constexpr uint64_t kMostChunkBytes = std::numeric_limits<uint32_t>::max();  // of the format
constexpr size_t kFletcherBytes = 4;

using Extent = std::array<hsize_t, H5S_MAX_RANK>;

Error Damaged(std::string_view what) { return {ErrorCode::kCorrupt, std::string(what)}; }

// How the chunks of a dataset lie and what was done to them.
struct ChunkLayout {
  int rank = 0;
  Extent sizes{}, chunk{};  // of the dataset, of one chunk
  uint64_t chunk_bytes = 0;
  uint64_t chunk_count = 1;
  std::vector<H5Z_filter_t> filters;  // in the order of writing
};

bool AreKnown(std::span<const H5Z_filter_t> filters) {
  // Each at most once, and in this order.
  constexpr std::array kKnown = {H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32};
  size_t next = 0;
  for (const H5Z_filter_t filter : filters) {
    while (next < kKnown.size() && kKnown[next] != filter) ++next;
    if (next++ == kKnown.size()) return false;
  }
  return true;
}

Result<ChunkLayout> LayoutOf(hid_t dataset, hid_t properties, size_t element_bytes) {
  ChunkLayout layout;
  const Handle space(H5Dget_space(dataset));
  layout.rank = H5Pget_chunk(properties, H5S_MAX_RANK, layout.chunk.data());
  if (!space.is_open() || layout.rank < 1 || H5Sget_simple_extent_ndims(space) != layout.rank ||
      H5Sget_simple_extent_dims(space, layout.sizes.data(), nullptr) < 0) {
    return Damaged("has no readable chunks");
  }
  layout.chunk_bytes = element_bytes;
  for (int i = 0; i < layout.rank; ++i) {
    const auto axis = static_cast<size_t>(i);
    const hsize_t size = layout.sizes[axis], chunk = layout.chunk[axis];
    if (chunk == 0 || chunk > kMostChunkBytes || size == 0) return Damaged("has impossible chunks");
    const hsize_t along = size / chunk + (size % chunk == 0 ? 0 : 1);
    if (layout.chunk_bytes > kMostChunkBytes / chunk ||
        layout.chunk_count > std::numeric_limits<uint64_t>::max() / along) {
      return Damaged("has impossible chunks");
    }
    layout.chunk_bytes *= chunk;
    layout.chunk_count *= along;
  }
  for (int i = 0; i < H5Pget_nfilters(properties); ++i) {
    unsigned flags = 0;
    size_t values = 0;
    layout.filters.push_back(H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &values,
                                            nullptr, 0, nullptr, nullptr));
  }
  if (!AreKnown(layout.filters)) {
    return Error(ErrorCode::kUnsupported,
                 "is packed by a filter other than shuffle, deflate and Fletcher-32. Repack it "
                 "with h5repack");
  }
  return layout;
}

// Bytes that a deflated stream holds; nothing where it is damaged or holds more than `most`.
std::optional<uint64_t> InflatedBytes(std::span<std::byte> packed, uint64_t most) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return std::nullopt;
  std::array<Bytef, 16384> out;
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  int status = Z_OK;
  while (status == Z_OK && stream.total_out <= most) {
    stream.next_out = out.data();
    stream.avail_out = out.size();
    status = inflate(&stream, Z_SYNC_FLUSH);
  }
  const uint64_t bytes = stream.total_out;
  inflateEnd(&stream);
  return status == Z_STREAM_END ? std::optional(bytes) : std::nullopt;
}

// Bytes of a chunk without its filters; those of a set bit in `left_out` were not applied.
std::optional<uint64_t> UnpackedBytes(const ChunkLayout& layout, uint32_t left_out,
                                      std::span<std::byte> packed) {
  uint64_t bytes = packed.size();
  for (size_t i = layout.filters.size(); i-- > 0;) {
    if ((left_out >> i & 1) != 0) continue;
    if (layout.filters[i] == H5Z_FILTER_FLETCHER32) {
      if (bytes < kFletcherBytes) return std::nullopt;
      bytes -= kFletcherBytes;
    } else if (layout.filters[i] == H5Z_FILTER_DEFLATE) {
      const auto inflated = InflatedBytes(packed.first(bytes), layout.chunk_bytes);
      if (!inflated) return std::nullopt;
      bytes = *inflated;
    }
  }
  return bytes;
}

Status CheckChunk(hid_t dataset, const ChunkLayout& layout, const Extent& place,
                  uint64_t file_bytes) {
  unsigned left_out = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t stored = 0;
  if (H5Dget_chunk_info_by_coord(dataset, place.data(), &left_out, &address, &stored) < 0 ||
      address > file_bytes || stored > file_bytes - address) {
    return Damaged("has a chunk outside of the file");
  }
  std::optional<uint64_t> bytes = stored;
  if (!layout.filters.empty()) {
    std::vector<std::byte> packed(stored);
    uint32_t mask = 0;
    if (H5Dread_chunk(dataset, H5P_DEFAULT, place.data(), &mask, packed.data()) < 0) {
      return Damaged("has a chunk that cannot be read");
    }
    bytes = UnpackedBytes(layout, mask, packed);
  }
  if (bytes == layout.chunk_bytes) return {};
  return Damaged(fmt::format("has a damaged chunk (expected {} bytes, got {})", layout.chunk_bytes,
                             bytes ? fmt::to_string(*bytes) : "none that can be unpacked"));
}

}  // namespace

Status CheckChunks(hid_t dataset, size_t element_bytes, uint64_t file_bytes) {
  const Handle properties(H5Dget_create_plist(dataset));
  if (!properties.is_open()) return Damaged("has no readable layout");
  if (H5Pget_layout(properties) != H5D_CHUNKED) return {};
  PL_TRY_ASSIGN(const ChunkLayout layout, LayoutOf(dataset, properties, element_bytes));
  const Handle space(H5Dget_space(dataset));
  hsize_t found = 0;
  if (H5Dget_num_chunks(dataset, space, &found) < 0 || found != layout.chunk_count) {
    return Damaged(fmt::format("lacks chunks (expected {}, got {})", layout.chunk_count, found));
  }
  Extent place{};
  for (uint64_t i = 0; i < layout.chunk_count; ++i) {
    PL_TRY(CheckChunk(dataset, layout, place, file_bytes));
    for (auto axis = static_cast<size_t>(layout.rank); axis-- > 0;) {
      place[axis] += layout.chunk[axis];
      if (place[axis] < layout.sizes[axis]) break;
      place[axis] = 0;
    }
  }
  return {};
}

}  // namespace plumbline::hdf5
