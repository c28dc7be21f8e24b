// Narrow types, sums and random numbers: the classifier against roundings done here.

#include "measure/cause_precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "measure/cause_for_test.h"
#include "tensor/half.h"

namespace plumbline::measure {
namespace {

TEST(CausePrecision, ValuesOfANarrowerTypeAreNarrowed) {
  const std::vector<double> golden = Normal(kCount, 37);
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    const NarrowFormat& format = *NarrowFormatOf(dtype);
    const std::vector<double> target = Mapped(golden, [&](double v, size_t) {
      return NarrowToFloat(format, FloatToNarrow(format, static_cast<float>(v)));
    });
    const Cause cause = Classify(Make(kShape, target), Make(kShape, golden));
    EXPECT_EQ(cause.code, "narrowed");
    EXPECT_EQ(cause.confidence, CauseConfidence::kHigh);
  }
}

// Integers of `levels` steps with one scale, or one per row of 96.
std::vector<double> OnGrid(const std::vector<double>& values, double levels, bool per_row) {
  return Mapped(values, [&](double v, size_t i) {
    const size_t length = per_row ? kCount / 8 : kCount;
    const size_t first = i / length * length;
    double largest = 0;
    for (size_t k = first; k < first + length; ++k) {
      largest = std::max(largest, std::abs(values[k]));
    }
    const double step = static_cast<double>(static_cast<float>(largest / levels));
    return std::nearbyint(v / step) * step;
  });
}

TEST(CausePrecision, WholeMultiplesOfOneStepAreNarrowedToIntegers) {
  const std::vector<double> golden = Normal(kCount, 71);
  for (const double levels : {127.0, 7.0}) {
    for (const bool per_row : {false, true}) {
      const Cause cause =
          Classify(Make(kShape, OnGrid(golden, levels, per_row)), Make(kShape, golden));
      EXPECT_EQ(cause.code, "narrowed") << levels << cause.text;
      EXPECT_NE(cause.text.find(levels > 8 ? "8-bit" : "4-bit"), std::string::npos) << cause.text;
    }
  }
  // Random changes of that size are on no grid.
  const std::vector<double> noise = Normal(kCount, 72);
  const Cause cause = Classify(
      Make(kShape, Mapped(golden, [&](double v, size_t i) { return v + 0.01 * noise[i]; })),
      Make(kShape, golden));
  EXPECT_EQ(cause.text.find("whole multiples"), std::string::npos) << cause.text;
}

TEST(CausePrecision, AFewOtherElementsAreNotRandom) {
  const std::vector<double> golden = Normal(40, 73, 3);
  const Cause cause =
      Classify(Make({40}, Mapped(golden, [](double v, size_t i) { return i == 7 ? 3 * v : v; })),
               Make({40}, golden));
  EXPECT_NE(cause.code, "random") << cause.text;
  EXPECT_EQ(Classify(Make({40}, Normal(40, 74, 3)), Make({40}, golden)).code, "random");
}

// x[M,K] w[N,K], with the operands or every partial sum rounded to a type.
std::vector<double> Product(const std::vector<double>& x, const std::vector<double>& w, size_t k,
                            const std::function<double(double)>& operand,
                            const std::function<double(double)>& partial) {
  const size_t rows = x.size() / k;
  const size_t columns = w.size() / k;
  std::vector<double> y(rows * columns);
  for (size_t i = 0; i < y.size(); ++i) {
    double sum = 0;
    for (size_t j = 0; j < k; ++j) {
      sum = partial(sum + operand(x[i / columns * k + j]) * operand(w[i % columns * k + j]));
    }
    y[i] = sum;
  }
  return y;
}

double Exact(double v) { return v; }

TEST(CausePrecision, OperandsRoundedEarlyAreNarrowed) {
  const auto round = [](double v) {
    return static_cast<double>(
        NarrowToFloat(kBFloat16Format, FloatToNarrow(kBFloat16Format, static_cast<float>(v))));
  };
  const std::vector<double> x = Normal(32 * 64, 38);
  const std::vector<double> w = Normal(24 * 64, 39);
  const Cause cause = Classify(Make({32, 24}, Product(x, w, 64, round, Exact)),
                               Make({32, 24}, Product(x, w, 64, Exact, Exact)), {}, "linear");
  EXPECT_EQ(cause.code, "narrowed") << cause.text;
}

TEST(CausePrecision, RecordedOperandsTellRoundingThemFromRoundingTheSum) {
  const auto bfloat = [](double v) {
    return static_cast<double>(
        NarrowToFloat(kBFloat16Format, FloatToNarrow(kBFloat16Format, static_cast<float>(v))));
  };
  const auto half = [](double v) {
    return static_cast<double>(
        NarrowToFloat(kFloat16Format, FloatToNarrow(kFloat16Format, static_cast<float>(v))));
  };
  const std::vector<double> x = Normal(32 * 64, 54);
  const std::vector<double> w = Normal(24 * 64, 55);
  const Made golden = Make({32, 24}, Product(x, w, 64, Exact, Exact));
  const Made left = Make({32, 64}, x);
  const Made right = Make({24, 64}, w);
  const std::vector<CauseCandidate> operands = {
      {"input.0", CauseCandidate::Role::kOperand, left.view()},
      {"input.1", CauseCandidate::Role::kOperand, right.view()}};
  for (const auto& round : {std::function<double(double)>(bfloat), {half}}) {
    const Cause operand =
        Classify(Make({32, 24}, Product(x, w, 64, round, Exact)), golden, operands, "linear");
    EXPECT_EQ(operand.code, "narrowed") << operand.text;
    EXPECT_EQ(operand.confidence, CauseConfidence::kHigh) << operand.text;
    const std::vector<double> rounded = Product(x, w, 64, Exact, round);
    // Widened and added to something, so that the values are not those of the narrow type.
    const Cause sum = Classify(
        Make({32, 24},
             Mapped(rounded, [](double v,
                                size_t i) { return v + 1e-5 * std::sin(static_cast<double>(i)); })),
        golden, operands, "linear");
    EXPECT_EQ(sum.code, "accumulation") << sum.text;
  }
}

TEST(CausePrecision, BatchedProductIsDoneAgain) {
  const auto half = [](double v) {
    return static_cast<double>(
        NarrowToFloat(kFloat16Format, FloatToNarrow(kFloat16Format, static_cast<float>(v))));
  };
  const std::vector<double> x = Normal(3 * 8 * 16, 56);
  const std::vector<double> w = Normal(3 * 16 * 10, 57);
  std::vector<double> golden(3 * 8 * 10), target(3 * 8 * 10);
  for (size_t i = 0; i < golden.size(); ++i) {
    const size_t row = i / 10;  // of all matrices
    for (size_t k = 0; k < 16; ++k) {
      const double left = x[row * 16 + k];
      const double right = w[(row / 8 * 16 + k) * 10 + i % 10];
      golden[i] += left * right;
      target[i] += half(left) * half(right);
    }
  }
  const Made left = Make({3, 8, 16}, x);
  const Made right = Make({3, 16, 10}, w);
  const Cause cause = Classify(Make({3, 8, 10}, target), Make({3, 8, 10}, golden),
                               {{"input.0", CauseCandidate::Role::kOperand, left.view()},
                                {"input.1", CauseCandidate::Role::kOperand, right.view()}},
                               "bmm");
  EXPECT_EQ(cause.code, "narrowed");
  EXPECT_NE(cause.text.find("float16"), std::string::npos) << cause.text;
}

TEST(CausePrecision, NarrowAccumulatorIsAccumulation) {
  const auto round = [](double v) {
    return static_cast<double>(
        NarrowToFloat(kFloat16Format, FloatToNarrow(kFloat16Format, static_cast<float>(v))));
  };
  const std::vector<double> x = Normal(32 * 512, 40);
  const std::vector<double> w = Normal(24 * 512, 41);
  const Cause cause =
      Classify(Make({32, 24}, Product(x, w, 512, Exact, round), DType::kFloat16),
               Make({32, 24}, Product(x, w, 512, Exact, Exact), DType::kFloat16), {}, "linear");
  EXPECT_EQ(cause.code, "accumulation") << cause.text;
}

TEST(CausePrecision, OtherNumbersOfOneKindAreARandomStream) {
  const Cause cause = Classify(Make(kShape, Normal(kCount, 42)), Make(kShape, Normal(kCount, 43)));
  EXPECT_EQ(cause.code, "random") << cause.text;
  EXPECT_EQ(cause.confidence, CauseConfidence::kMedium);
}

TEST(CausePrecision, SmallDenseChangesOfAParameterAreAnotherVersion) {
  const std::vector<double> golden = Normal(kCount, 52);
  const std::vector<double> step = Normal(kCount, 53);
  const Made target =
      Make(kShape, Mapped(golden, [&](double v, size_t i) { return v + 1e-3 * step[i]; }));
  const Made before = Make(kShape, golden);
  const Result<Cause> cause = ClassifyTensors({target.view(), before.view(), "", true, 0, {}});
  ASSERT_TRUE(cause.has_value());
  EXPECT_EQ(cause->code, "stale") << cause->text;
  EXPECT_EQ(cause->confidence, CauseConfidence::kLow);
}

TEST(CausePrecision, DropoutOnOneSideAndOnBoth) {
  const std::vector<double> x = Normal(kCount, 44);
  const auto drop = [&](uint64_t seed, double rate) {
    Numbers numbers(seed);
    return Mapped(x, [&](double v, size_t) {
      return (numbers.Uniform() + 1) / 2 < rate ? 0 : v / (1 - rate);
    });
  };
  for (const double rate : {0.1, 0.5}) {
    EXPECT_EQ(Classify(Make(kShape, drop(1, rate)), Make(kShape, x)).code, "random");
    EXPECT_EQ(Classify(Make(kShape, x), Make(kShape, drop(1, rate))).code, "random");
    EXPECT_EQ(Classify(Make(kShape, drop(1, rate)), Make(kShape, drop(2, rate))).code, "random");
  }
}

}  // namespace
}  // namespace plumbline::measure
