#include "kernels/output_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "base/process/parallel.h"
#include "kernels/inputs_for_test.h"
#include "kernels/reference_for_test.h"

namespace plumbline::kernels {
namespace {

constexpr DType kBenchTypes[] = {DType::kFloat16,      DType::kBFloat16, DType::kFloat32,
                                 DType::kFloat64,      DType::kFloat8E4M3FN};
constexpr DType kDeviceTypes[] = {DType::kFloat16,        DType::kBFloat16,
                                  DType::kFloat32,        DType::kFloat64,
                                  DType::kFloat8E4M3FN,   DType::kFloat8E5M2,
                                  DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2FNUZ};
constexpr OutputWork kWorks[] = {OutputWork::kLadder, OutputWork::kLimits, OutputWork::kBenchmark,
                                 OutputWork::kUlp};

// A rule that a pair of these types may get; limits that divide the inputs of the test.
OutputRule RuleOf(OutputWork work, DType bench, DType device) {
  OutputRule rule;
  rule.work = work;
  rule.bench_dtype = bench;
  rule.device_dtype = device;
  rule.as_double =
      device != DType::kBFloat16 && (bench == DType::kFloat64 || device == DType::kFloat64);
  const bool is_byte = InfoOf(device).size_bytes == 1;
  if (is_byte) rule.bench_rounded_to = NarrowFormatOf(device);
  rule.share_count = device == DType::kFloat16 ? 2 : 3;
  rule.small_value = 0.75;
  rule.small_atol = 1e-5;
  rule.rtol = 0.001;
  rule.clip = device == DType::kFloat16 ? 65504 : 0x1.FEp+127;
  if (device == DType::kFloat16) {
    rule.cast_drop_bits = rule.as_double ? 42 : 13;
    rule.cast_min_exponent = -14;
    rule.cast_infinite_from = 65520;
  } else if (device == DType::kFloat32 && rule.as_double) {
    rule.cast_drop_bits = 29;
    rule.cast_min_exponent = -126;
    rule.cast_infinite_from = 0x1.FFFFFFp+127;
  }
  rule.ulp_mantissa_bits = device == DType::kFloat16 ? 10 : 23;
  rule.ulp_min_exponent = device == DType::kFloat16 ? -14 : -126;
  rule.ulp_of_float8 = is_byte;
  return rule;
}

void StoreAs(DType dtype, double value, std::byte* at) {
  const auto single = static_cast<float>(value);
  if (dtype == DType::kFloat64) {
    std::memcpy(at, &value, 8);
  } else if (dtype == DType::kFloat32) {
    std::memcpy(at, &single, 4);
  } else {
    const uint32_t bits = FloatToNarrow(*NarrowFormatOf(dtype), single);
    std::memcpy(at, &bits, InfoOf(dtype).size_bytes);
  }
}

struct Pair {
  std::vector<std::byte> bench, device;
};

// Device values near those of the benchmark, equal to them, or any.
Pair MakePair(const OutputRule& rule, size_t count, Fill fill, uint64_t seed) {
  Pair pair = {MakeInput(rule.bench_dtype, count, fill, seed),
               MakeInput(rule.device_dtype, count, fill, seed + 1)};
  const size_t bench_bytes = InfoOf(rule.bench_dtype).size_bytes;
  const size_t device_bytes = InfoOf(rule.device_dtype).size_bytes;
  std::mt19937_64 random(seed + 2);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t choice = random() % 8;
    if (choice == 0) continue;
    const double noise = choice < 4 ? 0 : static_cast<double>(random() % 1000) * 1e-5 - 0.004;
    const double bench = plumbline::ElementAsDouble(rule.bench_dtype, &pair.bench[i * bench_bytes]);
    StoreAs(rule.device_dtype, bench * (1 + noise), &pair.device[i * device_bytes]);
  }
  return pair;
}

// ---- The same by plain loops ----

// b' by scaling to an integer, which rounds to even.
double Cast(double b, const OutputRule& rule) {
  if (rule.cast_drop_bits == 0 || !std::isfinite(b) || b == 0) return b;
  if (std::fabs(b) >= rule.cast_infinite_from) return std::copysign(kReferenceInf, b);
  const int mantissa = (rule.as_double ? 52 : 23) - rule.cast_drop_bits;
  const int place = std::max(std::ilogb(b), rule.cast_min_exponent) - mantissa;
  return std::ldexp(std::nearbyint(std::ldexp(b, -place)), place);
}

bool IsBad(double d, double b, double cast, double quotient_limit, const OutputRule& rule) {
  if (std::isnan(d) && std::isnan(b)) return false;
  const double clipped_d = std::clamp(d, -rule.clip, rule.clip);
  const double clipped_b = std::clamp(cast, -rule.clip, rule.clip);
  if (std::isinf(b)) return !(d == b || clipped_d == clipped_b);
  // In the test no quotient is near the limit: it is one of infinities cut off.
  return !(std::fabs(clipped_d - clipped_b) / std::fabs(b) <= quotient_limit);
}

double UlpOf(double d, double b, double error, const OutputRule& rule) {
  if (!std::isfinite(b)) return std::nan("");
  if (!rule.ulp_of_float8) {
    const int e = b == 0 ? 0 : std::max(std::ilogb(b), rule.ulp_min_exponent);
    return std::ldexp(error, rule.ulp_mantissa_bits - e);
  }
  const int e = b == 0 ? -22 : std::max(std::ilogb(b), -22);
  for (const auto& [most, width] : {std::pair(3, 3), std::pair(7, 2), std::pair(15, 1)}) {
    if (std::abs(e) <= most) return std::ldexp(std::fabs(d - b), width - e);
  }
  const auto logarithm = [](double x) {
    return x == 0 ? 0 : std::copysign(std::max(std::log2(std::fabs(x)), -22.0), x);
  };
  return std::fabs(logarithm(d) - logarithm(b));
}

struct ReferenceLanes {
  LaneSum dot, bench, device, rel, error, ulp;
};

template <class T>
void AddReferenceStandard(T d, T b, const OutputRule& rule, ReferenceLanes* lanes,
                          OutputSums* sums) {
  const auto cast = static_cast<T>(Cast(static_cast<double>(b), rule));
  const T error = std::fabs(d - b);
  const T rel = error / (std::fabs(b) + static_cast<T>(rule.eps));
  sums->above += d > cast ? 1U : 0U;
  sums->beneath += d < cast ? 1U : 0U;
  double kept_rel = 0, kept_error = 0;
  if (!std::isfinite(d) || !std::isfinite(cast)) {
    ++sums->not_finite;
    sums->not_finite_bad += IsBad(d, b, cast, rule.rtol, rule) ? 1U : 0U;
  } else if (std::fabs(b) <= static_cast<T>(rule.small_value)) {
    ++sums->small;
    sums->small_bad += error > static_cast<T>(rule.small_atol) ? 1U : 0U;
  } else {
    ++sums->normal;
    if (rule.work == OutputWork::kLimits) {
      sums->rel_bad += rel > static_cast<T>(rule.rtol) ? 1U : 0U;
    } else {
      kept_rel = static_cast<double>(rel);
      kept_error = static_cast<double>(error);
      sums->rel_max = std::max(sums->rel_max, kept_rel);
    }
  }
  // The loops over finite slices count no relative errors where they keep them.
  lanes->rel.Add(kept_rel);
  lanes->error.Add(kept_error * kept_error);
}

template <class T>
void AddReferenceUlp(T d, T b, const OutputRule& rule, ReferenceLanes* lanes, OutputSums* sums) {
  const double ulp = UlpOf(d, b, std::fabs(d - b), rule);
  lanes->ulp.Add(std::isnan(ulp) ? 0 : ulp);
  sums->ulp_nan += std::isnan(ulp) ? 1U : 0U;
  if (ulp > sums->ulp_max) sums->ulp_max = ulp;
  sums->ulp_counted += ulp > rule.ulp_above ? 1U : 0U;
  sums->ulp_of_zero += b == 0 && ulp > 0 ? 1U : 0U;
}

template <class T>
void AddReference(T d, T b, const OutputRule& rule, ReferenceLanes* lanes, OutputSums* sums) {
  const auto wide_d = static_cast<double>(d), wide_b = static_cast<double>(b);
  const bool is_finite = std::isfinite(d) && std::isfinite(b);
  const T error = std::fabs(d - b);
  const T rel = error / (std::fabs(b) + static_cast<T>(rule.eps));
  ++sums->count;
  sums->any_not_finite += is_finite ? 0U : 1U;
  lanes->dot.Add(is_finite ? wide_d * wide_b : 0);
  lanes->bench.Add(is_finite ? wide_b * wide_b : 0);
  lanes->device.Add(is_finite ? wide_d * wide_d : 0);
  // Not std::fmax(), which a signalling NaN goes through.
  if (std::fabs(wide_b) > sums->bench_max) sums->bench_max = std::fabs(wide_b);
  if (std::fabs(wide_d) > sums->device_max) sums->device_max = std::fabs(wide_d);
  if (static_cast<double>(error) > sums->error_max) sums->error_max = static_cast<double>(error);
  sums->error_nan += std::isnan(error) ? 1U : 0U;
  for (size_t k = 0; k < rule.share_count; ++k) {
    sums->below[k] += rel < static_cast<T>(rule.share_limits[k]) ? 1U : 0U;
  }
  if (rule.work == OutputWork::kLadder) {
    sums->mismatches += d == b || (std::isnan(d) && std::isnan(b)) ? 0U : 1U;
  } else if (rule.work == OutputWork::kUlp) {
    AddReferenceUlp(d, b, rule, lanes, sums);
  } else {
    AddReferenceStandard(d, b, rule, lanes, sums);
  }
}

OutputSums Reference(const OutputRule& rule, const Pair& pair, size_t count) {
  OutputSums sums;
  ReferenceLanes lanes;
  const size_t bench_bytes = InfoOf(rule.bench_dtype).size_bytes;
  const size_t device_bytes = InfoOf(rule.device_dtype).size_bytes;
  for (size_t i = 0; i < count; ++i) {
    double b = plumbline::ElementAsDouble(rule.bench_dtype, &pair.bench[i * bench_bytes]);
    const double d = plumbline::ElementAsDouble(rule.device_dtype, &pair.device[i * device_bytes]);
    if (rule.bench_rounded_to != nullptr) {
      const uint32_t bits = FloatToNarrow(*rule.bench_rounded_to, static_cast<float>(b));
      b = static_cast<double>(NarrowToFloat(*rule.bench_rounded_to, bits));
    }
    if (rule.as_double) {
      AddReference(d, b, rule, &lanes, &sums);
    } else {
      AddReference(static_cast<float>(d), static_cast<float>(b), rule, &lanes, &sums);
    }
  }
  sums.dot = lanes.dot.Total();
  sums.bench_squares = lanes.bench.Total();
  sums.device_squares = lanes.device.Total();
  sums.rel_sum = lanes.rel.Total();
  sums.error_squares = lanes.error.Total();
  sums.ulp_sum = lanes.ulp.Total();
  return sums;
}

// Names the first member that differs, or is empty. Logarithms of float8 are right to 1e-13.
std::string Difference(const OutputSums& a, const OutputSums& b, double tolerance) {
  struct Count {
    const char* name;
    uint64_t x, y;
  };
  for (const auto& [name, x, y] :
       {Count{"count", a.count, b.count},
        {"any_not_finite", a.any_not_finite, b.any_not_finite},
        {"error_nan", a.error_nan, b.error_nan},
        {"below 0", a.below[0], b.below[0]},
        {"below 1", a.below[1], b.below[1]},
        {"below 2", a.below[2], b.below[2]},
        {"mismatches", a.mismatches, b.mismatches},
        {"not_finite", a.not_finite, b.not_finite},
        {"not_finite_bad", a.not_finite_bad, b.not_finite_bad},
        {"normal", a.normal, b.normal},
        {"small", a.small, b.small},
        {"rel_bad", a.rel_bad, b.rel_bad},
        {"small_bad", a.small_bad, b.small_bad},
        {"above", a.above, b.above},
        {"beneath", a.beneath, b.beneath},
        {"ulp_nan", a.ulp_nan, b.ulp_nan},
        {"ulp_counted", a.ulp_counted, b.ulp_counted},
        {"ulp_of_zero", a.ulp_of_zero, b.ulp_of_zero}}) {
    if (x != y) return std::string(name) + ": " + std::to_string(x) + " != " + std::to_string(y);
  }
  struct Real {
    const char* name;
    double x, y, tolerance;
  };
  for (const auto& [name, x, y, slack] :
       {Real{"dot", a.dot, b.dot, 0},
        {"bench_squares", a.bench_squares, b.bench_squares, 0},
        {"device_squares", a.device_squares, b.device_squares, 0},
        {"bench_max", a.bench_max, b.bench_max, 0},
        {"device_max", a.device_max, b.device_max, 0},
        {"error_max", a.error_max, b.error_max, 0},
        {"rel_sum", a.rel_sum, b.rel_sum, 0},
        {"rel_max", a.rel_max, b.rel_max, 0},
        {"error_squares", a.error_squares, b.error_squares, 0},
        {"ulp_sum", a.ulp_sum, b.ulp_sum, tolerance},
        {"ulp_max", a.ulp_max, b.ulp_max, tolerance}}) {
    if (SameBits(x, y) || std::fabs(x - y) <= slack * std::fabs(y)) continue;
    char text[128];
    std::snprintf(text, sizeof(text), "%s: %a != %a", name, x, y);
    return text;
  }
  return {};
}

std::string CaseText(const OutputRule& rule, size_t count, Fill fill) {
  return std::string(InfoOf(rule.bench_dtype).name) + " " +
         std::string(InfoOf(rule.device_dtype).name) + " work " +
         std::to_string(static_cast<int>(rule.work)) + " count " + std::to_string(count) +
         " fill " + std::to_string(static_cast<int>(fill));
}

// Every target gives the bits of the first, and the first those of the plain loops.
void ExpectReference(const OutputRule& rule, size_t count, Fill fill, uint64_t seed) {
  const Pair pair = MakePair(rule, count, fill, seed);
  const OutputRuns runs = {pair.bench.data(), pair.device.data(), count};
  const OutputSums expected = Reference(rule, pair, count);
  const OutputSums baseline = OutputSumsOf(TableFor(CpuTarget::kBaseline), rule, runs);
  EXPECT_EQ(Difference(baseline, expected, rule.ulp_of_float8 ? 1e-12 : 0), "")
      << CaseText(rule, count, fill);
  for (const CpuTarget target : UsableTargets()) {
    EXPECT_EQ(Difference(OutputSumsOf(TableFor(target), rule, runs), baseline, 0), "")
        << CpuTargetName(target) << " " << CaseText(rule, count, fill);
  }
}

void ForRules(const std::function<void(const OutputRule&)>& body) {
  for (const DType bench : kBenchTypes) {
    for (const DType device : kDeviceTypes) {
      for (const OutputWork work : kWorks) body(RuleOf(work, bench, device));
    }
  }
}

TEST(OutputSums, EveryTargetHasTheSumsOfAPlainLoop) {
  uint64_t seed = 1;
  ForRules([&](const OutputRule& rule) {
    for (size_t count = 1; count <= 67; ++count) {
      ExpectReference(rule, count, kAllFills[count % std::size(kAllFills)], ++seed);
    }
    for (const Fill fill : kAllFills) {
      for (const size_t count : {1023U, 1024U, 1041U, 2049U}) {
        ExpectReference(rule, count, fill, ++seed);
      }
    }
  });
}

TEST(OutputSums, BlocksAreAddedInOrder) {
  for (const auto& [bench, device] : {std::pair(DType::kFloat32, DType::kFloat16),
                                      std::pair(DType::kFloat64, DType::kFloat32)}) {
    for (const OutputWork work : kWorks) {
      for (const size_t extra : {size_t{0}, size_t{1}, kBlockElements - 1, kBlockElements + 35}) {
        ExpectReference(RuleOf(work, bench, device), kBlockElements + extra, Fill::kModerate, 9);
      }
    }
  }
}

TEST(OutputSums, ThreadsDoNotMatter) {
  const OutputRule rule = RuleOf(OutputWork::kBenchmark, DType::kFloat32, DType::kBFloat16);
  const size_t count = 70 * kBlockElements + 77;
  const Pair pair = MakePair(rule, count, Fill::kModerate, 5);
  const OutputRuns runs = {pair.bench.data(), pair.device.data(), count};
  const OutputSums expected = Reference(rule, pair, count);
  for (const int threads : {1, 2, 7}) {
    RunWithThreads(threads, [&] {
      EXPECT_EQ(Difference(OutputSumsOf(ActiveTable(), rule, runs), expected, 0), "") << threads;
    });
  }
}

TEST(OutputSums, NoElementsAreNothing) {
  const OutputRule rule = RuleOf(OutputWork::kUlp, DType::kFloat32, DType::kFloat16);
  const OutputSums sums = OutputSumsOf(ActiveTable(), rule, {nullptr, nullptr, 0});
  EXPECT_EQ(Difference(sums, {}, 0), "");
}

TEST(OutputSums, UnalignedMemoryIsRead) {
  const OutputRule rule = RuleOf(OutputWork::kBenchmark, DType::kFloat32, DType::kFloat32);
  const Pair pair = MakePair(rule, 2048, Fill::kModerate, 3);
  const OutputSums expected = Reference(rule, pair, 2048);
  for (const size_t shift : {1U, 3U, 4U}) {
    std::vector<std::byte> memory(2 * 2048 * 4 + 16);
    std::byte* bench = memory.data() + shift;
    std::byte* device = bench + 2048 * 4;
    std::memcpy(bench, pair.bench.data(), 2048 * 4);
    std::memcpy(device, pair.device.data(), 2048 * 4);
    EXPECT_EQ(Difference(OutputSumsOf(ActiveTable(), rule, {bench, device, 2048}), expected, 0),
              "");
  }
}

}  // namespace
}  // namespace plumbline::kernels
