#include "kernels/tensor_scan.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

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

// The content digest of elements that arrive in pieces (ScanWants::content).
class ContentHash {
 public:
  explicit ContentHash(size_t block_bytes) : block_bytes_(block_bytes) {}

  void Update(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      if (filled_ == block_bytes_) EndBlock();
      const size_t part = std::min(bytes.size(), block_bytes_ - filled_);
      block_.Update(bytes.first(part));
      filled_ += part;
      bytes = bytes.subspan(part);
    }
  }
  // Adds a block hashed elsewhere. Requires: no Update() before.
  void AddBlock(const Digest128& digest) { blocks_.Update(BytesOf(digest)); }

  [[nodiscard]] Digest128 Finish() {
    if (!has_blocks_) return block_.Finish();
    EndBlock();
    return blocks_.Finish();
  }
  [[nodiscard]] Digest128 FinishBlocks() const { return blocks_.Finish(); }

 private:
  static std::span<const std::byte> BytesOf(const Digest128& digest) {
    return std::as_bytes(std::span(&digest, 1));
  }
  void EndBlock() {
    const Digest128 digest = block_.Finish();
    AddBlock(digest);
    block_.Reset();
    filled_ = 0;
    has_blocks_ = true;
  }

  size_t block_bytes_;
  size_t filled_ = 0;
  bool has_blocks_ = false;
  Xxh3 block_;
  Xxh3 blocks_;
};

// The consumers of chunks for one call.
class Consumers {
 public:
  // `first`: number of the first element they will take.
  Consumers(DType dtype, const ScanWants& wants, size_t first)
      : dtype_(dtype), wants_(wants), digested_(first * InfoOf(dtype).size_bytes) {
    if (wants.content) content_.emplace(kBlockElements * InfoOf(dtype).size_bytes);
    above_.resize(wants.bounds.size());
  }

  void Take(std::span<const std::byte> chunk) {
    if (wants_.moments) {
      UpdateMoments(ActiveTable(), dtype_, chunk.data(), chunk.size() / InfoOf(dtype_).size_bytes,
                    &moments_);
    }
    if (wants_.crc32) {
      const bool widen = wants_.crc_of_float32 && dtype_ == DType::kBFloat16;
      crc32_ = widen ? Crc32OfWidened(chunk, crc32_) : Crc32(chunk, crc32_);
    }
    if (wants_.xor_words) {
      xor_words_ = XorCombine(xor_words_, XorOfWords(chunk), xored_);
      xored_ += chunk.size();
    }
    if (wants_.position_digest) {
      const size_t word = std::min<size_t>(InfoOf(dtype_).size_bytes, 8);
      AddToPositionDigest(chunk, word, digested_ / word, &position_digest_);
      digested_ += chunk.size();
    }
    if (content_) content_->Update(chunk);
    if (wants_.below) {
      below_ += ActiveTable().count_below(dtype_, chunk.data(),
                                          chunk.size() / InfoOf(dtype_).size_bytes, *wants_.below);
    }
    if (wants_.signs != nullptr || !above_.empty()) TakeGradient(chunk);
    if (wants_.copy_to != nullptr) {
      std::memcpy(wants_.copy_to + copied_, chunk.data(), chunk.size());
      copied_ += chunk.size();
    }
  }

  [[nodiscard]] TensorScan Finish() {
    TensorScan scan;
    if (wants_.moments) scan.moments = FinishMoments(moments_);
    scan.crc32 = crc32_;
    scan.xor_words = xor_words_;
    scan.position_digest = position_digest_;
    if (content_) scan.content = content_->Finish();
    scan.below = below_;
    scan.above = std::move(above_);
    return scan;
  }

 private:
  void TakeGradient(std::span<const std::byte> chunk) {
    const size_t count = chunk.size() / InfoOf(dtype_).size_bytes;
    uint8_t* const signs = wants_.signs == nullptr ? nullptr : wants_.signs + signed_ / 8;
    ActiveTable().gradient_part({dtype_, chunk.data(), count},
                                {wants_.bounds.data(), above_.size()}, above_.data(), signs);
    signed_ += count;
  }

  DType dtype_;
  const ScanWants& wants_;
  MomentsState moments_;
  uint32_t crc32_ = 0;
  uint64_t xor_words_ = 0;
  uint64_t xored_ = 0;  // bytes
  Digest128 position_digest_;
  size_t digested_;  // bytes before the next element
  std::optional<ContentHash> content_;
  uint64_t below_ = 0;
  size_t copied_ = 0;
  std::vector<uint64_t> above_;
  size_t signed_ = 0;  // elements whose signs are there
};

void FeedContiguous(std::span<const std::byte> bytes, int readers, Consumers* consumers) {
  // With one reader there is nothing to share through the cache.
  constexpr size_t kChunkBytes = size_t{32} << 10;
  const size_t step = readers > 1 ? kChunkBytes : bytes.size();
  while (!bytes.empty()) {
    const std::span<const std::byte> chunk = bytes.first(std::min(step, bytes.size()));
    consumers->Take(chunk);
    bytes = bytes.subspan(chunk.size());
  }
}

int ReadersOf(const ScanWants& wants) {
  return int{wants.moments} + int{wants.crc32} + int{wants.xor_words} + int{wants.content} +
         int{wants.position_digest} + int{wants.below.has_value()} + int{wants.copy_to != nullptr} +
         int{wants.signs != nullptr || !wants.bounds.empty()};
}

// Elements `first` to `first + count` of a view that is not contiguous. Kept out of line: the
// scratch memory on the stack costs a probe per page.
[[gnu::noinline]] void FeedGathered(const TensorView& view, size_t first, size_t count,
                                    Consumers* consumers) {
  alignas(64) std::byte scratch[size_t{64} << 10];
  BlockGather gather(view, scratch);
  gather.Select(first, count);
  for (auto chunk = gather.Next(); !chunk.empty(); chunk = gather.Next()) consumers->Take(chunk);
}

// Elements `first` to `first + count` of any view.
void Feed(const TensorView& view, size_t first, size_t count, int readers, Consumers* consumers) {
  if (count == 0) return;
  if (!view.is_contiguous()) return FeedGathered(view, first, count, consumers);
  const size_t element = InfoOf(view.dtype).size_bytes;
  FeedContiguous({view.data + first * element, count * element}, readers, consumers);
}

// A scan shared out by blocks: worker w takes every block of its range, whole.
class SharedScan {
 public:
  SharedScan(const TensorView& view, const ScanWants& wants)
      : view_(view),
        wants_(wants),
        elements_(static_cast<size_t>(view.element_count())),
        element_bytes_(InfoOf(view.dtype).size_bytes),
        blocks_((elements_ + kBlockElements - 1) / kBlockElements) {}

  TensorScan Run() {
    wants_.team->run(wants_.team->size, &SharedScan::Work, this);
    TensorScan scan = blocks_[0];
    const size_t crc_scale = wants_.crc_of_float32 && view_.dtype == DType::kBFloat16 ? 2 : 1;
    ContentHash content(kBlockElements * element_bytes_);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (wants_.content) content.AddBlock(blocks_[i].content);
      if (i == 0) continue;
      if (wants_.moments) scan.moments = Combine(scan.moments, blocks_[i].moments);
      scan.xor_words ^= blocks_[i].xor_words;  // blocks are whole words
      scan.position_digest.low += blocks_[i].position_digest.low;
      scan.position_digest.high += blocks_[i].position_digest.high;
      scan.below += blocks_[i].below;
      for (size_t b = 0; b < scan.above.size(); ++b) scan.above[b] += blocks_[i].above[b];
      if (wants_.crc32) {
        scan.crc32 =
            Crc32Combine(scan.crc32, blocks_[i].crc32, CountOf(i) * element_bytes_ * crc_scale);
      }
    }
    if (wants_.content) scan.content = content.FinishBlocks();
    return scan;
  }

 private:
  static void Work(void* self, int worker) { static_cast<SharedScan*>(self)->Share(worker); }

  void Share(int worker) {
    const DefaultFloatMode mode;
    const auto size = static_cast<size_t>(wants_.team->size);
    const auto index = static_cast<size_t>(worker);
    const size_t end = blocks_.size() * (index + 1) / size;
    for (size_t i = blocks_.size() * index / size; i < end; ++i) {
      ScanWants wants = wants_;
      if (wants.copy_to != nullptr) wants.copy_to += i * kBlockElements * element_bytes_;
      if (wants.signs != nullptr) wants.signs += i * kBlockElements / 8;
      Consumers consumers(view_.dtype, wants, i * kBlockElements);
      Feed(view_, i * kBlockElements, CountOf(i), ReadersOf(wants), &consumers);
      blocks_[i] = consumers.Finish();
    }
  }

  [[nodiscard]] size_t CountOf(size_t i) const {
    return std::min(kBlockElements, elements_ - i * kBlockElements);
  }

  const TensorView& view_;
  const ScanWants& wants_;
  size_t elements_;
  size_t element_bytes_;
  std::vector<TensorScan> blocks_;
};

}  // namespace

TensorScan ScanTensor(const TensorView& view, const ScanWants& wants) {
  const DefaultFloatMode mode;
  const auto elements = static_cast<size_t>(view.element_count());
  if (wants.team != nullptr && wants.team->size > 1 && elements > kBlockElements) {
    return SharedScan(view, wants).Run();
  }
  Consumers consumers(view.dtype, wants, 0);
  Feed(view, 0, elements, ReadersOf(wants), &consumers);
  return consumers.Finish();
}

}  // namespace plumbline::kernels
