#include "watch/live/sample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "base/memory/digest.h"
#include "kernels/kernel_table.h"
#include "tensor/block_gather.h"

namespace plumbline::watch {
namespace {

constexpr size_t kRun = 512, kRuns = 8;
constexpr uint64_t kDigestMask = (uint64_t{1} << 29) - 1;

// Feeds elements `first` to `first + count` to `take`.
template <class Take>
void VisitRun(const TensorView& view, size_t first, size_t count, const Take& take) {
  const size_t element = InfoOf(view.dtype).size_bytes;
  if (view.is_contiguous()) return take(std::span(view.data + first * element, count * element));
  alignas(64) std::byte scratch[BlockGather::kMinScratchBytes];
  BlockGather gather(view, scratch);
  gather.Select(first, count);
  for (auto chunk = gather.Next(); !chunk.empty(); chunk = gather.Next()) take(chunk);
}

}  // namespace

TensorValues MeasureSample(const TensorView& view, uint64_t turn) {
  const auto elements = static_cast<size_t>(view.element_count());
  const size_t element_bytes = InfoOf(view.dtype).size_bytes;
  kernels::MomentsState state;
  Xxh3 digest;
  const auto take = [&](std::span<const std::byte> bytes) {
    kernels::UpdateMoments(kernels::ActiveTable(), view.dtype, bytes.data(),
                           bytes.size() / element_bytes, &state);
    digest.Update(bytes);
  };
  const bool is_whole = elements <= kRun * kRuns;
  if (is_whole && elements > 0) VisitRun(view, 0, elements, take);
  for (size_t run = 0; !is_whole && run < kRuns; ++run) {
    VisitRun(view, run * (elements - kRun) / (kRuns - 1), kRun, take);
  }
  kernels::TensorScan scan;
  scan.moments = kernels::FinishMoments(state);
  scan.below = scan.moments.zero_count;
  TensorValues values = ValuesOf(view, scan);
  values.of(Op::kDigest) = static_cast<double>(digest.Finish().low & kDigestMask);
  if (is_whole) return values;
  values.of(Op::kNorm) *= std::sqrt(static_cast<double>(elements) / (kRun * kRuns));
  kernels::MomentsState elsewhere;
  VisitRun(view, turn * kRun % (elements - kRun), kRun, [&](std::span<const std::byte> bytes) {
    kernels::UpdateMoments(kernels::ActiveTable(), view.dtype, bytes.data(),
                           bytes.size() / element_bytes, &elsewhere);
  });
  const kernels::Moments found = kernels::FinishMoments(elsewhere);
  values.of(Op::kNans) += static_cast<double>(found.nan_count);
  values.of(Op::kInfs) += static_cast<double>(found.inf_count);
  return values;
}

}  // namespace plumbline::watch
