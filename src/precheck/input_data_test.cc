#include "precheck/input_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/process/parallel.h"
#include "tensor/element_value.h"

namespace plumbline::precheck::input_data_test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TensorFill FillOf(DType dtype, const Shape& shape, const ValueRange& range, uint64_t key = 7) {
  TensorFill fill;
  fill.dtype = dtype;
  fill.shape = shape;
  GeneratedData data;
  data.key = key;
  data.range = range;
  fill.source = data;
  return fill;
}

ValueRange Between(double low, double high) { return {low, high, low, high}; }

// The bytes that a call with this one input gets.
std::vector<std::byte> BytesOf(const TensorFill& fill) {
  PreparedCall call;
  call.fills.push_back(fill);
  std::vector<std::byte> bytes(static_cast<size_t>(*ElementCount(fill.shape)) *
                               InfoOf(fill.dtype).size_bytes);
  EXPECT_TRUE(FillInputs(call, bytes));
  return bytes;
}

std::vector<double> Drawn(const TensorFill& fill) {
  const std::vector<std::byte> bytes = BytesOf(fill);
  std::vector<double> values;
  const size_t size = InfoOf(fill.dtype).size_bytes;
  for (size_t i = 0; i < bytes.size(); i += size) {
    values.push_back(ElementAsDouble(fill.dtype, bytes.data() + i));
  }
  return values;
}

TEST(InputData, NumbersAreThoseOfSplitMix64) {
  // The published test vector of the generator, seed 1234567.
  const uint64_t expected[] = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                               4593380528125082431u, 16408922859458223821u};
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(StreamNumber(1234567, i), expected[i]);
}

TEST(InputData, StreamsDependOnEveryPartOfTheirName) {
  const StreamName name{"Functional.linear.0", "forward", "input_args.0"};
  const uint64_t key = StreamKey(1234, name);
  EXPECT_EQ(StreamKey(1234, name), key);
  EXPECT_NE(StreamKey(1235, name), key);
  EXPECT_NE(StreamKey(1234, {"Functional.linear.1", "forward", "input_args.0"}), key);
  EXPECT_NE(StreamKey(1234, {"Functional.linear.0", "backward", "input_args.0"}), key);
  EXPECT_NE(StreamKey(1234, {"Functional.linear.0", "forward", "input_args.1"}), key);
  EXPECT_NE(StreamKey(1234, {"Functional.linear.0forward", "", "input_args.0"}), key);
}

TEST(InputData, FirstAndLastElementAreTheEndsOfTheRange) {
  const std::vector<double> values = Drawn(FillOf(DType::kFloat32, {4, 4}, Between(-5, 5)));
  EXPECT_EQ(values.front(), -5);
  EXPECT_EQ(values.back(), 5);
  for (const double value : values) EXPECT_LE(std::abs(value), 5);
  EXPECT_GT(std::abs(values[1] - values[2]), 1e-6);
}

TEST(InputData, NaNAmongFiniteElementsIsOneElement) {
  const std::vector<double> values = Drawn(FillOf(DType::kFloat32, {6}, {kNaN, kNaN, 1, 2}));
  EXPECT_EQ(values[0], 1);
  EXPECT_TRUE(std::isnan(values[1]));
  for (size_t i = 2; i < 6; ++i) EXPECT_TRUE(values[i] >= 1 && values[i] <= 2) << values[i];
  EXPECT_EQ(values[5], 2);
  const std::vector<double> two = Drawn(FillOf(DType::kFloat16, {2}, {kNaN, kNaN, 1, 2}));
  EXPECT_TRUE(std::isnan(two[0]));
  EXPECT_EQ(two[1], 2);
}

TEST(InputData, InfiniteEndsAreOneElementEach) {
  const std::vector<double> high = Drawn(FillOf(DType::kFloat32, {8}, {1, kInf, 1, 2}));
  EXPECT_EQ(high.front(), 1);
  EXPECT_EQ(high.back(), kInf);
  for (size_t i = 0; i < 7; ++i) EXPECT_LE(high[i], 2);
  const std::vector<double> low = Drawn(FillOf(DType::kBFloat16, {8}, {-kInf, 3, -kInf, 3}));
  EXPECT_EQ(low.front(), -kInf);
  EXPECT_TRUE(std::all_of(low.begin() + 1, low.end(), [](double x) { return std::isfinite(x); }));
}

TEST(InputData, WithoutFiniteElementsAllAreNaNOrInfinite) {
  for (const double value : Drawn(FillOf(DType::kFloat64, {5}, Between(kNaN, kNaN)))) {
    EXPECT_TRUE(std::isnan(value));
  }
  EXPECT_EQ(Drawn(FillOf(DType::kFloat32, {3, 2}, Between(-kInf, kInf))),
            (std::vector<double>{kInf, kInf, kInf, kInf, -kInf, -kInf}));
  EXPECT_EQ(Drawn(FillOf(DType::kFloat32, {}, Between(-kInf, kInf))), std::vector<double>{kInf});
  for (const double end : {kInf, -kInf}) {
    EXPECT_EQ(Drawn(FillOf(DType::kFloat16, {2, 2}, Between(end, end))),
              (std::vector<double>{end, end, end, end}));
  }
}

TEST(InputData, WideRangesDoNotOverflow) {
  for (const double value : Drawn(FillOf(DType::kFloat32, {1000}, Between(-3e38, 3e38)))) {
    EXPECT_TRUE(std::isfinite(value));
  }
  for (const double value : Drawn(FillOf(DType::kFloat64, {1000}, Between(-1.7e308, 1.7e308)))) {
    EXPECT_TRUE(std::isfinite(value));
  }
  // What a foreign file claims of a narrow type is cut to what the type holds.
  for (const double value : Drawn(FillOf(DType::kFloat16, {1000}, Between(-1e30, 1e30)))) {
    EXPECT_LE(std::abs(value), 65504);
  }
}

TEST(InputData, AMaskIsTakenByFewElementsAndTheRestIsPlausible) {
  const auto check = [](DType dtype, double mask, double end) {
    const double low = std::min(mask, end), high = std::max(mask, end);
    const std::vector<double> values = Drawn(FillOf(dtype, {6400}, Between(low, high)));
    const auto masked = std::ranges::count(values, mask);
    EXPECT_NEAR(static_cast<double>(masked), 200, 4 * std::sqrt(200.0)) << InfoOf(dtype).name;
    EXPECT_EQ(std::ranges::count_if(values, [&](double x) { return std::abs(x) <= 4; }),
              6400 - masked);
    EXPECT_EQ(values.front(), low);
    EXPECT_EQ(values.back(), high);
    EXPECT_NE(values[1], values[2]);
  };
  check(DType::kFloat32, -std::numeric_limits<float>::max(), 4);
  check(DType::kFloat32, -10000, 0);
  check(DType::kFloat16, -65504, 4);
  check(DType::kBFloat16, -0x1.FEp+127, 0.5);
  check(DType::kFloat64, 1e300, -3);
  check(DType::kFloat32, -1e9F, 1);
}

TEST(InputData, RangesWithoutAMaskAreUniform) {
  // Both ends, ends that are not far from each other, and large positive numbers are values.
  for (const ValueRange& range : {Between(-3e38, 3e38), Between(-20000, 100), Between(0, 20000),
                                  Between(-9000, 0), Between(-3e38, -2e38)}) {
    const std::vector<double> values = Drawn(FillOf(DType::kFloat32, {1000}, range));
    const double middle = range.low / 2 + range.high / 2;
    const auto below = std::ranges::count_if(values, [&](double x) { return x < middle; });
    EXPECT_NEAR(static_cast<double>(below), 500, 4 * std::sqrt(250.0)) << range.low;
  }
}

TEST(InputData, EveryFloatingTypeStaysInItsRange) {
  for (const DType dtype :
       {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kFloat8E4M3FN,
        DType::kFloat8E5M2, DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2FNUZ}) {
    const std::vector<double> values = Drawn(FillOf(dtype, {3001}, Between(-0.5, 1.5)));
    EXPECT_EQ(values.front(), -0.5);
    EXPECT_EQ(values.back(), 1.5);
    const auto [least, most] = std::ranges::minmax_element(values);
    EXPECT_EQ(*least, -0.5);
    EXPECT_EQ(*most, 1.5);
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 3001;
    // Four standard errors of the mean of a uniform distribution of width 2.
    EXPECT_NEAR(mean, 0.5, 4 * 2 / std::sqrt(12.0 * 3001) + 0.01) << InfoOf(dtype).name;
  }
}

TEST(InputData, NarrowTypesAreTheSameNumbersRounded) {
  const ValueRange range = Between(-70, 3);
  const std::vector<double> wide = Drawn(FillOf(DType::kFloat32, {5000}, range));
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const std::vector<double> narrow = Drawn(FillOf(dtype, {5000}, range));
    for (size_t i = 0; i < wide.size(); ++i) {
      const NarrowFormat format = *NarrowFormatOf(dtype);
      const auto value = static_cast<float>(wide[i]);
      EXPECT_EQ(narrow[i], NarrowToFloat(format, FloatToNarrow(format, value)));
    }
  }
}

TEST(InputData, IntegersHaveBothEndsAndAllBetween) {
  const std::vector<double> values = Drawn(FillOf(DType::kInt64, {500}, Between(0, 9.7)));
  std::vector<int> counts(10);
  for (const double value : values) {
    ASSERT_TRUE(value >= 0 && value <= 9 && value == std::floor(value)) << value;
    ++counts[static_cast<size_t>(value)];
  }
  EXPECT_EQ(values.front(), 0);
  EXPECT_EQ(values.back(), 9);
  for (const int count : counts) EXPECT_NEAR(count, 50, 4 * std::sqrt(45.0));
}

TEST(InputData, IntegersFitTheirType) {
  const std::vector<double> bytes = Drawn(FillOf(DType::kInt8, {400}, Between(-1000, 1000)));
  EXPECT_EQ(*std::ranges::min_element(bytes), -128);
  EXPECT_EQ(*std::ranges::max_element(bytes), 127);
  const std::vector<std::byte> wide = BytesOf(FillOf(DType::kInt64, {2}, Between(-0x1p63, 0x1p63)));
  EXPECT_EQ(LoadAs<int64_t>(wide.data()), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(LoadAs<int64_t>(wide.data() + 8), std::numeric_limits<int64_t>::max());
  const std::vector<std::byte> natural = BytesOf(FillOf(DType::kUInt64, {2}, Between(-3, 0x1p64)));
  EXPECT_EQ(LoadAs<uint64_t>(natural.data()), 0u);
  EXPECT_EQ(LoadAs<uint64_t>(natural.data() + 8), std::numeric_limits<uint64_t>::max());
}

TEST(InputData, BoolsAreDrawnFromTheIntegersOfTheRange) {
  const std::vector<double> both = Drawn(FillOf(DType::kBool, {400}, Between(0, 1)));
  const double share = std::accumulate(both.begin(), both.end(), 0.0) / 400;
  EXPECT_NEAR(share, 0.5, 0.1);
  for (const double value : Drawn(FillOf(DType::kBool, {9}, Between(1, 1)))) EXPECT_EQ(value, 1);
  for (const double value : Drawn(FillOf(DType::kBool, {9}, Between(0, 0)))) EXPECT_EQ(value, 0);
}

TEST(InputData, ComplexMagnitudesAreInTheRangeAndPhasesAllAround) {
  const std::vector<std::byte> bytes = BytesOf(FillOf(DType::kComplex64, {400}, Between(2, 3)));
  std::vector<int> quadrants(4);
  for (size_t i = 0; i < 400; ++i) {
    const std::complex<double> z(LoadAs<float>(bytes.data() + 8 * i),
                                 LoadAs<float>(bytes.data() + 8 * i + 4));
    EXPECT_GE(std::abs(z), 2 - 1e-6);
    EXPECT_LE(std::abs(z), 3 + 1e-6);
    ++quadrants[(z.real() < 0 ? 1 : 0) + (z.imag() < 0 ? 2 : 0)];
  }
  EXPECT_EQ(LoadAs<float>(bytes.data()), 2);
  EXPECT_EQ(LoadAs<float>(bytes.data() + 8 * 399), 3);
  for (const int count : quadrants) EXPECT_NEAR(count, 100, 4 * std::sqrt(75.0));
}

TEST(InputData, ThreadsDoNotChangeAnElement) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat64, DType::kInt32,
                            DType::kBool, DType::kComplex64}) {
    const bool is_masked = dtype == DType::kBFloat16;
    const TensorFill fill = FillOf(dtype, {300001}, Between(is_masked ? -3e38 : 0, 1));
    std::vector<std::byte> one, many;
    RunWithThreads(1, [&] { one = BytesOf(fill); });
    RunWithThreads(4, [&] { many = BytesOf(fill); });
    EXPECT_TRUE(one == many) << InfoOf(dtype).name;
  }
}

TEST(InputData, ElementsStayWhatTheyAreForever) {
  // Computed by a Python program from the definition: another machine, compiler or release must not
  // draw other inputs.
  const uint64_t key = StreamKey(1234, {"Functional.linear.0", "forward", "input_args.0"});
  EXPECT_EQ(key, 0x8086d6e0ecd6337dULL);
  const std::vector<double> values = Drawn(FillOf(DType::kFloat32, {8}, Between(-1, 1), key));
  EXPECT_EQ(values, (std::vector<double>{-1, 0x1.aeab1ap-4, 0x1.0ae99p-1, -0x1.5786ep-5,
                                         0x1.03e5c8p-1, -0x1.ff1a3p-1, -0x1.790290p-1, 1}));
}

TEST(InputData, Hf32RoundsHalfUpToElevenBits) {
  const auto rounded = [](uint32_t bits) {
    const double value = std::bit_cast<float>(bits);
    TensorFill fill = FillOf(DType::kFloat32, {3}, Between(value, value));
    fill.rounds_to_hf32 = true;
    return LoadAs<uint32_t>(BytesOf(fill).data() + 4);
  };
  EXPECT_EQ(rounded(0x3F800800), 0x3F801000u);
  EXPECT_EQ(rounded(0x3F800400), 0x3F800000u);
  EXPECT_EQ(rounded(0xBF800800), 0xBF801000u);
  EXPECT_EQ(rounded(0x7FC00000), 0x7FC00000u);
  EXPECT_EQ(rounded(0x7F800000), 0x7F800000u);
}

TEST(InputData, DistinctIndicesAreLegalAndDistinctAlongTheirDimension) {
  TensorFill fill = FillOf(DType::kInt64, {3, 5, 2}, Between(0, 6));
  auto& data = std::get<GeneratedData>(fill.source);
  data.pattern = Pattern::kDistinct;
  data.dimension = 1;
  data.extent = 7;
  const std::vector<double> values = Drawn(fill);
  for (size_t outer = 0; outer < 3; ++outer) {
    for (size_t inner = 0; inner < 2; ++inner) {
      std::vector<double> line;
      for (size_t i = 0; i < 5; ++i) line.push_back(values[(outer * 5 + i) * 2 + inner]);
      std::ranges::sort(line);
      EXPECT_GE(line.front(), 0);
      EXPECT_LT(line.back(), 7);
      EXPECT_EQ(std::ranges::adjacent_find(line), line.end());
    }
  }
}

TEST(InputData, AscendingLengthsEndAtTheRecordedMaximum) {
  TensorFill fill = FillOf(DType::kInt32, {20}, Between(0, 4096));
  std::get<GeneratedData>(fill.source).pattern = Pattern::kAscending;
  const std::vector<double> values = Drawn(fill);
  EXPECT_TRUE(std::ranges::is_sorted(values));
  EXPECT_EQ(values.front(), 0);
  EXPECT_EQ(values.back(), 4096);
}

TensorRecord RecordOf(Statistic low, Statistic high) {
  TensorRecord record;
  record.min = low;
  record.max = high;
  return record;
}

TEST(InputData, RangesComeFromTheStatistics) {
  TensorRecord record = RecordOf(-kInf, kNaN);
  record.min_finite = Statistic(-2.0);
  record.max_finite = Statistic(int64_t{3});
  const OrSkip<ValueRange> range = RangeOf(record, DType::kFloat32);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->low, -2);
  EXPECT_EQ(range->high, 3);
  EXPECT_EQ(range->raw_low, -kInf);
  EXPECT_TRUE(std::isnan(range->raw_high));
  EXPECT_EQ(RangeOf(RecordOf(false, true), DType::kBool)->high, 1);
}

TEST(InputData, RangesThatSayNothingAreSkipped) {
  for (const auto& [low, high] : std::vector<std::pair<Statistic, Statistic>>{
           {Statistic(), Statistic(1.0)}, {Statistic(1.0), Statistic()}, {kNaN, 1.0}}) {
    const OrSkip<ValueRange> range = RangeOf(RecordOf(low, high), DType::kFloat32);
    ASSERT_FALSE(range);
    EXPECT_EQ(range.error().cause, SkipCause::kBadArgument);
  }
  EXPECT_FALSE(RangeOf(RecordOf(kNaN, kNaN), DType::kInt32));
}

}  // namespace
}  // namespace plumbline::precheck::input_data_test
