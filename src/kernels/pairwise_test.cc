#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "kernels/inputs_for_test.h"
#include "kernels/kernel_table.h"
#include "kernels/reference_for_test.h"

namespace plumbline::kernels {
namespace {

struct Operand {
  DType dtype;
  const std::byte* data;
};

bool IsComplex(DType dtype) { return InfoOf(dtype).kind == DTypeKind::kComplex; }

std::pair<double, double> Parts(const Operand& side, size_t i) {
  return PartsOf(side.dtype, side.data, i);
}

int ReferenceClass(double x) {
  if (std::isnan(x)) return 1;
  if (!std::isinf(x)) return 0;
  return x > 0 ? 2 : 3;
}

int64_t ReferenceOrdinal(uint64_t bits, size_t bytes) {
  const uint64_t sign = uint64_t{1} << (8 * bytes - 1);
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

uint64_t ReferenceUlp(const Operand& target, const Operand& golden, size_t i) {
  const DTypeInfo& info = InfoOf(golden.dtype);
  if (info.kind != DTypeKind::kFloat || IsComplex(target.dtype)) return 0;
  uint64_t golden_bits = 0;
  std::memcpy(&golden_bits, golden.data + i * info.size_bytes, info.size_bytes);
  const double value = ElementAsDouble(target.dtype, target.data, i);
  uint64_t target_bits = 0;
  if (golden.dtype == DType::kFloat64) {
    target_bits = std::bit_cast<uint64_t>(value);
  } else if (golden.dtype == DType::kFloat32) {
    target_bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  } else {
    target_bits = FloatToNarrow(*NarrowFormatOf(golden.dtype), static_cast<float>(value));
  }
  const int64_t a = ReferenceOrdinal(target_bits, info.size_bytes);
  const int64_t b = ReferenceOrdinal(golden_bits, info.size_bytes);
  return a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
               : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
}

// The largest double in place of a modulus that is none.
double FiniteModulus(double re, double im) {
  return std::fmin(ReferenceModulus(re, im), std::numeric_limits<double>::max());
}

// |target - golden| and whether they differ.
std::pair<double, bool> ReferenceDistance(const Operand& target, const Operand& golden, size_t i) {
  if (target.dtype == golden.dtype && target.dtype == DType::kInt64) {
    const auto t = LoadAs<int64_t>(target.data + 8 * i);
    const auto g = LoadAs<int64_t>(golden.data + 8 * i);
    const uint64_t up = static_cast<uint64_t>(t) - static_cast<uint64_t>(g);
    return {static_cast<double>(t > g ? up : 0 - up), t != g};
  }
  if (target.dtype == golden.dtype && target.dtype == DType::kUInt64) {
    const auto t = LoadAs<uint64_t>(target.data + 8 * i);
    const auto g = LoadAs<uint64_t>(golden.data + 8 * i);
    return {static_cast<double>(std::max(t, g) - std::min(t, g)), t != g};
  }
  const auto [t_re, t_im] = Parts(target, i);
  const auto [g_re, g_im] = Parts(golden, i);
  const bool differs = t_re != g_re || t_im != g_im;
  if (IsComplex(target.dtype) || IsComplex(golden.dtype)) {
    return {FiniteModulus(t_re - g_re, t_im - g_im), differs};
  }
  return {std::fabs(t_re - g_re), differs};
}

Pairwise ReferencePairwise(const Operand& target, const Operand& golden, size_t count) {
  Pairwise p;
  LaneSum dot, target_squares, golden_squares, difference_squares;
  for (size_t i = 0; i < count; ++i) {
    const auto [t_re, t_im] = Parts(target, i);
    const auto [g_re, g_im] = Parts(golden, i);
    const bool complex = IsComplex(target.dtype) || IsComplex(golden.dtype);
    const double t = complex ? FiniteModulus(t_re, t_im) : t_re;
    const double g = complex ? FiniteModulus(g_re, g_im) : g_re;
    auto [distance, differs] = ReferenceDistance(target, golden, i);
    ++p.count;
    const bool finite =
        std::isfinite(t_re) && std::isfinite(t_im) && std::isfinite(g_re) && std::isfinite(g_im);
    if (!finite) {
      differs = ReferenceClass(t_re) != ReferenceClass(g_re) ||
                ReferenceClass(t_im) != ReferenceClass(g_im);
      ++p.nonfinite_count;
      p.nonfinite_mismatch += differs ? 1u : 0u;
    }
    if (differs && p.mismatch_count++ == 0) p.first_mismatch = i;
    // A left-out element must not shift the lanes of the others.
    dot.Add(finite ? (complex ? t_re * g_re + t_im * g_im : t * g) : 0.0);
    target_squares.Add(finite ? t * t : 0.0);
    golden_squares.Add(finite ? g * g : 0.0);
    difference_squares.Add(finite ? distance * distance : 0.0);
    if (!finite) continue;
    const double reference = g == 0 ? std::numeric_limits<double>::epsilon() : std::fabs(g);
    p.golden_zero_count += g == 0 ? 1u : 0u;
    p.golden_zero_mismatch += g == 0 && differs ? 1u : 0u;
    p.below_1e3 += distance < 0.001 * reference ? 1u : 0u;
    p.below_5e3 += distance < 0.005 * reference ? 1u : 0u;
    if (distance > p.max_abs) {
      p.max_abs = distance;
      p.max_abs_index = i;
    }
    p.max_rel = std::fmax(p.max_rel, distance / reference);
    p.max_ulp = std::max(p.max_ulp, ReferenceUlp(target, golden, i));
    p.target_max = std::fmax(p.target_max, std::fabs(t));
    p.golden_max = std::fmax(p.golden_max, std::fabs(g));
  }
  p.dot = dot.Total();
  p.target_squares = target_squares.Total();
  p.golden_squares = golden_squares.Total();
  p.difference_squares = difference_squares.Total();
  return p;
}

std::string Difference(const Pairwise& a, const Pairwise& b) {
  struct Whole {
    const char* name;
    uint64_t x, y;
  };
  for (const Whole& w :
       {Whole{"count", a.count, b.count}, Whole{"mismatch", a.mismatch_count, b.mismatch_count},
        Whole{"nonfinite", a.nonfinite_count, b.nonfinite_count},
        Whole{"nonfinite_mismatch", a.nonfinite_mismatch, b.nonfinite_mismatch},
        Whole{"golden_zero", a.golden_zero_count, b.golden_zero_count},
        Whole{"golden_zero_mismatch", a.golden_zero_mismatch, b.golden_zero_mismatch},
        Whole{"below_1e3", a.below_1e3, b.below_1e3}, Whole{"below_5e3", a.below_5e3, b.below_5e3},
        Whole{"max_ulp", a.max_ulp, b.max_ulp},
        Whole{"max_abs_index", a.max_abs_index, b.max_abs_index},
        Whole{"first_mismatch", a.first_mismatch, b.first_mismatch}}) {
    if (w.x != w.y) {
      return std::string(w.name) + ": " + std::to_string(w.x) + " != " + std::to_string(w.y);
    }
  }
  struct Real {
    const char* name;
    double x, y;
  };
  for (const Real& r :
       {Real{"dot", a.dot, b.dot}, Real{"target_squares", a.target_squares, b.target_squares},
        Real{"golden_squares", a.golden_squares, b.golden_squares},
        Real{"difference_squares", a.difference_squares, b.difference_squares},
        Real{"max_abs", a.max_abs, b.max_abs}, Real{"max_rel", a.max_rel, b.max_rel},
        Real{"target_max", a.target_max, b.target_max},
        Real{"golden_max", a.golden_max, b.golden_max}}) {
    if (!SameBits(r.x, r.y)) {
      char text[128];
      std::snprintf(text, sizeof(text), "%s: %a != %a", r.name, r.x, r.y);
      return text;
    }
  }
  return {};
}

Pairwise RunOn(CpuTarget cpu, const Operand& target, const Operand& golden, size_t count) {
  PairwiseState state;
  UpdatePairwise(TableFor(cpu), {target.dtype, target.data, golden.dtype, golden.data, count},
                 &state);
  return FinishPairwise(state);
}

// A copy of `golden` in which about one element in eight is taken from `other`.
std::vector<std::byte> Perturbed(const std::vector<std::byte>& golden,
                                 const std::vector<std::byte>& other, size_t element_bytes) {
  std::vector<std::byte> result = golden;
  for (size_t i = 0; i + element_bytes <= golden.size(); i += element_bytes) {
    const auto from = static_cast<std::ptrdiff_t>(i);
    if ((i / element_bytes) % 8 == 5) {
      std::copy_n(other.begin() + from, element_bytes, result.begin() + from);
    }
  }
  return result;
}

class EveryPairDType : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static DType dtype() { return static_cast<DType>(GetParam()); }

  static void ExpectReference(Fill fill, size_t count, uint64_t seed) {
    const size_t size = InfoOf(dtype()).size_bytes;
    const auto golden = MakeInput(dtype(), count, fill, seed);
    const auto other = MakeInput(dtype(), count, fill, seed + 1);
    for (const auto& target : {other, golden, Perturbed(golden, other, size)}) {
      const Operand t = {dtype(), target.data()};
      const Operand g = {dtype(), golden.data()};
      const Pairwise expected = ReferencePairwise(t, g, count);
      for (const CpuTarget cpu : UsableTargets()) {
        ASSERT_EQ(Difference(RunOn(cpu, t, g, count), expected), "")
            << CpuTargetName(cpu) << " count " << count << " fill " << static_cast<int>(fill);
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Pairwise, EveryPairDType, ::testing::Range(0, kDTypeCount),
                         [](const auto& one) {
                           return std::string(InfoOf(static_cast<DType>(one.param)).name);
                         });

TEST_P(EveryPairDType, ShortRunsEqualTheScalarReference) {
  for (const Fill fill : kAllFills) {
    for (size_t count = 0; count <= 67; ++count) ExpectReference(fill, count, count);
  }
}

TEST_P(EveryPairDType, LengthsAroundTheSliceEqualTheScalarReference) {
  for (const Fill fill : kAllFills) {
    for (const size_t count : {1023u, 1024u, 1025u, 5000u}) ExpectReference(fill, count, count);
  }
}

TEST_P(EveryPairDType, LengthsAroundTheBlockEqualTheScalarReference) {
  constexpr size_t kCount = kBlockElements + 5;
  const auto golden = MakeInput(dtype(), kCount, Fill::kModerate, 3);
  std::vector<std::byte> target = golden;
  target[target.size() / 2] ^= std::byte{1};
  target[target.size() - InfoOf(dtype()).size_bytes] ^= std::byte{1};
  const Operand t = {dtype(), target.data()};
  const Operand g = {dtype(), golden.data()};
  const Pairwise expected = ReferencePairwise(t, g, kCount);
  for (const CpuTarget cpu : UsableTargets()) {
    ASSERT_EQ(Difference(RunOn(cpu, t, g, kCount), expected), "") << CpuTargetName(cpu);
  }
}

TEST_P(EveryPairDType, MisalignedDataGivesTheSameResult) {
  constexpr size_t kCount = 1500;
  const size_t size = InfoOf(dtype()).size_bytes;
  const auto golden = MakeInput(dtype(), kCount, Fill::kModerate, 5);
  const auto target = Perturbed(golden, MakeInput(dtype(), kCount, Fill::kModerate, 6), size);
  const Pairwise expected =
      ReferencePairwise({dtype(), target.data()}, {dtype(), golden.data()}, kCount);
  std::vector<std::byte> memory(target.size() + 3);
  for (const size_t shift : {1u, 3u}) {
    std::copy(target.begin(), target.end(), memory.begin() + static_cast<std::ptrdiff_t>(shift));
    for (const CpuTarget cpu : UsableTargets()) {
      ASSERT_EQ(
          Difference(RunOn(cpu, {dtype(), memory.data() + shift}, {dtype(), golden.data()}, kCount),
                     expected),
          "")
          << CpuTargetName(cpu) << " shift " << shift;
    }
  }
}

TEST_P(EveryPairDType, ChunksAndBlocksGiveTheResultOfOneRun) {
  const size_t count = kBlockElements + 4321;
  const size_t size = InfoOf(dtype()).size_bytes;
  const auto golden = MakeInput(dtype(), count, Fill::kModerate, 5);
  const auto target = Perturbed(golden, MakeInput(dtype(), count, Fill::kModerate, 6), size);
  const Pairwise whole = PairwiseOf({dtype(), target.data(), dtype(), golden.data(), count});
  PairwiseState state;
  Pairwise combined;
  for (size_t at = 0; at < count; at += kBlockElements) {
    const size_t n = std::min(kBlockElements, count - at);
    combined = Combine(combined, PairwiseOf({dtype(), target.data() + at * size, dtype(),
                                             golden.data() + at * size, n}));
  }
  for (size_t at = 0; at < count; at += 4112) {
    const size_t n = std::min<size_t>(4112, count - at);
    UpdatePairwise(ActiveTable(),
                   {dtype(), target.data() + at * size, dtype(), golden.data() + at * size, n},
                   &state);
  }
  EXPECT_EQ(Difference(FinishPairwise(state), whole), "");
  EXPECT_EQ(Difference(combined, whole), "");
}

TEST(Pairwise, EveryMixOfDTypesEqualsTheScalarReference) {
  constexpr size_t kCount = 1100;
  for (int a = 0; a < kDTypeCount; ++a) {
    for (int b = 0; b < kDTypeCount; ++b) {
      if (a == b) continue;
      const auto target_dtype = static_cast<DType>(a);
      const auto golden_dtype = static_cast<DType>(b);
      const auto target = MakeInput(target_dtype, kCount, Fill::kFewSpecials, 1);
      const auto golden = MakeInput(golden_dtype, kCount, Fill::kModerate, 2);
      // 64-bit integers against others: the reference rounds to double, the kernels do not.
      const auto is_wide = [](DType d) { return d == DType::kInt64 || d == DType::kUInt64; };
      const bool integers = target_dtype <= DType::kInt64 && golden_dtype <= DType::kInt64;
      if (integers && (is_wide(target_dtype) || is_wide(golden_dtype))) continue;
      const Operand t = {target_dtype, target.data()};
      const Operand g = {golden_dtype, golden.data()};
      const Pairwise expected = ReferencePairwise(t, g, kCount);
      for (const CpuTarget cpu : UsableTargets()) {
        ASSERT_EQ(Difference(RunOn(cpu, t, g, kCount), expected), "")
            << CpuTargetName(cpu) << " " << InfoOf(target_dtype).name << " "
            << InfoOf(golden_dtype).name;
      }
    }
  }
}

TEST(Pairwise, Int64DifferenceBelowDoubleResolutionIsSeen) {
  const int64_t target[] = {(int64_t{1} << 60) + 1, 5};
  const int64_t golden[] = {int64_t{1} << 60, 5};
  const Pairwise p = PairwiseOf({DType::kInt64, target, DType::kInt64, golden, 2});
  EXPECT_EQ(p.mismatch_count, 1u);
  EXPECT_EQ(p.max_abs, 1);
}

// Pairs that are equal as doubles, at the end of a run and within it.
template <class T, class G>
void ExpectOnesApart(DType target_dtype, T target, DType golden_dtype, G golden, double distance) {
  for (const size_t count : {size_t{1}, size_t{40}, size_t{2500}}) {
    std::vector<T> targets(count, static_cast<T>(3));
    std::vector<G> goldens(count, static_cast<G>(3));
    targets[count / 2] = target;
    goldens[count / 2] = golden;
    for (const CpuTarget cpu : UsableTargets()) {
      const auto bytes = [](const auto& values) {
        return reinterpret_cast<const std::byte*>(values.data());
      };
      const Pairwise p =
          RunOn(cpu, {target_dtype, bytes(targets)}, {golden_dtype, bytes(goldens)}, count);
      const bool differs = distance > 0;
      EXPECT_EQ(p.mismatch_count, differs ? 1u : 0u) << CpuTargetName(cpu) << " " << count;
      EXPECT_EQ(p.max_abs, distance);
      EXPECT_EQ(p.difference_squares, distance * distance);
      EXPECT_EQ(p.max_abs_index, differs ? count / 2 : 0);
      EXPECT_EQ(p.first_mismatch, differs ? count / 2 : 0);
      EXPECT_EQ(p.max_rel, distance / std::fabs(static_cast<double>(golden)));
      EXPECT_EQ(p.below_1e3, count);
    }
  }
}

TEST(Pairwise, IntegersAgainstFloatsAreExact) {
  constexpr int64_t kLarge = int64_t{1} << 53;
  constexpr DType kSigned = DType::kInt64, kUnsigned = DType::kUInt64, kReal = DType::kFloat64;
  ExpectOnesApart(kSigned, kLarge + 1, kReal, 0x1p53, 1);
  ExpectOnesApart(kReal, -0x1p53, kSigned, -kLarge - 1, 1);
  ExpectOnesApart(kSigned, INT64_MAX, kReal, 0x1p63, 1);
  ExpectOnesApart(kSigned, INT64_MIN, kReal, -0x1p63, 0);
  ExpectOnesApart(kSigned, kLarge, kReal, 0x1p53, 0);
  ExpectOnesApart(kUnsigned, UINT64_MAX, kReal, 0x1p64, 1);
  ExpectOnesApart(kUnsigned, UINT64_MAX - 511, kReal, 0x1p64, 512);
  ExpectOnesApart(kUnsigned, (uint64_t{1} << 63) + 1024, kReal, 0x1p63, 1024);
  ExpectOnesApart(kSigned, (int64_t{1} << 60) + 1, DType::kFloat32, 0x1p60F, 1);
  ExpectOnesApart(kSigned, kLarge + 1, kUnsigned, static_cast<uint64_t>(kLarge), 1);
  ExpectOnesApart(kUnsigned, static_cast<uint64_t>(kLarge) + 1, kSigned, kLarge + 1, 0);
}

TEST(Pairwise, Int64AgainstInt32IsExact) {
  const int64_t target[] = {INT64_MIN, 7};
  const int32_t golden[] = {INT32_MAX, 7};
  const Pairwise p = PairwiseOf({DType::kInt64, target, DType::kInt32, golden, 2});
  EXPECT_EQ(p.mismatch_count, 1u);
  EXPECT_EQ(p.max_abs, 9223372036854775808.0 + 2147483647.0);
}

TEST(Pairwise, SignOfInfinityIsADifferenceAndNaNEqualsNaN) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float target[] = {inf, inf, nan, nan, 1, 2};
  const float golden[] = {-inf, inf, nan, 1, inf, 2};
  const Pairwise p = PairwiseOf({DType::kFloat32, target, DType::kFloat32, golden, 6});
  EXPECT_EQ(p.nonfinite_count, 5u);
  EXPECT_EQ(p.nonfinite_mismatch, 3u);
  EXPECT_EQ(p.mismatch_count, 3u);
  EXPECT_EQ(p.first_mismatch, 0u);
  EXPECT_EQ(p.golden_max, 2);
}

TEST(Pairwise, SignedZerosAreEqualAndOneUlpIsOne) {
  const float target[] = {0.0f, std::nextafter(1.0f, 2.0f)};
  const float golden[] = {-0.0f, 1.0f};
  const Pairwise p = PairwiseOf({DType::kFloat32, target, DType::kFloat32, golden, 2});
  EXPECT_EQ(p.mismatch_count, 1u);
  EXPECT_EQ(p.max_ulp, 1u);
  EXPECT_EQ(p.golden_zero_mismatch, 0u);
}

TEST(Pairwise, GoldenZeroUsesTheSpacingAtOne) {
  const double target[] = {1.0, 0.0};
  const double golden[] = {0.0, 0.0};
  const Pairwise p = PairwiseOf({DType::kFloat64, target, DType::kFloat64, golden, 2});
  EXPECT_EQ(p.max_rel, 1.0 / 2.220446049250313e-16);
  EXPECT_EQ(p.golden_zero_count, 2u);
  EXPECT_EQ(p.golden_zero_mismatch, 1u);
  EXPECT_EQ(p.below_1e3, 1u);
}

TEST(Pairwise, RelativeErrorOfExactlyOneThousandthIsNotBelow) {
  std::vector<double> target, golden;
  for (int i = 1; i <= 3000; ++i) {
    golden.push_back(1000.0 * i);
    target.push_back(1001.0 * i);
  }
  const Pairwise p =
      PairwiseOf({DType::kFloat64, target.data(), DType::kFloat64, golden.data(), golden.size()});
  EXPECT_EQ(p.below_1e3, 0u);
  EXPECT_EQ(p.below_5e3, 3000u);
}

// Errors of every size around the limits of the counts, among zeros and numbers down to the
// denormals, so that fast paths for small errors meet everything that they must leave alone.
template <class T>
void ExpectReferenceForErrorsOfEverySize(DType dtype) {
  constexpr size_t kCount = 9000;
  std::mt19937_64 random(21);
  std::vector<T> target, golden;
  for (size_t i = 0; i < kCount; ++i) {
    const auto exponent = i < 4000 ? static_cast<int>(random() % 9) - 4
                                   : -static_cast<int>(random() % (sizeof(T) == 4 ? 149 : 1070));
    const T g =
        std::ldexp(static_cast<T>(1 + static_cast<double>(random() >> 12) * 0x1p-52), exponent);
    const double error = std::pow(10.0, -9 + static_cast<double>(random() % 1000) * 0.01);
    const bool up = (random() & 1) != 0;
    T t = static_cast<T>(static_cast<double>(g) * (up ? 1 + error : 1 - error));
    if (random() % 5 == 0) t = static_cast<T>(static_cast<double>(g) * (up ? 1.001 : 1.005));
    const uint64_t kind = random() % 50;
    golden.push_back(kind < 2 ? T{0} : g);
    target.push_back(kind == 0 || kind == 2 ? -T{0} : t);
  }
  const Operand t = {dtype, reinterpret_cast<const std::byte*>(target.data())};
  const Operand g = {dtype, reinterpret_cast<const std::byte*>(golden.data())};
  const Pairwise expected = ReferencePairwise(t, g, kCount);
  EXPECT_GT(expected.below_1e3, 1000u);
  EXPECT_GT(expected.below_5e3, expected.below_1e3);
  for (const CpuTarget cpu : UsableTargets()) {
    EXPECT_EQ(Difference(RunOn(cpu, t, g, kCount), expected), "") << CpuTargetName(cpu);
  }
}

TEST(Pairwise, ErrorsOfEverySizeOfFloat32EqualTheScalarReference) {
  ExpectReferenceForErrorsOfEverySize<float>(DType::kFloat32);
}

TEST(Pairwise, ErrorsOfEverySizeOfFloat64EqualTheScalarReference) {
  ExpectReferenceForErrorsOfEverySize<double>(DType::kFloat64);
}

TEST(Pairwise, EqualSlicesAmongUnequalOnesEqualTheScalarReference) {
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    constexpr size_t kCount = 8200;
    const auto golden = MakeInput(dtype, kCount, Fill::kModerate, 3);
    for (const size_t changed : {100u, 2100u, 8199u}) {
      auto target = golden;
      target[changed * InfoOf(dtype).size_bytes] ^= std::byte{1};
      const Operand t = {dtype, target.data()};
      const Operand g = {dtype, golden.data()};
      const Pairwise expected = ReferencePairwise(t, g, kCount);
      for (const CpuTarget cpu : UsableTargets()) {
        EXPECT_EQ(Difference(RunOn(cpu, t, g, kCount), expected), "")
            << CpuTargetName(cpu) << " " << InfoOf(dtype).name << " " << changed;
      }
    }
  }
}

TEST(Pairwise, EmptyRunsAreAllZero) {
  const Pairwise p = PairwiseOf({DType::kFloat32, nullptr, DType::kInt8, nullptr, 0});
  EXPECT_EQ(Difference(p, Pairwise{}), "");
}

}  // namespace
}  // namespace plumbline::kernels
