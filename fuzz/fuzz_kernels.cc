// Any bytes as two tensors of any dtype and strides: every CPU target must give the same results,
// chunked or whole, and nothing may read outside the input.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/tensor_scan.h"

namespace {

using namespace plumbline;           // NOLINT: a fuzz target is one file
using namespace plumbline::kernels;  // NOLINT

void Check(bool good) {
  if (!good) std::abort();
}

bool Same(double a, double b) { return a == b || (a != a && b != b); }

void CheckPair(DType target, DType golden, const uint8_t* data, size_t size) {
  const size_t half = size / 2;
  const size_t count = std::min(half / InfoOf(target).size_bytes, half / InfoOf(golden).size_bytes);
  const PairOfRuns runs = {target, data, golden, data + half, count};
  PairwiseState first;
  UpdatePairwise(TableFor(CpuTarget::kBaseline), runs, &first);
  const Pairwise expected = FinishPairwise(first);
  for (const CpuTarget cpu : UsableTargets()) {
    PairwiseState state;
    UpdatePairwise(TableFor(cpu), runs, &state);
    const Pairwise p = FinishPairwise(state);
    Check(p.count == count && p.mismatch_count == expected.mismatch_count);
    Check(Same(p.dot, expected.dot) && Same(p.max_abs, expected.max_abs));
    Check(Same(p.max_rel, expected.max_rel) && p.max_ulp == expected.max_ulp);
    Check(Same(p.difference_squares, expected.difference_squares));
  }
}

void CheckStrided(DType dtype, const uint8_t* data, size_t size, uint8_t shape) {
  const auto count = static_cast<int64_t>(size / InfoOf(dtype).size_bytes);
  const int64_t columns = 1 + shape % 16;
  const int64_t rows = count / columns;
  if (rows == 0) return;
  const Shape sizes = {columns, rows};
  const std::vector<int64_t> strides = {1, columns};  // transposed
  const TensorView view = {dtype, reinterpret_cast<const std::byte*>(data), sizes, strides};
  const auto copy = Tensor::Copy(view);
  Check(copy.has_value());
  const ScanWants wants = {.crc32 = true, .xor_words = true, .content = true};
  const TensorScan a = ScanTensor(view, wants);
  const TensorScan b = ScanTensor(copy->view(), wants);
  Check(a.crc32 == b.crc32 && a.xor_words == b.xor_words);
  Check(a.content.low == b.content.low && a.content.high == b.content.high);
  Check(Same(a.moments.sum, b.moments.sum) && Same(a.moments.max, b.moments.max));
  Check(Same(a.moments.sum_squares, b.moments.sum_squares));
  Check(a.moments.nan_count == b.moments.nan_count);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const auto target = static_cast<DType>(data[0] % kDTypeCount);
  const auto golden = static_cast<DType>(data[1] % kDTypeCount);
  CheckPair(target, golden, data + 3, size - 3);
  CheckStrided(target, data + 3, size - 3, data[2]);
  return 0;
}
