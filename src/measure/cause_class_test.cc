// Every class from values made here by independent arithmetic; the classifier sees tensors only.

#include "measure/cause_class.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "measure/cause_arithmetic.h"
#include "measure/cause_for_test.h"
#include "tensor/half.h"

namespace plumbline::measure {
namespace {

// The class of a change of normal numbers, on float32 and rounded to both half types.
void ExpectOnEveryType(const std::string& code,
                       const std::function<double(double, size_t)>& change) {
  const std::vector<double> golden = Normal(kCount, 7, 0.25);
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    // The fault happens to the rounded values, and its result is rounded again.
    const Made stored = Make(kShape, golden, dtype);
    std::vector<double> rounded(kCount);
    for (size_t i = 0; i < kCount; ++i) {
      const std::byte* at = &stored.bytes[i * InfoOf(dtype).size_bytes];
      if (dtype == DType::kFloat32) {
        float value = 0;
        std::memcpy(&value, at, 4);
        rounded[i] = value;
      } else {
        uint16_t bits = 0;
        std::memcpy(&bits, at, 2);
        rounded[i] = NarrowToFloat(*NarrowFormatOf(dtype), bits);
      }
    }
    const Cause cause = Classify(Make(kShape, Mapped(rounded, change), dtype), stored);
    EXPECT_EQ(cause.code, code) << InfoOf(dtype).name << ": " << cause.text;
  }
}

TEST(FactorText, SaysWhatIsLeftNearOne) {
  EXPECT_EQ(FactorText(0.125, {}, 1e-6), "0.125 (near 1/8)");
  EXPECT_EQ(FactorText(1.0005, {}, 1e-9), "1.0005");
  EXPECT_EQ(FactorText(1 + 4.3e-6, {}, 1e-9), "1 + 4.3e-06");
  EXPECT_EQ(FactorText(1 - 4.3e-6, {}, 1e-9), "1 - 4.3e-06");
}

TEST(CauseClass, OneFactorIsScale) {
  for (const double factor : {0.5, 2.0, 1 / std::sqrt(16), 1.1, 1e-3}) {
    ExpectOnEveryType("scale", [=](double v, size_t) { return v * factor; });
  }
}

TEST(CauseClass, ScaleNamesTheDimension) {
  const std::vector<double> golden = Normal(kCount, 1);
  const Cause cause =
      Classify(Make({12, 64}, Mapped(golden, [](double v, size_t) { return v / std::sqrt(12); })),
               Make({12, 64}, golden));
  EXPECT_EQ(cause.code, "scale");
  EXPECT_NE(cause.text.find("1/sqrt(12)"), std::string::npos) << cause.text;
  EXPECT_EQ(cause.confidence, CauseConfidence::kHigh);
}

TEST(CauseClass, FactorPerRowIsScale) {
  ExpectOnEveryType("scale", [](double v, size_t i) {
    return v * (1 + 0.5 * static_cast<double>(i / 16 % 48) / 48.0);
  });
}

TEST(CauseClass, MinusOneIsSign) {
  ExpectOnEveryType("sign", [](double v, size_t) { return -v; });
}

TEST(CauseClass, OneConstantIsOffset) {
  ExpectOnEveryType("offset", [](double v, size_t) { return v + 0.75; });
}

TEST(CauseClass, ConstantPerChannelIsOffset) {
  ExpectOnEveryType("offset",
                    [](double v, size_t i) { return v + 1 + static_cast<double>(i / 16 % 6); });
}

TEST(CauseClass, BlockOfZerosIsZeroed) {
  ExpectOnEveryType("zeroed-block", [](double v, size_t i) { return i / 16 % 6 == 2 ? 0 : v; });
  ExpectOnEveryType("zeroed-block", [](double, size_t) { return 0.0; });
}

TEST(CauseClass, ClampedIsSaturated) {
  ExpectOnEveryType("saturated", [](double v, size_t) { return std::fmin(v, 0.5); });
}

TEST(CauseClass, OnlyGoldenClampedIsNotSaturated) {
  const std::vector<double> open = Normal(kCount, 3);
  const Cause cause =
      Classify(Make(kShape, open),
               Make(kShape, Mapped(open, [](double v, size_t) { return std::fmax(v, 0); })));
  EXPECT_EQ(cause.code, "not-saturated") << cause.text;
}

TEST(CauseClass, FactorInOneHeadNamesTheHead) {
  ExpectOnEveryType("scale", [](double v, size_t i) { return i / 16 % 6 == 4 ? 3 * v : v; });
  const std::vector<double> golden = Normal(kCount, 9);
  const Cause cause = Classify(
      Make(kShape, Mapped(golden, [](double v, size_t i) { return i / 16 % 6 == 4 ? -v : v; })),
      Make(kShape, golden));
  EXPECT_EQ(cause.code, "sign");
  EXPECT_NE(cause.text.find("axis 1 (of 6) at 4"), std::string::npos) << cause.text;
}

// --- NaN and infinities ----------------------------------------------------------------------

TEST(CauseClass, NanNamesTheLaneAndTheDivisor) {
  const std::vector<double> golden = Normal(kCount, 19);
  const Made divisor =
      Make({16}, Mapped(Normal(16, 20), [](double v, size_t i) { return i == 5 ? 0 : v; }));
  const Made dividend = Make(kShape, Normal(kCount, 21));
  const std::vector<double> target = Mapped(golden, [](double v, size_t i) {
    return i % 16 == 5 ? std::numeric_limits<double>::infinity() : v;
  });
  const Cause cause = Classify(Make(kShape, target), Make(kShape, golden),
                               {{"input.0", CauseCandidate::Role::kOperand, dividend.view()},
                                {"input.1", CauseCandidate::Role::kOperand, divisor.view()}},
                               "div");
  EXPECT_EQ(cause.code, "nonfinite");
  EXPECT_NE(cause.text.find("axis 2 (of 16) at 5"), std::string::npos) << cause.text;
  EXPECT_NE(cause.text.find("input.1 is 0 there: division by zero"), std::string::npos)
      << cause.text;
}

TEST(CauseClass, OverflowOfHalfNamesTheGoldenValue) {
  const std::vector<double> golden =
      Mapped(Normal(64, 22), [](double v, size_t i) { return i == 7 ? 70000 : v; });
  const Cause cause = Classify(Make({64}, golden, DType::kFloat16), Make({64}, golden));
  EXPECT_EQ(cause.code, "nonfinite");
  EXPECT_NE(cause.text.find("70000"), std::string::npos) << cause.text;
  EXPECT_NE(cause.text.find("overflow"), std::string::npos) << cause.text;
}

TEST(CauseClass, LargestNumberForInfinityIsSaturated) {
  std::vector<double> golden = Normal(64, 23);
  std::vector<double> target = golden;
  golden[9] = -std::numeric_limits<double>::infinity();
  target[9] = -65504;
  EXPECT_EQ(Classify(Make({64}, target, DType::kFloat16), Make({64}, golden, DType::kFloat16)).code,
            "saturated");
}

TEST(CauseClass, NanInGoldenOnlySaysSo) {
  std::vector<double> golden = Normal(64, 24);
  const std::vector<double> target = golden;
  golden[3] = std::nan("");
  const Cause cause = Classify(Make({64}, target), Make({64}, golden));
  EXPECT_EQ(cause.code, "nonfinite");
  EXPECT_NE(cause.text.find("golden tensor only"), std::string::npos) << cause.text;
}

// --- candidates ------------------------------------------------------------------------------

TEST(CauseClass, MissingResidualIsMissingAddend) {
  const std::vector<double> x = Normal(kCount, 25);
  const std::vector<double> branch = Normal(kCount, 26);
  const std::vector<double> sum = Mapped(x, [&](double v, size_t i) { return v + branch[i]; });
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const Made operand = Make(kShape, x, dtype);
    const Cause cause = Classify(Make(kShape, branch, dtype), Make(kShape, sum, dtype),
                                 {{"input.0", CauseCandidate::Role::kOperand, operand.view()}});
    EXPECT_EQ(cause.code, "missing-addend") << cause.text;
    EXPECT_NE(cause.text.find("without input.0"), std::string::npos) << cause.text;
  }
}

TEST(CauseClass, BiasIsAnAddendInRowsAndInConvolutionChannels) {
  const std::vector<double> golden = Normal(kCount, 27);
  const std::vector<double> bias = Normal(16, 28);
  const Made last = Make({16}, bias);
  const Cause rows =
      Classify(Make(kShape, Mapped(golden, [&](double v, size_t i) { return v + bias[i % 16]; })),
               Make(kShape, golden), {{"bias", CauseCandidate::Role::kOperand, last.view()}});
  EXPECT_EQ(rows.code, "extra-addend") << rows.text;
  const Made channel = Make({6}, {bias.begin(), bias.begin() + 6});
  const Cause channels = Classify(
      Make(kShape, Mapped(golden, [&](double v, size_t i) { return v - bias[i / 16 % 6]; })),
      Make(kShape, golden), {{"bias", CauseCandidate::Role::kOperand, channel.view()}});
  EXPECT_EQ(channels.code, "missing-addend") << channels.text;
}

TEST(CauseClass, MissingGainIsAFactor) {
  const std::vector<double> x = Normal(kCount, 29);
  const std::vector<double> gain = Mapped(Normal(16, 30), [](double v, size_t) { return 1.5 + v; });
  const Made weight = Make({16}, gain);
  const Cause cause =
      Classify(Make(kShape, x),
               Make(kShape, Mapped(x, [&](double v, size_t i) { return v * gain[i % 16]; })),
               {{"weight", CauseCandidate::Role::kOperand, weight.view()}});
  EXPECT_EQ(cause.code, "scale");
  EXPECT_NE(cause.text.find("without the factor weight"), std::string::npos) << cause.text;
}

TEST(CauseClass, EarlierValueIsStale) {
  const Made old = Make(kShape, Normal(kCount, 31));
  const Made golden = Make(kShape, Normal(kCount, 32));
  EXPECT_EQ(
      Classify(old, golden, {{"w of step 0", CauseCandidate::Role::kEarlierStep, old.view()}}).code,
      "stale");
  EXPECT_EQ(Classify(old, golden, {{"x", CauseCandidate::Role::kEarlier, old.view()}}).code,
            "stale");
}

TEST(CauseClass, OwnShareOfACollectiveIsNotReduced) {
  const std::vector<double> own = Normal(kCount, 33);
  const std::vector<double> other = Normal(kCount, 34);
  const Made share = Make(kShape, own);
  const Made second = Make(kShape, other);
  const Made sum = Make(kShape, Mapped(own, [&](double v, size_t i) { return v + other[i]; }));
  const Made mean =
      Make(kShape, Mapped(own, [&](double v, size_t i) { return (v + other[i]) / 2; }));
  EXPECT_EQ(Classify(share, sum, {{"input.0", CauseCandidate::Role::kOperand, share.view()}},
                     "all_reduce")
                .code,
            "not-reduced");
  for (const Made* golden : {&sum, &mean}) {
    const Cause cause =
        Classify(share, *golden, {{"rank1", CauseCandidate::Role::kRankShare, second.view()}});
    EXPECT_EQ(cause.code, "not-reduced") << cause.text;
  }
}

TEST(CauseClass, BroadcastThatReturnsItsInputIsNotApplied) {
  const Made own = Make(kShape, Normal(kCount, 40));
  const Cause cause =
      Classify(own, Make(kShape, Normal(kCount, 41)),
               {{"input.0", CauseCandidate::Role::kOperand, own.view()}}, "broadcast");
  EXPECT_EQ(cause.code, "not-applied") << cause.text;
}

TEST(CauseClass, ValueOfAnotherRankIsOtherRank) {
  const Made theirs = Make(kShape, Normal(kCount, 42));
  const Made near = Make(kShape, Normal(kCount, 43));
  const Made golden = Make(kShape, Normal(kCount, 44));
  const auto classify = [&](const Made& other) {
    return Classify(theirs, golden,
                    {{"x of golden's rank0", CauseCandidate::Role::kOtherRank, other.view()}});
  };
  EXPECT_EQ(classify(theirs).code, "other-rank");
  EXPECT_NE(classify(near).code, "other-rank");
}

// Another rank's golden value is no addend of a sum over the target's ranks.
TEST(CauseClass, ValuesOfOtherRanksAreNotAddedUp) {
  const std::vector<double> own = Normal(kCount, 45);
  const std::vector<double> other = Normal(kCount, 46);
  const Made share = Make(kShape, own);
  const Made second = Make(kShape, other);
  const Made sum = Make(kShape, Mapped(own, [&](double v, size_t i) { return v + other[i]; }));
  EXPECT_NE(Classify(share, sum, {{"rank1", CauseCandidate::Role::kOtherRank, second.view()}}).code,
            "not-reduced");
}

TEST(CauseClass, InputPassedThroughIsNotApplied) {
  const std::vector<double> x = Normal(kCount, 35);
  const Made input = Make(kShape, x);
  const Cause cause =
      Classify(input, Make(kShape, Mapped(x, [](double v, size_t) { return std::tanh(v); })),
               {{"input.0", CauseCandidate::Role::kOperand, input.view()}});
  EXPECT_EQ(cause.code, "not-applied") << cause.text;
}

TEST(CauseClass, MissingScaleIsScaleAlthoughTheInputIsUnchanged) {
  const std::vector<double> x = Normal(kCount, 36);
  const Made input = Make(kShape, x);
  const Cause cause =
      Classify(input, Make(kShape, Mapped(x, [](double v, size_t) { return v / 8; })),
               {{"input.0", CauseCandidate::Role::kOperand, input.view()}});
  EXPECT_EQ(cause.code, "scale");
  EXPECT_NE(cause.text.find("no effect"), std::string::npos) << cause.text;
}

// --- nothing fits ----------------------------------------------------------------------------

// Beside a large golden tensor any small target is nearly a fraction of it.
TEST(CauseClass, SmallUnrelatedTargetIsNoScale) {
  const std::vector<double> golden = Normal(kCount, 61);
  const std::vector<double> other =
      Mapped(Normal(kCount, 62), [&](double v, size_t i) { return 0.01 * (v + golden[i] / 8); });
  const Cause cause = Classify(Make(kShape, other), Make(kShape, golden));
  EXPECT_NE(cause.code, "scale") << cause.text;
  const auto half = [](double v, size_t) { return 0.01 * v; };
  EXPECT_EQ(Classify(Make(kShape, Mapped(golden, half)), Make(kShape, golden)).code, "scale");
}

TEST(CauseClass, EqualToAnEarlierValueIsMoreThanALooseFit) {
  const std::vector<double> earlier = Normal(kCount, 63);
  const std::vector<double> update = Normal(kCount, 64);
  const auto step = [&](double noise) {
    const std::vector<double> other = Normal(kCount, 65);
    return Mapped(earlier,
                  [&](double v, size_t i) { return v - 0.1 * update[i] - noise * other[i]; });
  };
  const Made old = Make(kShape, earlier);
  const Made change = Make(kShape, update);
  const std::vector<CauseCandidate> candidates = {
      {"update", CauseCandidate::Role::kEarlier, change.view()},
      {"weight", CauseCandidate::Role::kEarlier, old.view()}};
  EXPECT_EQ(Classify(old, Make(kShape, step(1e-3)), candidates).code, "stale");
  // Without the other difference both are true, and the addend says more.
  EXPECT_EQ(Classify(old, Make(kShape, step(0)), candidates).code, "extra-addend");
}

TEST(CauseClass, GainOfOnesIsNoAddend) {
  const std::vector<double> golden = Normal(kCount, 67);
  const Made ones = Make({16}, std::vector<double>(16, 1.0));
  const auto shifted = [&](double c) {
    return Classify(Make(kShape, Mapped(golden, [&](double v, size_t) { return v - c; })),
                    Make(kShape, golden),
                    {{"weight", CauseCandidate::Role::kOperand, ones.view()}});
  };
  EXPECT_EQ(shifted(0.05).code, "offset");
  EXPECT_EQ(shifted(1).code, "missing-addend");
}

TEST(CauseClass, ZerosOfAnOperandAreNotAZeroedBlock) {
  std::vector<double> cache = Normal(kCount, 66);
  std::vector<double> stored = cache;
  for (size_t i = 0; i < 16; ++i) cache[i] = 0;
  const Made before = Make(kShape, cache);
  EXPECT_EQ(Classify(before, Make(kShape, stored),
                     {{"input.0", CauseCandidate::Role::kOperand, before.view()}})
                .code,
            "not-applied");
  EXPECT_EQ(Classify(before, Make(kShape, stored)).code, "zeroed-block");
}

TEST(CauseClass, EqualEmptyAndSingleTensorsAreUnexplained) {
  const Made values = Make(kShape, Normal(kCount, 45));
  EXPECT_FALSE(Classify(values, values).is_explained());
  const Made empty = Make({0, 4}, {});
  EXPECT_FALSE(Classify(empty, empty).is_explained());
  EXPECT_FALSE(Classify(Make({}, {1.37}), Make({}, {0.411})).is_explained());
  const Cause half = Classify(Make({}, {0.5}), Make({}, {1}));
  EXPECT_EQ(half.confidence, CauseConfidence::kLow);
}

TEST(CauseClass, AllNanBothSidesIsUnexplained) {
  const Made nan = Make({4, 4}, std::vector<double>(16, std::nan("")));
  EXPECT_FALSE(Classify(nan, nan).is_explained());
}

TEST(CauseClass, OneWrongBlockWithoutPatternIsABlock) {
  const std::vector<double> golden = Normal(kCount, 46);
  Numbers numbers(47);
  const std::vector<double> target = Mapped(golden, [&](double v, size_t i) {
    return i / 96 == 3 ? v * v + 0.3 * numbers.Uniform() : v;
  });
  const Cause cause = Classify(Make(kShape, target), Make(kShape, golden));
  EXPECT_EQ(cause.code, "block") << cause.text;
  EXPECT_NE(cause.text.find("axis 0 (of 8) at 3"), std::string::npos) << cause.text;
}

TEST(CauseClass, AnotherFunctionIsUnexplained) {
  const std::vector<double> x = Normal(kCount, 48, 0.5);
  const Cause cause =
      Classify(Make(kShape, Mapped(x, [](double v, size_t) { return std::sin(3 * v) + v * v; })),
               Make(kShape, x));
  EXPECT_FALSE(cause.is_explained()) << cause.code << ": " << cause.text;
}

TEST(CauseClass, LargeTensorIsSeenInAWindowAroundTheDifference) {
  constexpr int64_t kRows = 3, kColumns = int64_t{1} << 20;
  std::vector<double> golden(static_cast<size_t>(kRows * kColumns));
  Numbers numbers(49);
  for (double& value : golden) value = numbers.Uniform();
  std::vector<double> target = golden;
  for (size_t i = target.size() - 1000; i < target.size(); ++i) target[i] = 0;
  const Cause cause = Classify(Make({kRows, kColumns}, target), Make({kRows, kColumns}, golden));
  EXPECT_EQ(cause.code, "zeroed-block") << cause.text;
  EXPECT_NE(cause.text.find("part of the tensor"), std::string::npos) << cause.text;
}

}  // namespace
}  // namespace plumbline::measure
