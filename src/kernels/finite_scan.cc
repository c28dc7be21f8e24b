#include "kernels/finite_scan.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>

#include "tensor/block_gather.h"

namespace plumbline::kernels {
namespace {

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

}  // namespace

bool HasNonFinite(const TensorView& view, const Team* team) {
  const DTypeKind kind = InfoOf(view.dtype).kind;
  if (kind != DTypeKind::kFloat && kind != DTypeKind::kComplex) return false;
  const auto elements = static_cast<size_t>(view.element_count());
  if (elements == 0) return false;
  // Reading 256 KiB takes as long as waking the other threads.
  constexpr size_t kAloneBytes = size_t{256} << 10;
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

}  // namespace plumbline::kernels
