#include "kernels/finite_scan.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "tensor/block_gather.h"
#include "tensor/element_value.h"

namespace plumbline::kernels {
namespace {

// Reading this much takes as long as waking the other threads.
constexpr size_t kAloneBytes = size_t{256} << 10;
// Looked at between two tests for an early end; half a first-level cache.
constexpr size_t kPieceBytes = size_t{16} << 10;

// Adding `one` to the exponent bits reaches the sign bit only when all of them are set. AND, ADD
// and OR exist for every width on every CPU, so the loop vectorises without a target of its own.
template <class Word>
bool AnyAllOnes(const std::byte* data, size_t count, Word exponent, Word one) {
  Word seen = 0;
  for (size_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, data + i * sizeof(Word), sizeof(Word));
    seen = static_cast<Word>(seen | static_cast<Word>((word & exponent) + one));
  }
  return (seen >> (8 * sizeof(Word) - 1)) != 0;
}

bool AnyEqual(const std::byte* data, size_t count, uint8_t mask, uint8_t pattern) {
  uint8_t seen = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto value = static_cast<uint8_t>(data[i]);
    seen = static_cast<uint8_t>(seen | ((value & mask) == pattern ? 1 : 0));
  }
  return seen != 0;
}

// `bytes`: whole elements.
bool AnyNonFinite(DType dtype, std::span<const std::byte> bytes) {
  const std::byte* data = bytes.data();
  const size_t size = bytes.size();
  switch (dtype) {
    case DType::kFloat16:
      return AnyAllOnes<uint16_t>(data, size / 2, 0x7C00, 0x0400);
    case DType::kBFloat16:
      return AnyAllOnes<uint16_t>(data, size / 2, 0x7F80, 0x0080);
    case DType::kFloat32:
    case DType::kComplex64:
      return AnyAllOnes<uint32_t>(data, size / 4, 0x7F800000, 0x00800000);
    case DType::kFloat64:
    case DType::kComplex128:
      return AnyAllOnes<uint64_t>(data, size / 8, 0x7FF0000000000000, 0x0010000000000000);
    case DType::kFloat8E5M2:
      return AnyAllOnes<uint8_t>(data, size, 0x7C, 0x04);
    case DType::kFloat8E4M3FN:
      return AnyEqual(data, size, 0x7F, 0x7F);
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2FNUZ:
      return AnyEqual(data, size, 0xFF, 0x80);
    default:
      return false;
  }
}

bool AnyInPieces(DType dtype, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<const std::byte> piece = bytes.first(std::min(kPieceBytes, bytes.size()));
    if (AnyNonFinite(dtype, piece)) return true;
    bytes = bytes.subspan(piece.size());
  }
  return false;
}

// Elements `first` to `first + count`. Out of line: the scratch memory costs a probe per page.
[[gnu::noinline]] bool AnyGathered(const TensorView& view, size_t first, size_t count) {
  alignas(64) std::byte scratch[size_t{64} << 10];
  BlockGather gather(view, scratch);
  gather.Select(first, count);
  for (auto chunk = gather.Next(); !chunk.empty(); chunk = gather.Next()) {
    if (AnyInPieces(view.dtype, chunk)) return true;
  }
  return false;
}

bool AnyInRange(const TensorView& view, size_t first, size_t count) {
  if (count == 0) return false;
  if (!view.is_contiguous()) return AnyGathered(view, first, count);
  const size_t element = InfoOf(view.dtype).size_bytes;
  return AnyInPieces(view.dtype, {view.data + first * element, count * element});
}

// A scan shared out by blocks; every worker stops when one has found something.
struct SharedSearch {
  const TensorView* view;
  size_t elements;
  size_t workers;
  std::atomic<bool> found = false;

  static void Work(void* self, int worker) {
    static_cast<SharedSearch*>(self)->Share(static_cast<size_t>(worker));
  }
  void Share(size_t worker) {
    const size_t blocks = (elements + kBlockElements - 1) / kBlockElements;
    const size_t end = blocks * (worker + 1) / workers;
    for (size_t i = blocks * worker / workers; i < end; ++i) {
      if (found.load(std::memory_order_relaxed)) return;
      const size_t first = i * kBlockElements;
      if (AnyInRange(*view, first, std::min(kBlockElements, elements - first))) {
        found.store(true, std::memory_order_relaxed);
      }
    }
  }
};

constexpr size_t kMaxWorkers = 64;

// Without their sign bit the patterns of an IEEE type are ordered as the magnitudes are, infinity
// behind the finite ones and NaN behind infinity: one loop over integers answers all questions.
struct PatternRange {
  int64_t low = std::numeric_limits<int64_t>::max();
  int64_t high = -1;  // no element
};

template <class Word>
void AddPatterns(std::span<const std::byte> bytes, PatternRange& range) {
  constexpr Word kMagnitude = std::numeric_limits<Word>::max();
  const size_t count = bytes.size() / sizeof(Word);
  Word low = kMagnitude, high = 0;
  for (size_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, bytes.data() + i * sizeof(Word), sizeof(Word));
    word = static_cast<Word>(word & kMagnitude);
    low = word < low ? word : low;
    high = word > high ? word : high;
  }
  if (count == 0) return;
  range.low = std::min<int64_t>(range.low, low);
  range.high = std::max<int64_t>(range.high, high);
}

template <class Word>
bool HasPattern(std::span<const std::byte> bytes, int64_t pattern) {
  constexpr Word kMagnitude = std::numeric_limits<Word>::max();
  const auto wanted = static_cast<Word>(pattern);
  const size_t count = bytes.size() / sizeof(Word);
  Word seen = 0;
  for (size_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, bytes.data() + i * sizeof(Word), sizeof(Word));
    seen = static_cast<Word>(seen | static_cast<Word>((word & kMagnitude) == wanted ? 1 : 0));
  }
  return seen != 0;
}

// The IEEE types of at least 16 bits: their infinity, without sign; 0 for others.
int64_t InfinityOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x7C00;
    case DType::kBFloat16:
      return 0x7F80;
    case DType::kFloat32:
      return 0x7F800000;
    case DType::kFloat64:
      return 0x7FF0000000000000;
    default:
      return 0;
  }
}

void AddChunk(DType dtype, std::span<const std::byte> bytes, PatternRange& range) {
  const size_t size = InfoOf(dtype).size_bytes;
  if (size == 2) return AddPatterns<int16_t>(bytes, range);
  if (size == 4) return AddPatterns<int32_t>(bytes, range);
  AddPatterns<int64_t>(bytes, range);
}

bool ChunkHas(DType dtype, std::span<const std::byte> bytes, int64_t pattern) {
  const size_t size = InfoOf(dtype).size_bytes;
  if (size == 2) return HasPattern<int16_t>(bytes, pattern);
  if (size == 4) return HasPattern<int32_t>(bytes, pattern);
  return HasPattern<int64_t>(bytes, pattern);
}

double MagnitudeOf(DType dtype, int64_t pattern) {
  std::byte stored[sizeof(pattern)];
  std::memcpy(stored, &pattern, sizeof(pattern));  // little endian, as everywhere here
  return ElementAsDouble(dtype, stored);
}

// Calls visit(bytes) for elements `first` to `first + count` until it returns false.
// Out of line: the scratch memory costs a probe per page.
template <class Visit>
[[gnu::noinline]] void ForChunks(const TensorView& view, size_t first, size_t count,
                                 const Visit& visit) {
  alignas(64) std::byte scratch[size_t{64} << 10];
  BlockGather gather(view, scratch);
  gather.Select(first, count);
  for (auto chunk = gather.Next(); !chunk.empty(); chunk = gather.Next()) {
    if (!visit(chunk)) return;
  }
}

PatternRange RangeOf(const TensorView& view, size_t first, size_t count) {
  PatternRange range;
  ForChunks(view, first, count, [&](std::span<const std::byte> bytes) {
    AddChunk(view.dtype, bytes, range);
    return true;
  });
  return range;
}

struct SharedRange {
  const TensorView* view;
  size_t elements;
  size_t workers;
  std::array<PatternRange, kMaxWorkers> ranges = {};

  static void Work(void* self, int worker) {
    static_cast<SharedRange*>(self)->Share(static_cast<size_t>(worker));
  }
  void Share(size_t worker) {
    const size_t blocks = (elements + kBlockElements - 1) / kBlockElements;
    const size_t first = std::min(blocks * worker / workers * kBlockElements, elements);
    const size_t end = std::min(blocks * (worker + 1) / workers * kBlockElements, elements);
    ranges[worker] = RangeOf(*view, first, end - first);
  }
};

PatternRange WholeRange(const TensorView& view, size_t elements, const Team* team) {
  if (team == nullptr || team->size < 2 || view.size_bytes() <= kAloneBytes) {
    return RangeOf(view, 0, elements);
  }
  SharedRange shared{&view, elements, std::min(static_cast<size_t>(team->size), kMaxWorkers)};
  team->run(static_cast<int>(shared.workers), &SharedRange::Work, &shared);
  PatternRange range;
  for (size_t i = 0; i < shared.workers; ++i) {
    range.low = std::min(range.low, shared.ranges[i].low);
    range.high = std::max(range.high, shared.ranges[i].high);
  }
  return range;
}

AbsExtremes OfPatterns(const TensorView& view, size_t elements, const Team* team) {
  const PatternRange range = WholeRange(view, elements, team);
  const int64_t infinity = InfinityOf(view.dtype);
  AbsExtremes found;
  found.has_nan = range.high > infinity;
  found.has_inf = range.high == infinity;
  if (found.has_nan) {
    found.min = found.max = std::numeric_limits<double>::quiet_NaN();
    ForChunks(view, 0, elements, [&](std::span<const std::byte> bytes) {
      found.has_inf = ChunkHas(view.dtype, bytes, infinity);
      return !found.has_inf;
    });
    return found;
  }
  found.min = MagnitudeOf(view.dtype, range.low);
  found.max = MagnitudeOf(view.dtype, range.high);
  return found;
}

// One element of any type, by its value.
class MagnitudeSink {
 public:
  explicit MagnitudeSink(AbsExtremes& found) : found_(found) {}
  template <class T>
  void operator()(T value) const {
    Add(std::abs(static_cast<double>(value)));
  }
  template <class T>
  void operator()(T real, T imaginary) const {
    const auto a = static_cast<double>(real), b = static_cast<double>(imaginary);
    if (std::isinf(a) || std::isinf(b)) found_.has_inf = true;
    if (std::isnan(a) || std::isnan(b)) {
      found_.has_nan = true;
      return;
    }
    AddFinite(std::hypot(a, b));
  }

 private:
  void Add(double magnitude) const {
    found_.has_nan = found_.has_nan || std::isnan(magnitude);
    found_.has_inf = found_.has_inf || std::isinf(magnitude);
    AddFinite(magnitude);
  }
  void AddFinite(double magnitude) const {
    found_.min = std::min(found_.min, magnitude);
    found_.max = std::max(found_.max, magnitude);
  }
  AbsExtremes& found_;
};

AbsExtremes OfElements(const TensorView& view, size_t elements) {
  AbsExtremes found;
  found.min = std::numeric_limits<double>::infinity();
  found.max = 0;
  const MagnitudeSink sink(found);
  const size_t size = InfoOf(view.dtype).size_bytes;
  ForChunks(view, 0, elements, [&](std::span<const std::byte> bytes) {
    for (size_t at = 0; at < bytes.size(); at += size) {
      VisitElement(view.dtype, bytes.data() + at, sink);
    }
    return true;
  });
  if (found.has_nan) found.min = found.max = std::numeric_limits<double>::quiet_NaN();
  return found;
}

}  // namespace

bool HasNonFinite(const TensorView& view, const Team* team) {
  const DTypeKind kind = InfoOf(view.dtype).kind;
  if (kind != DTypeKind::kFloat && kind != DTypeKind::kComplex) return false;
  const auto elements = static_cast<size_t>(view.element_count());
  if (elements == 0) return false;
  if (team == nullptr || team->size < 2 || view.size_bytes() <= kAloneBytes) {
    return AnyInRange(view, 0, elements);
  }
  SharedSearch search{&view, elements, static_cast<size_t>(team->size)};
  team->run(team->size, &SharedSearch::Work, &search);
  return search.found.load(std::memory_order_relaxed);
}

Likeness LikenessOf(const TensorView& first, const TensorView& second) {
  const Likeness likeness =
      ActiveTable().likeness(first.dtype, first.data, second.data, first.size_bytes());
  const bool is_narrow = InfoOf(first.dtype).size_bytes == 1;
  if (likeness != Likeness::kFinite || !is_narrow) return likeness;
  return HasNonFinite(first, nullptr) ? Likeness::kNonFinite : Likeness::kFinite;
}

AbsExtremes AbsExtremesOf(const TensorView& view, const Team* team) {
  const auto elements = static_cast<size_t>(view.element_count());
  if (elements == 0) return {};
  if (InfinityOf(view.dtype) != 0) return OfPatterns(view, elements, team);
  return OfElements(view, elements);
}

}  // namespace plumbline::kernels
