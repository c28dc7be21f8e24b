#include "tensor/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/process/parallel.h"

namespace plumbline {
namespace {

// Bytes that one thread takes at a time: enough to hide the hand-over.
constexpr int64_t kBytesPerBlock = int64_t{256} << 10;
// Elements (or runs) of a tile along each of its two axes: what it reads and writes fits L2.
constexpr int64_t kTileSide = 64;

// A tile of single elements or runs: `columns` lie close together in the source, `rows` in the
// target. Strides in bytes.
struct StridedTile {
  const std::byte* from;
  std::byte* to;
  int64_t rows;
  int64_t row_from;
  int64_t row_to;
  int64_t columns;
  int64_t column_from;
  int64_t column_to;
};

// `Bytes` is the length of a run if it is known while compiling, else 0.
template <size_t Bytes>
void MoveRuns(const StridedTile& tile, size_t run_bytes) {
  constexpr int64_t kGroup = 4;  // runs read one behind the other, so that cache lines are used up
  for (int64_t c0 = 0; c0 < tile.columns; c0 += kGroup) {
    const int64_t c1 = std::min(tile.columns, c0 + kGroup);
    for (int64_t r = 0; r < tile.rows; ++r) {
      const std::byte* from = tile.from + r * tile.row_from;
      std::byte* to = tile.to + r * tile.row_to;
      for (int64_t c = c0; c < c1; ++c) {
        std::memcpy(to + c * tile.column_to, from + c * tile.column_from,
                    Bytes != 0 ? Bytes : run_bytes);
      }
    }
  }
}

void MoveRunsOf(const StridedTile& tile, size_t run_bytes) {
  switch (run_bytes) {
    case 1:
      return MoveRuns<1>(tile, run_bytes);
    case 2:
      return MoveRuns<2>(tile, run_bytes);
    case 4:
      return MoveRuns<4>(tile, run_bytes);
    case 8:
      return MoveRuns<8>(tile, run_bytes);
    case 16:
      return MoveRuns<16>(tile, run_bytes);
    case 32:
      return MoveRuns<32>(tile, run_bytes);
    case 64:
      return MoveRuns<64>(tile, run_bytes);
    default:
      return MoveRuns<0>(tile, run_bytes);
  }
}

template <class T>
inline constexpr size_t kLanes = 16 / sizeof(T);

template <class T>
struct Register {
  typedef T Type __attribute__((vector_size(16)));  // NOLINT: the attribute needs a typedef
};
template <class T>
using Lanes = typename Register<T>::Type;

// The lower (Half 0) or upper halves of two registers, element by element in turn.
template <class T, size_t Half, size_t... I>
Lanes<T> Interleave(Lanes<T> a, Lanes<T> b, std::index_sequence<I...>) {
  constexpr size_t kStart = Half * kLanes<T> / 2;
  return __builtin_shufflevector(a, b, (kStart + I / 2 + (I % 2) * kLanes<T>)...);
}

// Transposes a square of kLanes x kLanes elements. Each round interleaves row i with row
// i + kLanes / 2, which moves one bit of the row number into the column number.
template <class T>
void TransposeSquare(const std::byte* from, int64_t row_from, std::byte* to, int64_t column_to) {
  constexpr size_t kSide = kLanes<T>;
  constexpr std::make_index_sequence<kSide> kAll{};
  Lanes<T> rows[kSide];
  for (size_t i = 0; i < kSide; ++i) {
    std::memcpy(&rows[i], from + static_cast<int64_t>(i) * row_from, sizeof(rows[i]));
  }
  for (size_t round = 1; round < kSide; round *= 2) {
    Lanes<T> next[kSide];
    for (size_t i = 0; i < kSide / 2; ++i) {
      next[2 * i] = Interleave<T, 0>(rows[i], rows[i + kSide / 2], kAll);
      next[2 * i + 1] = Interleave<T, 1>(rows[i], rows[i + kSide / 2], kAll);
    }
    std::copy_n(next, kSide, rows);
  }
  for (size_t i = 0; i < kSide; ++i) {
    std::memcpy(to + static_cast<int64_t>(i) * column_to, &rows[i], sizeof(rows[i]));
  }
}

// A tile whose columns are contiguous in the source and whose rows are in the target. Squares at
// the far edges overlap those before them.
template <class T>
void TransposeTile(const StridedTile& tile) {
  constexpr auto kSide = static_cast<int64_t>(kLanes<T>);
  constexpr int64_t kLine = std::max<int64_t>(kSide, 64 / sizeof(T));
  if (tile.rows < kSide || tile.columns < kSide) return MoveRuns<sizeof(T)>(tile, sizeof(T));
  for (int64_t line = 0; line < tile.rows; line += kLine) {
    const int64_t end = std::min(tile.rows, line + kLine);
    for (int64_t c = 0; c < tile.columns; c += kSide) {
      const int64_t column = std::min(c, tile.columns - kSide);
      for (int64_t r = line; r < end; r += kSide) {
        const int64_t row = std::min(r, tile.rows - kSide);
        TransposeSquare<T>(tile.from + row * tile.row_from + column * tile.column_from,
                           tile.row_from, tile.to + row * tile.row_to + column * tile.column_to,
                           tile.column_to);
      }
    }
  }
}

void TransposeTileOf(const StridedTile& tile, size_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return TransposeTile<uint8_t>(tile);
    case 2:
      return TransposeTile<uint16_t>(tile);
    case 4:
      return TransposeTile<uint32_t>(tile);
    case 8:
      return TransposeTile<uint64_t>(tile);
    default:
      return MoveRunsOf(tile, element_bytes);
  }
}

// Drops axes of one element and joins axes that follow each other without a gap on both sides.
std::vector<CopyAxis> MergedAxes(const StridedCopy& copy, int64_t element_bytes) {
  std::vector<CopyAxis> axes;
  for (const CopyAxis& axis : copy.axes) {
    if (axis.size == 1) continue;
    axes.push_back({axis.size, axis.from_stride * element_bytes, axis.to_stride * element_bytes});
  }
  for (size_t i = 0; i < axes.size();) {
    const auto inner = std::find_if(axes.begin(), axes.end(), [&](const CopyAxis& other) {
      return axes[i].from_stride == other.size * other.from_stride &&
             axes[i].to_stride == other.size * other.to_stride;
    });
    if (inner == axes.end()) {
      ++i;
      continue;
    }
    inner->size *= axes[i].size;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
    i = 0;
  }
  return axes;
}

// A copy taken apart: tiles over `rows` and `columns` within a loop over `outer`.
struct Schedule {
  size_t element_bytes = 1;
  size_t run_bytes = 1;
  CopyAxis rows{1, 0, 0};     // closest together in the target
  CopyAxis columns{1, 0, 0};  // closest together in the source
  std::vector<CopyAxis> outer;
  bool transposes = false;

  [[nodiscard]] int64_t RowTiles() const { return (rows.size + kTileSide - 1) / kTileSide; }
  [[nodiscard]] int64_t ColumnTiles() const { return (columns.size + kTileSide - 1) / kTileSide; }
  [[nodiscard]] size_t TileCount() const {
    int64_t count = RowTiles() * ColumnTiles();
    for (const CopyAxis& axis : outer) count *= axis.size;
    return static_cast<size_t>(count);
  }
};

// Removes and returns the axis of the smallest stride, or an axis of one element.
CopyAxis TakeClosest(std::vector<CopyAxis>& axes, int64_t CopyAxis::*stride) {
  const auto closest =
      std::min_element(axes.begin(), axes.end(),
                       [&](const CopyAxis& a, const CopyAxis& b) { return a.*stride < b.*stride; });
  if (closest == axes.end()) return {1, 0, 0};
  const CopyAxis axis = *closest;
  axes.erase(closest);
  return axis;
}

Schedule MakeSchedule(const StridedCopy& copy, size_t element_bytes) {
  const auto bytes = static_cast<int64_t>(element_bytes);
  Schedule schedule;
  schedule.element_bytes = element_bytes;
  schedule.run_bytes = element_bytes;
  schedule.outer = MergedAxes(copy, bytes);
  const auto run = std::find_if(
      schedule.outer.begin(), schedule.outer.end(),
      [&](const CopyAxis& a) { return a.from_stride == bytes && a.to_stride == bytes; });
  if (run != schedule.outer.end()) {
    schedule.run_bytes = static_cast<size_t>(run->size * bytes);
    schedule.outer.erase(run);
  }
  schedule.rows = TakeClosest(schedule.outer, &CopyAxis::to_stride);
  schedule.columns = TakeClosest(schedule.outer, &CopyAxis::from_stride);
  // The axis taken first may be the closest one of the source as well as of the target.
  schedule.transposes = schedule.run_bytes == element_bytes && schedule.rows.to_stride == bytes &&
                        schedule.columns.from_stride == bytes;
  std::sort(schedule.outer.begin(), schedule.outer.end(), [](const auto& a, const auto& b) {
    return std::min(a.from_stride, a.to_stride) > std::min(b.from_stride, b.to_stride);
  });
  return schedule;
}

void CopyOneTile(const Schedule& schedule, size_t index, const std::byte* from, std::byte* to) {
  auto rest = static_cast<int64_t>(index);
  const int64_t column = rest % schedule.ColumnTiles() * kTileSide;
  rest /= schedule.ColumnTiles();
  const int64_t row = rest % schedule.RowTiles() * kTileSide;
  rest /= schedule.RowTiles();
  int64_t from_offset = row * schedule.rows.from_stride + column * schedule.columns.from_stride;
  int64_t to_offset = row * schedule.rows.to_stride + column * schedule.columns.to_stride;
  for (size_t i = schedule.outer.size(); i-- > 0;) {
    const CopyAxis& axis = schedule.outer[i];
    from_offset += rest % axis.size * axis.from_stride;
    to_offset += rest % axis.size * axis.to_stride;
    rest /= axis.size;
  }
  const StridedTile tile{from + from_offset,
                         to + to_offset,
                         std::min(kTileSide, schedule.rows.size - row),
                         schedule.rows.from_stride,
                         schedule.rows.to_stride,
                         std::min(kTileSide, schedule.columns.size - column),
                         schedule.columns.from_stride,
                         schedule.columns.to_stride};
  if (schedule.transposes) return TransposeTileOf(tile, schedule.element_bytes);
  MoveRunsOf(tile, schedule.run_bytes);
}

}  // namespace

int64_t StridedCopy::ElementCount() const {
  int64_t count = 1;
  for (const CopyAxis& axis : axes) count *= axis.size;
  return count;
}

void CopyStrided(const StridedCopy& copy, size_t element_bytes, const std::byte* from,
                 std::byte* to) {
  const Schedule schedule = MakeSchedule(copy, element_bytes);
  from += copy.from_offset * static_cast<int64_t>(element_bytes);
  to += copy.to_offset * static_cast<int64_t>(element_bytes);
  const size_t tiles = schedule.TileCount();
  if (tiles == 1 && schedule.run_bytes > kBytesPerBlock) {  // all of it is one run
    ParallelBlocks(schedule.run_bytes, kBytesPerBlock, [&](size_t begin, size_t end) {
      std::memcpy(to + begin, from + begin, end - begin);
    });
    return;
  }
  const int64_t tile_bytes = std::min(kTileSide, schedule.rows.size) *
                             std::min(kTileSide, schedule.columns.size) *
                             static_cast<int64_t>(schedule.run_bytes);
  const auto block = static_cast<size_t>(std::max<int64_t>(1, kBytesPerBlock / tile_bytes));
  if (tiles <= block) {
    for (size_t i = 0; i < tiles; ++i) CopyOneTile(schedule, i, from, to);
    return;
  }
  ParallelBlocks(tiles, block, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) CopyOneTile(schedule, i, from, to);
  });
}

}  // namespace plumbline
