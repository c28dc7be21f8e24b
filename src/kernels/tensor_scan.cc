#include "kernels/tensor_scan.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "tensor/block_gather.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace plumbline::kernels {
namespace {

// Puts the default floating-point mode in force: the application may have set flush-to-zero, which
// would change statistics of denormal numbers and, on some CPUs only, of conversions. Nothing is
// written when the mode is the default one, which is usual: writing it costs as much as the
// statistics of a small tensor.
class DefaultFloatMode {
 public:
#if defined(__x86_64__)
  DefaultFloatMode() : saved_(_mm_getcsr()) {
    if ((saved_ & kModes) != kDefault) _mm_setcsr(kDefault);
  }
  ~DefaultFloatMode() {
    if ((saved_ & kModes) != kDefault) _mm_setcsr(saved_);
  }

 private:
  static constexpr unsigned kModes = ~0x3Fu;    // all but the exception flags
  static constexpr unsigned kDefault = 0x1F80;  // all exceptions masked, round to nearest
  unsigned saved_;
#else
  DefaultFloatMode() {}
  ~DefaultFloatMode() {}
#endif
};

uint32_t Crc32OfWidened(std::span<const std::byte> bfloats, uint32_t crc) {
  constexpr size_t kPart = 4096;
  alignas(64) float wide[kPart];
  while (!bfloats.empty()) {
    const std::span<const std::byte> part = bfloats.first(std::min(bfloats.size(), 2 * kPart));
    const size_t count = part.size() / 2;
    ActiveTable().to_float(DType::kBFloat16, part.data(), count, wide);
    crc = Crc32(std::as_bytes(std::span(wide, count)), crc);
    bfloats = bfloats.subspan(part.size());
  }
  return crc;
}

// The consumers of chunks for one call.
class Consumers {
 public:
  Consumers(DType dtype, const ScanWants& wants) : dtype_(dtype), wants_(wants) {}

  void Take(std::span<const std::byte> chunk, bool is_whole) {
    if (wants_.moments) {
      UpdateMoments(ActiveTable(), dtype_, chunk.data(), chunk.size() / InfoOf(dtype_).size_bytes,
                    &moments_);
    }
    if (wants_.crc32) {
      const bool widen = wants_.crc_of_float32 && dtype_ == DType::kBFloat16;
      crc32_ = widen ? Crc32OfWidened(chunk, crc32_) : Crc32(chunk, crc32_);
    }
    if (wants_.xxh3) {
      if (is_whole) {
        digest_ = Xxh3Of(chunk);
      } else {
        if (!xxh3_) xxh3_.emplace();
        xxh3_->Update(chunk);
      }
    }
    if (wants_.copy_to != nullptr) {
      std::memcpy(wants_.copy_to + copied_, chunk.data(), chunk.size());
      copied_ += chunk.size();
    }
  }

  [[nodiscard]] TensorScan Finish() const {
    TensorScan scan;
    if (wants_.moments) scan.moments = FinishMoments(moments_);
    scan.crc32 = crc32_;
    scan.xxh3 = xxh3_ ? xxh3_->Finish() : digest_;
    return scan;
  }

 private:
  DType dtype_;
  const ScanWants& wants_;
  MomentsState moments_;
  uint32_t crc32_ = 0;
  Digest128 digest_;
  std::optional<Xxh3> xxh3_;
  size_t copied_ = 0;
};

// Kept out of line: the scratch memory on the stack costs a probe per page.
[[gnu::noinline]] void FeedGathered(const TensorView& view, Consumers* consumers) {
  alignas(64) std::byte scratch[size_t{64} << 10];
  BlockGather gather(view, scratch);
  const size_t whole = view.size_bytes();
  for (auto chunk = gather.Next(); !chunk.empty(); chunk = gather.Next()) {
    consumers->Take(chunk, chunk.size() == whole);
  }
}

}  // namespace

TensorScan ScanTensor(const TensorView& view, const ScanWants& wants) {
  const DefaultFloatMode mode;
  Consumers consumers(view.dtype, wants);
  const size_t bytes = view.size_bytes();
  if (bytes == 0) {
    TensorScan scan = consumers.Finish();
    if (wants.xxh3) scan.xxh3 = Xxh3Of({});
    return scan;
  }
  if (!view.is_contiguous()) {
    FeedGathered(view, &consumers);
    return consumers.Finish();
  }
  const int readers =
      int{wants.moments} + int{wants.crc32} + int{wants.xxh3} + int{wants.copy_to != nullptr};
  // With one reader there is nothing to share through the cache.
  constexpr size_t kChunkBytes = size_t{32} << 10;
  const size_t step = readers > 1 ? kChunkBytes : bytes;
  for (size_t at = 0; at < bytes; at += step) {
    const size_t size = std::min(step, bytes - at);
    consumers.Take({view.data + at, size}, size == bytes);
  }
  return consumers.Finish();
}

}  // namespace plumbline::kernels
