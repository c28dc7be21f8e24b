#include "kernels/output_sums.h"

#include <algorithm>
#include <vector>

#include "base/process/parallel.h"

namespace plumbline::kernels {
namespace {

// Blocks that one task takes: 4 MiB of float32, long against starting a task.
constexpr size_t kBlocksPerTask = 16;

}  // namespace

OutputSums OutputBlock(const KernelTable& table, const OutputRule& rule, const OutputRuns& runs) {
  OutputSums sums;
  table.output_block(rule, runs, &sums);
  return sums;
}

OutputSums Combine(const OutputSums& first, const OutputSums& second) {
  OutputSums sums = first;
  sums.count += second.count;
  sums.any_not_finite += second.any_not_finite;
  sums.dot += second.dot;
  sums.bench_squares += second.bench_squares;
  sums.device_squares += second.device_squares;
  sums.bench_max = std::max(first.bench_max, second.bench_max);
  sums.device_max = std::max(first.device_max, second.device_max);
  sums.error_max = std::max(first.error_max, second.error_max);
  sums.error_nan += second.error_nan;
  for (size_t k = 0; k < std::size(sums.below); ++k) sums.below[k] += second.below[k];
  sums.mismatches += second.mismatches;
  sums.not_finite += second.not_finite;
  sums.not_finite_bad += second.not_finite_bad;
  sums.normal += second.normal;
  sums.small += second.small;
  sums.rel_bad += second.rel_bad;
  sums.small_bad += second.small_bad;
  sums.rel_sum += second.rel_sum;
  sums.rel_max = std::max(first.rel_max, second.rel_max);
  sums.error_squares += second.error_squares;
  sums.above += second.above;
  sums.beneath += second.beneath;
  sums.ulp_sum += second.ulp_sum;
  sums.ulp_max = std::max(first.ulp_max, second.ulp_max);
  sums.ulp_nan += second.ulp_nan;
  sums.ulp_counted += second.ulp_counted;
  sums.ulp_of_zero += second.ulp_of_zero;
  return sums;
}

OutputSums OutputSumsOf(const KernelTable& table, const OutputRule& rule, const OutputRuns& runs) {
  const size_t bench_bytes = InfoOf(rule.bench_dtype).size_bytes;
  const size_t device_bytes = InfoOf(rule.device_dtype).size_bytes;
  const auto* bench = static_cast<const std::byte*>(runs.bench);
  const auto* device = static_cast<const std::byte*>(runs.device);
  const size_t blocks = (runs.count + kBlockElements - 1) / kBlockElements;
  const auto block = [&](size_t k) {
    const size_t begin = k * kBlockElements;
    const size_t count = std::min(kBlockElements, runs.count - begin);
    return OutputBlock(table, rule,
                       {bench + begin * bench_bytes, device + begin * device_bytes, count});
  };
  if (blocks == 1) return block(0);
  // Every block on its own, then all in index order: no sum depends on who took which.
  std::vector<OutputSums> parts(blocks);
  ParallelBlocks(blocks, kBlocksPerTask, [&](size_t begin, size_t end) {
    for (size_t k = begin; k < end; ++k) parts[k] = block(k);
  });
  OutputSums sums;
  for (const OutputSums& part : parts) sums = Combine(sums, part);
  return sums;
}

}  // namespace plumbline::kernels
