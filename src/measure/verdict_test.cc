#include "measure/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "measure/tensor_metrics.h"

namespace plumbline::measure {
namespace {

constexpr double kNanStatistic = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfStatistic = std::numeric_limits<double>::infinity();

Item Tensor(std::array<Recorded, 4> statistics, const std::string& dtype = "torch.float32") {
  Item item;
  item.name = "f.output.0";
  item.is_tensor = true;
  item.dtype = dtype;
  item.shape = Shape{4};
  item.shape_text = "[4]";
  item.statistics = std::move(statistics);
  return item;
}

Item Scalar(Recorded value, const std::string& digest) {
  Item item;
  item.dtype = "<class 'float'>";
  item.shape_text = "[]";
  item.statistics.fill(value);
  item.digest = digest;
  return item;
}

Difference Of(const Item& target, const Item& golden) {
  return DifferenceOf(target, golden, {CompareMode::kStatistics, true}, nullptr);
}

TEST(Verdict, RatioDecidesAndNanIsBroken) {
  EXPECT_EQ(VerdictOfRatio(0, 0), Verdict::kSame);
  EXPECT_EQ(VerdictOfRatio(8, 1), Verdict::kWithinNoise);
  EXPECT_EQ(VerdictOfRatio(64, 1), Verdict::kSuspicious);
  EXPECT_EQ(VerdictOfRatio(65, 1), Verdict::kBroken);
  EXPECT_EQ(VerdictOfRatio(1e-30, 0), Verdict::kBroken);
  EXPECT_EQ(VerdictOfRatio(kNanStatistic, 1), Verdict::kBroken);
  EXPECT_EQ(VerdictOfRatio(kInfStatistic, 1), Verdict::kBroken);
}

TEST(Verdict, ATruthValueIsNoStatisticOfNumbers) {
  const Item good = Tensor({1.0, -1.0, 0.0, 1.5});
  for (size_t i = 0; i < 4; ++i) {
    Item bad = good;
    bad.statistics[i] = true;
    for (const auto& difference : {Of(good, bad), Of(bad, good), Of(bad, bad)}) {
      EXPECT_EQ(difference.verdict, Verdict::kNotComparable) << i;
      EXPECT_EQ(difference.reason, "no-data") << i;
    }
  }
}

TEST(Verdict, TruthValuesAreComparedBothWays) {
  const Item truth = Tensor({true, false, Recorded(), Recorded()}, "torch.bool");
  EXPECT_EQ(Of(truth, truth).kind, Difference::Kind::kEqual);
  const Item number = Tensor({1.0, 0.0, Recorded(), Recorded()}, "Bool8");
  EXPECT_EQ(Of(truth, number).verdict, Verdict::kBroken);
  EXPECT_EQ(Of(number, truth).verdict, Verdict::kBroken);
}

TEST(Verdict, LargeIntegersAreComparedExactly) {
  constexpr int64_t kLarge = int64_t{1} << 53;
  const auto differ = [](const Recorded& a, const Recorded& b) {
    return Of(Scalar(a, "a"), Scalar(b, "b")).kind != Difference::Kind::kEqual;
  };
  EXPECT_TRUE(differ(kLarge + 1, kLarge));
  EXPECT_TRUE(differ(kLarge + 1, 0x1p53));
  EXPECT_TRUE(differ(0x1p53, kLarge + 1));
  EXPECT_TRUE(differ(INT64_MAX, 0x1p63));
  EXPECT_FALSE(differ(kLarge, 0x1p53));
  EXPECT_FALSE(differ(true, int64_t{1}));
  EXPECT_FALSE(differ(INT64_MIN, -0x1p63));
}

TEST(Verdict, AllZeroTargetIsBroken) {
  const Difference d = Of(Tensor({0.0, 0.0, 0.0, 0.0}), Tensor({0.9, 0.0, 0.1, 1.0}));
  EXPECT_EQ(d.verdict, Verdict::kBroken);
  EXPECT_EQ(d.reason, "zero-target");
}

TEST(Verdict, AStatisticThatOneSideLacksIsNotOtherThanZero) {
  const Item zero = Tensor({0.0, 0.0, 0.0, 0.0});
  const Item max_alone = Tensor({0.0, Recorded(), Recorded(), Recorded()});
  EXPECT_NE(Of(max_alone, zero).verdict, Verdict::kBroken);
  EXPECT_NE(Of(zero, max_alone).verdict, Verdict::kBroken);
  const Item norm_alone = Tensor({Recorded(), Recorded(), Recorded(), 1.0});
  EXPECT_EQ(Of(zero, norm_alone).reason, "zero-target");
  EXPECT_EQ(Of(norm_alone, zero).reason, "zero-golden");
}

TEST(Verdict, NonFiniteIsNeverGood) {
  const Item good = Tensor({1.0, -1.0, 0.0, 1.5});
  EXPECT_EQ(Of(Tensor({kNanStatistic, kNanStatistic, kNanStatistic, kNanStatistic}), good).reason,
            "nonfinite-target");
  EXPECT_EQ(Of(good, Tensor({kInfStatistic, -1.0, kInfStatistic, kInfStatistic})).reason,
            "nonfinite-golden");
  const Item bad = Tensor({kInfStatistic, -1.0, kInfStatistic, kInfStatistic});
  EXPECT_EQ(Of(bad, bad).doubt, "nonfinite-both");
  EXPECT_EQ(Of(bad, bad).kind, Difference::Kind::kEqual);
}

TEST(Verdict, NonFiniteOnBothSidesIsStillCompared) {
  const Item masked = Tensor({7.0, -kInfStatistic, -kInfStatistic, kInfStatistic});
  EXPECT_EQ(Of(Tensor({kNanStatistic, kNanStatistic, kNanStatistic, kNanStatistic}), masked).reason,
            "nonfinite-position");
  const Item positive = Tensor({kInfStatistic, kInfStatistic, kInfStatistic, kInfStatistic});
  const Item negative = Tensor({-kInfStatistic, -kInfStatistic, -kInfStatistic, kInfStatistic});
  EXPECT_EQ(Of(positive, negative).reason, "nonfinite-position");
  // The finite extreme of a masked tensor differs.
  const Difference scaled =
      Of(Tensor({700.0, -kInfStatistic, -kInfStatistic, kInfStatistic}), masked);
  EXPECT_EQ(scaled.kind, Difference::Kind::kNumeric);
  EXPECT_GT(scaled.error, 1);
  Item least = masked;
  least.finite_extremes = std::array<Recorded, 2>{7.0, 1.0};
  Item other = masked;
  other.finite_extremes = std::array<Recorded, 2>{7.0, 2.0};
  EXPECT_GT(Of(other, least).error, 0.1);
  // Unequal digests stay unequal.
  Item a = masked;
  Item b = masked;
  a.has_recorded_digest = b.has_recorded_digest = true;
  a.digest = "00000001";
  b.digest = "00000002";
  EXPECT_EQ(DifferenceOf(a, b, {CompareMode::kDigest}, nullptr).reason, "digest-differs");
  // What was measured of the finite elements counts.
  TensorMetrics metrics;
  metrics.max_abs_error = 693.0;
  metrics.relative_l2 = 50.0;
  metrics.mismatch_count = 2;
  const Difference measured = DifferenceOf(masked, masked, {CompareMode::kTensor}, &metrics);
  EXPECT_EQ(measured.kind, Difference::Kind::kNumeric);
  EXPECT_EQ(measured.error, 50.0);
}

TEST(Verdict, AMissingStatisticIsNoAgreement) {
  const Item whole = Tensor({1.0, -1.0, 0.5, 1.5});
  Item item = whole;
  item.statistics[2] = std::monostate();
  EXPECT_EQ(Of(item, whole).reason, "no-data");
  EXPECT_EQ(Of(whole, item).reason, "no-data");
  item.statistics.fill(std::monostate());
  EXPECT_EQ(Of(item, whole).reason, "no-data");
  EXPECT_EQ(Of(item, item).reason, "no-data");
  // Release 26.2.0 leaves mean and norm of integers and float64 out.
  const Item full = Tensor({3.0, 1.0, 2.0, 4.0}, "torch.int64");
  Item extremes = full;
  extremes.statistics[2] = extremes.statistics[3] = std::monostate();
  EXPECT_EQ(Of(extremes, full).kind, Difference::Kind::kEqual);
}

TEST(Verdict, IntegersAreExact) {
  EXPECT_TRUE(IsExact(Tensor({}, "torch.int64"), Tensor({}, "torch.bool")));
  EXPECT_FALSE(IsExact(Tensor({}, "torch.int64"), Tensor({}, "torch.float32")));
  const Item a = Tensor({int64_t{1} << 53, int64_t{1} << 53, std::monostate(), std::monostate()},
                        "torch.int64");
  Item b = a;
  b.statistics[0] = (int64_t{1} << 53) + 1;
  EXPECT_EQ(Of(b, a).kind, Difference::Kind::kNumeric);
  EXPECT_GT(Of(b, a).error, 0);
  // Rounding to float32 is allowed for between unlike recorders only, and never for one value.
  const Item exact = Tensor({33554433.0, 33554433.0, 33554433.0, 67108866.0}, "torch.int64");
  const Item rounded = Tensor({33554432.0, 33554432.0, 33554432.0, 67108864.0}, "torch.int64");
  EXPECT_EQ(Of(exact, rounded).kind, Difference::Kind::kEqual);
  EXPECT_EQ(DifferenceOf(exact, rounded, {CompareMode::kStatistics, false}, nullptr).kind,
            Difference::Kind::kNumeric);
  Item value = exact;
  Item other = rounded;
  value.shape = other.shape = Shape();
  EXPECT_EQ(Of(value, other).kind, Difference::Kind::kNumeric);
}

TEST(Verdict, ZeroOnBothSidesProvesNothing) {
  const Item zero = Tensor({0.0, 0.0, 0.0, 0.0});
  EXPECT_EQ(Of(zero, zero).reason, "zero-both");
  const Item ids =
      Tensor({int64_t{0}, int64_t{0}, std::monostate(), std::monostate()}, "torch.int64");
  EXPECT_EQ(Of(ids, ids).kind, Difference::Kind::kEqual);  // integers: a zero index is a value
}

TEST(Verdict, Float32CopiesOfIntegerStatisticsAreEqual) {
  // Recorded from the same int64 tensor by plumbline and by upstream, whose copy is float32.
  const Item exact = Tensor({19.0, 0.0, 9.733333333333333, 45.34313619501854}, "torch.int64");
  const Item copy = Tensor({19.0, 0.0, 9.733333587646484, 45.343135833740234}, "torch.int64");
  EXPECT_EQ(Of(exact, copy).kind, Difference::Kind::kEqual);
  EXPECT_EQ(Of(copy, exact).kind, Difference::Kind::kEqual);
  // Two exact values, or two copies, that differ are different tensors.
  Item other = exact;
  other.statistics[2] = 9.733333333433333;
  EXPECT_NE(Of(exact, other).kind, Difference::Kind::kEqual);
  other.statistics[2] = 9.733334541320801;  // the next but three float32
  EXPECT_NE(Of(copy, other).kind, Difference::Kind::kEqual);
  other.statistics[2] = 9.7334;
  EXPECT_NE(Of(copy, other).kind, Difference::Kind::kEqual);
}

TEST(Verdict, EmptyAndUnrecordedAreNotComparable) {
  Item empty = Tensor({std::monostate(), std::monostate(), std::monostate(), std::monostate()});
  EXPECT_EQ(Of(empty, empty).reason, "no-data");
  empty.shape = Shape{0};
  EXPECT_EQ(Of(empty, empty).reason, "empty");
}

TEST(Verdict, DigestsDecideWithoutStatistics) {
  Item a = Tensor({std::monostate(), std::monostate(), std::monostate(), std::monostate()});
  Item b = a;
  a.has_recorded_digest = b.has_recorded_digest = true;
  a.digest = "00000001";
  b.digest = "00000001";
  EXPECT_EQ(DifferenceOf(a, b, {CompareMode::kDigest}, nullptr).kind, Difference::Kind::kEqual);
  b.digest = "00000002";
  const Difference d = DifferenceOf(a, b, {CompareMode::kDigest}, nullptr);
  EXPECT_EQ(d.verdict, Verdict::kSuspicious);
  EXPECT_EQ(d.reason, "digest-differs");
}

TEST(Verdict, ScalarArgumentsCompareByValueAndType) {
  EXPECT_EQ(Of(Scalar(1e-6, "a"), Scalar(1e-6, "a")).kind, Difference::Kind::kEqual);
  const Difference d = Of(Scalar(1e-5, "a"), Scalar(1e-6, "b"));
  EXPECT_EQ(d.kind, Difference::Kind::kArgument);
  EXPECT_NEAR(d.error, 9, 1e-9);
  EXPECT_EQ(Of(Scalar(kNanStatistic, "n"), Scalar(kNanStatistic, "n")).verdict,
            Verdict::kNotComparable);
  EXPECT_EQ(Of(Scalar(std::string("mean"), "a"), Scalar(std::string("sum"), "b")).error,
            kInfStatistic);
}

TEST(Verdict, NumbersThatSomebodyWrote) {
  const auto are_written = [](double a, double b) {
    return AreWrittenNumbers(Scalar(a, "a"), Scalar(b, "b"));
  };
  EXPECT_TRUE(are_written(0.103, 0.1));
  EXPECT_TRUE(are_written(0.127, 0.125));
  EXPECT_TRUE(are_written(-1.02e-8, 1e-8));
  EXPECT_FALSE(are_written(0.10009765625, 0.1));                     // a bfloat16 number
  EXPECT_FALSE(are_written(1.5, 1.25));                              // of any type
  EXPECT_FALSE(are_written(0.11180339887498948, 0.11180338));        // computed
  EXPECT_FALSE(are_written(0.10000000149011612, 0.10000000149012));  // float32
  EXPECT_FALSE(are_written(kInfStatistic, 0.1));
  EXPECT_FALSE(are_written(kNanStatistic, 0.1));
  EXPECT_FALSE(AreWrittenNumbers(Scalar(std::string("sum"), "a"), Scalar(0.1, "b")));
}

TEST(Verdict, TensorMetricsDecideInTensorMode) {
  const Item item = Tensor({1.0, -1.0, 0.0, 1.5});
  const auto reason = [&](Absent absent) {
    const TensorMetrics metrics = AbsentMetrics(absent);
    return DifferenceOf(item, item, {CompareMode::kTensor}, &metrics).reason;
  };
  EXPECT_EQ(reason(Absent::kUnreadable), "unreadable");
  EXPECT_EQ(reason(Absent::kNonFinite), "nonfinite-position");
  EXPECT_EQ(reason(Absent::kNotRecorded), "no-data");
}

TEST(Accuracy, ThresholdsOfUpstream) {
  const auto text = [](double cosine, double max_abs) {
    TensorMetrics metrics;
    metrics.cosine = cosine;
    metrics.max_abs_error = max_abs;
    return AccuracyText(metrics);
  };
  EXPECT_EQ(text(1, 0), "Yes");
  EXPECT_EQ(text(0.95, 0.001), "Yes");
  EXPECT_EQ(text(0.95, 0.0011), "No");
  EXPECT_EQ(text(0.995, 0.9), "Yes");
  EXPECT_EQ(text(0.995, 1.1), "No");
  EXPECT_EQ(text(0.89, 0), "No");
  EXPECT_EQ(text(kNanStatistic, 0), "No");
  EXPECT_EQ(text(1, kNanStatistic), "No");
}

TEST(Verdict, AMultipleIsToldByItsStatistics) {
  const auto sized = [](double max, double min, double mean, double norm) {
    Item item = Tensor({max, min, mean, norm});
    item.shape = Shape{16};
    return item;
  };
  const Item golden = sized(2, -1, 0.25, 4);
  EXPECT_TRUE(IsMultiple(sized(6, -3, 0.75, 12), golden));
  EXPECT_TRUE(IsMultiple(sized(0.5, -1, -0.125, 2), golden));  // of the other sign
  EXPECT_FALSE(IsMultiple(golden, golden));
  EXPECT_FALSE(IsMultiple(sized(6, -3, 0.74, 12), golden));
  EXPECT_FALSE(IsMultiple(sized(0, 0, 0, 0), golden));
  EXPECT_FALSE(IsMultiple(sized(kNanStatistic, -3, 0.75, 12), golden));
  const Item few = Tensor({2.0, -1.0, 0.25, 4.0});
  EXPECT_FALSE(IsMultiple(Tensor({6.0, -3.0, 0.75, 12.0}), few));
}

TEST(Accuracy, ZeroNormEmptyAndScalars) {
  TensorMetrics metrics;
  metrics.cosine = Absent::kZeroNorm;
  metrics.max_abs_error = 0.5;
  EXPECT_EQ(AccuracyText(metrics), "No");  // upstream: "Yes"
  EXPECT_EQ(AccuracyText(AbsentMetrics(Absent::kEmpty)), "None");
  EXPECT_EQ(AccuracyText(AbsentMetrics(Absent::kShapeMismatch)), "Unmatched");
  EXPECT_EQ(AccuracyText(AbsentMetrics(Absent::kNonFinite)), "No");
  metrics.cosine = Absent::kScalar;
  metrics.max_relative_error = 0.5;
  EXPECT_EQ(AccuracyText(metrics), "No");
  metrics.max_abs_error = 0.0;
  EXPECT_EQ(AccuracyText(metrics), "Yes");
}

}  // namespace
}  // namespace plumbline::measure
