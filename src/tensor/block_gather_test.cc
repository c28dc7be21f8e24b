#include "tensor/block_gather.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace plumbline {
namespace {

struct Case {
  Shape sizes;
  std::vector<int64_t> strides;  // in elements
  int64_t offset = 0;            // of element (0, 0, ...)
};

// Elements in row-major order, by index arithmetic.
std::vector<std::byte> Reference(const TensorView& view) {
  const size_t size = InfoOf(view.dtype).size_bytes;
  std::vector<std::byte> out;
  std::vector<int64_t> index(view.sizes.size());
  for (int64_t n = view.element_count(); n > 0; --n) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * view.strides[d];
    const std::byte* element = view.data + at * static_cast<int64_t>(size);
    out.insert(out.end(), element, element + size);
    for (size_t d = index.size(); d-- > 0 && ++index[d] == view.sizes[d];) index[d] = 0;
  }
  return out;
}

const std::vector<std::byte>& Memory() {
  static const std::vector<std::byte> memory = [] {
    std::vector<std::byte> bytes(size_t{4} << 20);
    std::mt19937 random(1);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    return bytes;
  }();
  return memory;
}

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {{}, {}},
      {{1}, {7}},
      {{5000}, {1}},
      {{5000}, {2}},
      {{5000}, {-1}, 4999},
      {{5000}, {0}},
      {{300, 200}, {200, 1}},
      {{300, 200}, {1, 300}},                   // transposed
      {{3, 4000}, {1, 3}},                      // transposed, few long rows
      {{4000, 3}, {1, 4000}},                   // transposed, many short rows
      {{300, 200}, {-200, -1}, 59999},          // both flipped
      {{100, 70}, {256, 1}},                    // rows with gaps
      {{17, 19, 23}, {23, 391, 1}},             // outer two swapped
      {{17, 19, 23}, {1, 17, 323}},             // reversed
      {{2, 64, 30, 30}, {57600, 1, 1920, 64}},  // channels last
      {{2, 8, 128, 64}, {65536, 64, 512, 1}},   // attention heads
      {{2, 8, 64, 128}, {65536, 64, 1, 512}},   // the same, keys transposed
      {{10, 50, 20}, {0, 20, 1}},               // expanded
      {{50, 20, 10}, {20, 1, 0}},               // expanded inside
      {{1, 300, 1, 20}, {9, 20, 7, 1}},         // sizes of one
      {{2, 2, 2, 2, 2, 2, 2}, {1, 2, 4, 8, 16, 32, 64}},
      {{4, 0, 3}, {3, 3, 1}},
  };
  return cases;
}

TensorView ViewOf(const Case& c, DType dtype) {
  const auto size = static_cast<int64_t>(InfoOf(dtype).size_bytes);
  return {dtype, Memory().data() + c.offset * size, c.sizes, c.strides};
}

constexpr DType kOneOfEachSize[] = {DType::kInt8, DType::kBFloat16, DType::kFloat32,
                                    DType::kFloat64, DType::kComplex128};

// The elements that the walk still has to yield.
std::vector<std::byte> Rest(BlockGather& gather) {
  std::vector<std::byte> all;
  for (auto chunk = gather.Next(); !chunk.empty(); chunk = gather.Next()) {
    all.insert(all.end(), chunk.begin(), chunk.end());
  }
  return all;
}

TEST(BlockGather, ChunksHoldTheElementsInRowMajorOrder) {
  for (const size_t scratch_bytes : {BlockGather::kMinScratchBytes, size_t{64} << 10}) {
    std::vector<std::byte> scratch(scratch_bytes);
    for (const Case& c : Cases()) {
      for (const DType dtype : kOneOfEachSize) {
        const TensorView view = ViewOf(c, dtype);
        BlockGather gather(view, scratch);
        ASSERT_EQ(Rest(gather), Reference(view))
            << testing::PrintToString(c.sizes) << " " << testing::PrintToString(c.strides);
      }
    }
  }
}

TEST(BlockGather, SelectWalksAPartOnly) {
  std::vector<std::byte> scratch(BlockGather::kMinScratchBytes);
  const auto check = [&](const TensorView& view, size_t first, size_t count) {
    const std::vector<std::byte> all = Reference(view);
    const size_t element = InfoOf(view.dtype).size_bytes;
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first * element);
    BlockGather gather(view, scratch);
    gather.Select(first, count);
    ASSERT_EQ(Rest(gather),
              std::vector<std::byte>(begin, begin + static_cast<std::ptrdiff_t>(count * element)))
        << testing::PrintToString(view.sizes) << " from " << first;
  };
  for (const Case& c : Cases()) {
    for (const DType dtype : kOneOfEachSize) {
      const TensorView view = ViewOf(c, dtype);
      const auto count = static_cast<size_t>(view.element_count());
      check(view, 0, count);
      check(view, count / 3, count / 2);
      check(view, count - std::min<size_t>(count, 1), std::min<size_t>(count, 1));
    }
  }
}

TEST(BlockGather, EveryChunkButTheLastHasTheSameLength) {
  std::vector<std::byte> scratch(size_t{20} << 10);
  for (const Case& c : Cases()) {
    for (const DType dtype : kOneOfEachSize) {
      BlockGather gather(ViewOf(c, dtype), scratch);
      std::vector<size_t> lengths;
      for (auto chunk = gather.Next(); !chunk.empty(); chunk = gather.Next()) {
        lengths.push_back(chunk.size() / InfoOf(dtype).size_bytes);
      }
      for (size_t i = 0; i + 1 < lengths.size(); ++i) {
        ASSERT_EQ(lengths[i], lengths[0]);
        ASSERT_EQ(lengths[i] % 1024, 0u);
      }
    }
  }
}

TEST(BlockGather, ContiguousChunksPointIntoTheTensor) {
  const Case c = {{100, 100}, {100, 1}};
  const TensorView view = ViewOf(c, DType::kFloat32);
  BlockGather gather(view, {});
  EXPECT_EQ(gather.Next().data(), view.data);
}

TEST(CopyContiguous, EqualsTheReferenceForEveryStride) {
  for (const Case& c : Cases()) {
    for (const DType dtype : kOneOfEachSize) {
      const TensorView view = ViewOf(c, dtype);
      std::vector<std::byte> out(view.size_bytes());
      CopyContiguous(view, out);
      ASSERT_EQ(out, Reference(view)) << testing::PrintToString(c.sizes);
    }
  }
}

}  // namespace
}  // namespace plumbline
