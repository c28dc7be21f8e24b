#include "kernels/tensor_scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "kernels/inputs_for_test.h"
#include "kernels/reference_for_test.h"
#include "tensor/element_value.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace plumbline::kernels {
namespace {

struct StridedCase {
  Shape sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;
};

const StridedCase kStrided[] = {
    {{300, 200}, {1, 300}},
    {{70000}, {2}},
    {{70000}, {-1}, 69999},
    {{4, 64, 20, 20}, {25600, 1, 1280, 64}},
    {{40, 1000}, {0, 1}},
    {{3, 5}, {1, 3}},
    {{2, 8, 128, 64}, {65536, 64, 512, 1}},
};

std::string Difference(const TensorScan& a, const TensorScan& b) {
  if (a.crc32 != b.crc32) return "crc32";
  if (a.xor_words != b.xor_words) return "xor";
  if (a.content != b.content) return "content";
  return kernels::Difference(a.moments, b.moments);
}

// The digest rule of ScanWants::content, spelled out.
Digest128 ContentOf(std::span<const std::byte> bytes, DType dtype) {
  const size_t block = kBlockElements * InfoOf(dtype).size_bytes;
  if (bytes.size() <= block) return Xxh3Of(bytes);
  std::vector<Digest128> digests;
  for (size_t at = 0; at < bytes.size(); at += block) {
    digests.push_back(Xxh3Of(bytes.subspan(at, std::min(block, bytes.size() - at))));
  }
  return Xxh3Of(std::as_bytes(std::span(digests)));
}

void RunOnThreads(int size, void (*body)(void* data, int worker), void* data) {
  std::vector<std::jthread> threads;
  for (int worker = 0; worker < size; ++worker) threads.emplace_back(body, data, worker);
}

TEST(ScanTensor, TeamsOfAnySizeGiveTheSameResult) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kInt64, DType::kBool,
                            DType::kComplex128, DType::kFloat8E4M3FN}) {
    for (const size_t count : {kBlockElements, kBlockElements + 1, 3 * kBlockElements + 77}) {
      const auto memory = MakeInput(dtype, count, Fill::kFewSpecials, 3);
      const Shape sizes = {static_cast<int64_t>(count)};
      const std::vector<int64_t> strides = {1};
      const TensorView view = {dtype, memory.data(), sizes, strides};
      std::vector<std::byte> alone_copy(view.size_bytes());
      ScanWants wants = {.crc32 = true,
                         .crc_of_float32 = true,
                         .xor_words = true,
                         .content = true,
                         .copy_to = alone_copy.data()};
      const TensorScan alone = ScanTensor(view, wants);
      for (const int size : {2, 7}) {
        std::vector<std::byte> team_copy(view.size_bytes());
        const Team team = {size, RunOnThreads};
        wants.team = &team;
        wants.copy_to = team_copy.data();
        EXPECT_EQ(Difference(ScanTensor(view, wants), alone), "") << InfoOf(dtype).name;
        EXPECT_EQ(team_copy, alone_copy);
      }
    }
  }
}

// Signs and counts by single elements.
void ExpectGradientOf(const TensorView& view, const Team* team) {
  const double bounds[] = {-1.5, 0, 1, 1};
  const auto count = static_cast<size_t>(view.element_count());
  std::vector<uint8_t> signs((count + 7) / 8, 0xFF);
  const TensorScan scan =
      ScanTensor(view, {.bounds = bounds, .signs = signs.data(), .team = team});
  const auto copy = Tensor::Copy(view);
  ASSERT_TRUE(copy);
  uint64_t above[4] = {};
  for (size_t i = 0; i < count; ++i) {
    const double x = ElementAsDouble(view.dtype,
                                     copy->view().data + i * InfoOf(view.dtype).size_bytes);
    for (size_t b = 0; b < 4; ++b) above[b] += x > bounds[b] ? 1 : 0;
    ASSERT_EQ(signs[i / 8] >> (i % 8) & 1, x > 0 ? 1 : 0) << InfoOf(view.dtype).name << " " << i;
  }
  if (count % 8 != 0) {
    EXPECT_EQ(signs.back() >> (count % 8), 0);
  }
  ASSERT_EQ(scan.above, std::vector<uint64_t>(above, above + 4)) << InfoOf(view.dtype).name;
}

TEST(ScanTensor, SignsAndCountsAboveBoundsAreThoseOfTheElements) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kFloat64,
                            DType::kInt64, DType::kFloat8E5M2}) {
    for (const size_t count : {0UL, 1UL, 7UL, 8UL, 15UL, 16UL, 33UL, 2047UL, 150000UL}) {
      const auto memory = MakeInput(dtype, count, Fill::kFewSpecials, 5);
      const Shape sizes = {static_cast<int64_t>(count)};
      const std::vector<int64_t> strides = {1};
      ExpectGradientOf({dtype, memory.data(), sizes, strides}, nullptr);
    }
    const auto memory = MakeInput(dtype, 150000, Fill::kFewSpecials, 3);
    const Team team = {3, RunOnThreads};
    for (const StridedCase& c : kStrided) {
      const auto* data = memory.data() + c.offset * InfoOf(dtype).size_bytes;
      ExpectGradientOf({dtype, data, c.sizes, c.strides}, nullptr);
      ExpectGradientOf({dtype, data, c.sizes, c.strides}, &team);
    }
  }
}

TEST(ScanTensor, SignsAndCountsAreTheSameOnEveryCpuTarget) {
  const double bounds[] = {-1, 0.25};
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat64}) {
    for (const size_t count : {5UL, 67UL, 4099UL}) {
      const auto memory = MakeInput(dtype, count, Fill::kFewSpecials, 9);
      const auto with = [&](CpuTarget target) {
        std::vector<uint64_t> found(2 + (count + 7) / 8);
        std::vector<uint8_t> signs((count + 7) / 8);
        TableFor(target).gradient_part({dtype, memory.data(), count}, {bounds, 2}, found.data(),
                                       signs.data());
        std::copy(signs.begin(), signs.end(), found.begin() + 2);
        return found;
      };
      for (const CpuTarget target : UsableTargets()) {
        EXPECT_EQ(with(target), with(CpuTarget::kBaseline)) << InfoOf(dtype).name << " " << count;
      }
    }
  }
}

TEST(ScanTensor, StridedViewEqualsItsContiguousCopy) {
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    const auto memory = MakeInput(dtype, 150000, Fill::kFewSpecials, 3);
    for (const StridedCase& c : kStrided) {
      const TensorView view = {dtype, memory.data() + c.offset * InfoOf(dtype).size_bytes, c.sizes,
                               c.strides};
      const auto copy = Tensor::Copy(view);
      ASSERT_TRUE(copy);
      std::vector<std::byte> out(view.size_bytes());
      const ScanWants wants = {.crc32 = true,
                               .crc_of_float32 = true,
                               .xor_words = true,
                               .content = true,
                               .copy_to = out.data()};
      const TensorScan strided = ScanTensor(view, wants);
      const std::span<const std::byte> contiguous(copy->view().data, out.size());
      ASSERT_TRUE(std::equal(out.begin(), out.end(), contiguous.begin()));
      ASSERT_EQ(Difference(strided, ScanTensor(copy->view(), wants)), "") << InfoOf(dtype).name;
      ASSERT_EQ(strided.content, ContentOf(contiguous, dtype));
      const Team team = {3, RunOnThreads};
      ScanWants shared = wants;
      shared.team = &team;
      std::ranges::fill(out, std::byte{0});
      ASSERT_EQ(Difference(ScanTensor(view, shared), strided), "") << InfoOf(dtype).name;
      ASSERT_TRUE(std::equal(out.begin(), out.end(), contiguous.begin()));
      if (dtype != DType::kBFloat16) {
        ASSERT_EQ(strided.crc32, Crc32(contiguous));
      }
      ASSERT_EQ(kernels::Difference(strided.moments,
                                    ReferenceMoments(dtype, contiguous.data(),
                                                     static_cast<size_t>(view.element_count()))),
                "")
          << InfoOf(dtype).name;
    }
  }
}

TEST(ScanTensor, WantsDoNotInfluenceEachOther) {
  const auto memory = MakeInput(DType::kFloat32, 100000, Fill::kModerate, 3);
  const Shape sizes = {100000};
  const std::vector<int64_t> strides = {1};
  const TensorView view = {DType::kFloat32, memory.data(), sizes, strides};
  const TensorScan all = ScanTensor(view, {.crc32 = true, .xor_words = true, .content = true});
  EXPECT_EQ(kernels::Difference(ScanTensor(view, {}).moments, all.moments), "");
  EXPECT_EQ(ScanTensor(view, {.moments = false, .crc32 = true}).crc32, all.crc32);
  EXPECT_EQ(ScanTensor(view, {.moments = false, .content = true}).content, all.content);
}

// Upstream 1.2.2: bfloat16 0..5 has the checksum of float32 0..5; its newest release takes the
// bytes themselves.
TEST(ScanTensor, BFloat16ChecksumByEitherRule) {
  std::vector<uint16_t> range;
  for (int i = 0; i < 6; ++i) {
    range.push_back(static_cast<uint16_t>(FloatToNarrow(kBFloat16Format, static_cast<float>(i))));
  }
  const Shape sizes = {2, 3};
  const std::vector<int64_t> strides = {3, 1};
  const TensorView view = {DType::kBFloat16, std::as_bytes(std::span(range)).data(), sizes,
                           strides};
  EXPECT_EQ(Crc32Hex(ScanTensor(view, {.crc32 = true, .crc_of_float32 = true}).crc32), "91e79017");
  EXPECT_EQ(Crc32Hex(ScanTensor(view, {.crc32 = true}).crc32), "3ae021b3");
}

TEST(ScanTensor, Float16ChecksumIsOfItsOwnBytes) {
  const uint16_t pair[] = {0x3C00, 0x4000};
  const Shape sizes = {2};
  const std::vector<int64_t> strides = {1};
  const TensorView view = {DType::kFloat16, std::as_bytes(std::span(pair)).data(), sizes, strides};
  EXPECT_EQ(Crc32Hex(ScanTensor(view, {.crc32 = true, .crc_of_float32 = true}).crc32), "7ae98278");
}

TEST(ScanTensor, EmptyTensorHasZeroCountAndZeroChecksum) {
  const Shape sizes = {0, 3};
  const std::vector<int64_t> strides = {3, 1};
  const TensorScan scan = ScanTensor({DType::kFloat32, nullptr, sizes, strides},
                                     {.crc32 = true, .xor_words = true, .content = true});
  EXPECT_EQ(scan.moments.count, 0u);
  EXPECT_EQ(scan.crc32, 0u);
  EXPECT_EQ(scan.content, Xxh3Of({}));
}

TEST(ScanTensor, ZeroDimensionalTensorHasOneElement) {
  const float value = -2.5f;
  const TensorScan scan = ScanTensor(
      {DType::kFloat32, std::as_bytes(std::span(&value, 1)).data(), {}, {}}, {.crc32 = true});
  EXPECT_EQ(scan.moments.count, 1u);
  EXPECT_EQ(scan.moments.max, -2.5);
  EXPECT_EQ(scan.moments.sum_squares, 6.25);
}

#if defined(__x86_64__)
TEST(ScanTensor, CountsElementsBelowABound) {
  const std::vector<float> values = {0.0F, -0.0F, 1e-9F, -1e-9F, 1e-8F, -2e-8F, 1.0F, NAN, INFINITY};
  std::vector<float> many;
  for (size_t i = 0; i < 100'003; ++i) many.push_back(values[i % values.size()]);
  const int64_t size = static_cast<int64_t>(many.size());
  const int64_t stride = 1;
  const TensorView view{DType::kFloat32, reinterpret_cast<const std::byte*>(many.data()),
                        {&size, 1}, {&stride, 1}};
  const auto below = static_cast<uint64_t>(
      std::ranges::count_if(many, [](float x) { return std::abs(x) < 1e-8F; }));
  const Team team{3, RunOnThreads};
  for (const Team* shared : {static_cast<const Team*>(nullptr), &team}) {
    ScanWants wants;
    wants.below = 1e-8;
    wants.team = shared;
    const TensorScan scan = ScanTensor(view, wants);
    EXPECT_EQ(scan.below, below);
    EXPECT_EQ(scan.moments.count, many.size());
  }
}

TEST(ScanTensor, CountsBelowABoundInEveryDtypeAsOneByOne) {
  for (const DType dtype : {DType::kBool, DType::kInt8, DType::kUInt16, DType::kInt32,
                            DType::kInt64, DType::kFloat32, DType::kFloat64, DType::kFloat16,
                            DType::kBFloat16, DType::kFloat8E5M2, DType::kComplex64,
                            DType::kComplex128}) {
    const auto memory = MakeInput(dtype, 5003, Fill::kFewSpecials, 7);
    std::vector<double> magnitudes(5003);
    for (size_t i = 0; i < magnitudes.size(); ++i) {
      const Moments one = MomentsOf(dtype, memory.data() + i * InfoOf(dtype).size_bytes, 1);
      magnitudes[i] = one.nan_count > 0 ? NAN : std::sqrt(one.sum_squares);
    }
    for (const double bound : {0.0, 0.5, 3.0}) {
      uint64_t below = 0;
      for (const double x : magnitudes) below += x < bound ? 1 : 0;
      EXPECT_EQ(ActiveTable().count_below(dtype, memory.data(), 5003, bound), below)
          << InfoOf(dtype).name << " " << bound;
    }
  }
}

TEST(ScanTensor, FlushToZeroOfTheApplicationChangesNothingAndIsKept) {
  const auto memory = MakeInput(DType::kFloat32, 1000, Fill::kTiny, 3);
  const Shape sizes = {1000};
  const std::vector<int64_t> strides = {1};
  const TensorView view = {DType::kFloat32, memory.data(), sizes, strides};
  const TensorScan expected = ScanTensor(view, {});
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040);
  const TensorScan flushed = ScanTensor(view, {});
  const unsigned after = _mm_getcsr();
  _mm_setcsr(saved);
  EXPECT_EQ(Difference(flushed, expected), "");
  EXPECT_EQ(after, saved | 0x8040);
}
#endif

TEST(ScanTensor, SevenThreadsGiveTheSameResult) {
  const auto memory = MakeInput(DType::kBFloat16, 200000, Fill::kModerate, 3);
  const Shape sizes = {400, 500};
  const std::vector<int64_t> strides = {1, 400};
  const TensorView view = {DType::kBFloat16, memory.data(), sizes, strides};
  const ScanWants wants = {.crc32 = true, .xor_words = true, .content = true};
  const TensorScan expected = ScanTensor(view, wants);
  std::vector<TensorScan> results(7);
  {
    std::vector<std::jthread> threads;
    for (TensorScan& result : results) {
      threads.emplace_back([&view, &wants, &result] { result = ScanTensor(view, wants); });
    }
  }
  for (const TensorScan& result : results) EXPECT_EQ(Difference(result, expected), "");
}

TEST(TensorScan, PositionDigestOfEveryLayoutAndTeam) {
  std::vector<float> values(300000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.37F;
  std::vector<float> turned(values.size());
  for (size_t i = 0; i < values.size(); ++i) turned[(i % 300) * 1000 + i / 300] = values[i];
  const std::array<int64_t, 2> sizes = {1000, 300}, dense = {300, 1}, strided = {1, 1000};
  const ScanWants wants = {.moments = false, .position_digest = true};
  const auto scan = [&](const std::vector<float>& data, std::span<const int64_t> strides,
                        const Team* team) {
    const TensorView view{DType::kFloat32, reinterpret_cast<const std::byte*>(data.data()), sizes,
                          strides};
    ScanWants with_team = wants;
    with_team.team = team;
    return PositionDigestHex(ScanTensor(view, with_team).position_digest);
  };
  const Team team = {3, [](int size, void (*body)(void*, int), void* data) {
                       for (int worker = 0; worker < size; ++worker) body(data, worker);
                     }};
  Digest128 alone;
  AddToPositionDigest(std::as_bytes(std::span(values)), 4, 0, &alone);
  const std::string wanted = PositionDigestHex(alone);
  EXPECT_EQ(scan(values, dense, nullptr), wanted);
  EXPECT_EQ(scan(values, dense, &team), wanted);
  EXPECT_EQ(scan(turned, strided, nullptr), wanted);
  EXPECT_EQ(scan(turned, strided, &team), wanted);
}

}  // namespace
}  // namespace plumbline::kernels
