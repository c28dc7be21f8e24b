// Every class from values made here by independent arithmetic; the classifier sees tensors only.

#include "measure/cause_class.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "tensor/half.h"

namespace plumbline::measure {
namespace {

// A float tensor that owns its memory.
struct Made {
  Shape sizes;
  std::vector<int64_t> strides;
  std::vector<std::byte> bytes;
  DType dtype = DType::kFloat32;

  [[nodiscard]] TensorView view() const { return {dtype, bytes.data(), sizes, strides}; }
};

// Elements rounded to `dtype` (float32, float16, bfloat16 or bool).
Made Make(const Shape& sizes, const std::vector<double>& values, DType dtype = DType::kFloat32) {
  Made made{sizes, ContiguousStrides(sizes), {}, dtype};
  made.bytes.resize(values.size() * InfoOf(dtype).size_bytes);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto single = static_cast<float>(values[i]);
    if (dtype == DType::kFloat32) {
      std::memcpy(&made.bytes[i * 4], &single, 4);
    } else if (dtype == DType::kBool) {
      made.bytes[i] = std::byte{values[i] != 0};
    } else {
      const auto bits = static_cast<uint16_t>(FloatToNarrow(*NarrowFormatOf(dtype), single));
      std::memcpy(&made.bytes[i * 2], &bits, 2);
    }
  }
  return made;
}

// Uniform in (-1, 1), or nearly normal; a fixed sequence per seed.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed * 2 + 1) {}
  double Uniform() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state_ >> 11) / 4503599627370496.0 - 1;
  }
  double Normal() {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += Uniform() / 2;
    return sum;
  }

 private:
  uint64_t state_;
};

std::vector<double> Normal(size_t count, uint64_t seed, double mean = 0) {
  Numbers numbers(seed);
  std::vector<double> values(count);
  for (double& value : values) value = mean + numbers.Normal();
  return values;
}

std::vector<double> Mapped(std::vector<double> values,
                           const std::function<double(double, size_t)>& map) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = map(values[i], i);
  return values;
}

Cause Classify(const Made& target, const Made& golden,
               const std::vector<CauseCandidate>& candidates = {}, const std::string& api = "f") {
  const Result<Cause> cause =
      ClassifyTensors({target.view(), golden.view(), api, false, 0, candidates});
  EXPECT_TRUE(cause.has_value());
  return cause ? *cause : Cause{};
}

const Shape kShape = {8, 6, 16};
constexpr size_t kCount = 768;

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

TEST(CauseClass, OneFactorIsScale) {
  for (const double factor : {0.5, 2.0, 1 / std::sqrt(16), 1.1, 1e-3}) {
    ExpectOnEveryType("scale", [=](double v, size_t) { return v * factor; });
  }
}

TEST(CauseClass, ScaleNamesTheDimension) {
  const std::vector<double> golden = Normal(kCount, 1);
  const Cause cause = Classify(
      Make({12, 64}, Mapped(golden, [](double v, size_t) { return v / std::sqrt(12); })),
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
  const Cause cause = Classify(
      Make(kShape, open), Make(kShape, Mapped(open, [](double v, size_t) { return std::fmax(v, 0); })));
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

// --- values at other places ------------------------------------------------------------------

TEST(CauseClass, ExchangedAxesAreTransposed) {
  const std::vector<double> golden = Normal(256, 11);
  std::vector<double> target(256);
  for (size_t r = 0; r < 16; ++r) {
    for (size_t c = 0; c < 16; ++c) target[c * 16 + r] = golden[r * 16 + c];
  }
  EXPECT_EQ(Classify(Make({16, 16}, target), Make({16, 16}, golden)).code, "transposed");
}

TEST(CauseClass, ViewInsteadOfTranspositionIsTransposed) {
  // Golden [4, 8, 3] holds x[8, 4, 3] transposed; the target holds x as it was.
  const std::vector<double> x = Normal(96, 12);
  std::vector<double> golden(96);
  for (size_t a = 0; a < 8; ++a) {
    for (size_t b = 0; b < 4; ++b) {
      for (size_t c = 0; c < 3; ++c) golden[(b * 8 + a) * 3 + c] = x[(a * 4 + b) * 3 + c];
    }
  }
  EXPECT_EQ(Classify(Make({4, 8, 3}, x), Make({4, 8, 3}, golden)).code, "transposed");
}

TEST(CauseClass, OtherShapeThatIsTheTranspositionIsTransposed) {
  const std::vector<double> golden = Normal(24, 13);
  std::vector<double> target(24);
  for (size_t r = 0; r < 4; ++r) {
    for (size_t c = 0; c < 6; ++c) target[c * 4 + r] = golden[r * 6 + c];
  }
  EXPECT_EQ(Classify(Make({6, 4}, target), Make({4, 6}, golden)).code, "transposed");
  EXPECT_EQ(Classify(Make({6, 4}, golden), Make({4, 6}, golden)).code, "structure");
  EXPECT_EQ(Classify(Make({24}, golden), Make({4, 6}, golden)).code, "structure");
}

TEST(CauseClass, RolledIsShifted) {
  const std::vector<double> golden = Normal(kCount, 14);
  for (const size_t inner : {size_t{1}, size_t{16}, size_t{96}}) {
    const size_t length = inner == 1 ? 16 : inner == 16 ? 6 : 8;
    const std::vector<double> target = Mapped(golden, [&](double, size_t i) {
      const size_t at = i / inner % length;
      return golden[i - at * inner + (at + 2) % length * inner];
    });
    const Cause cause = Classify(Make(kShape, target), Make(kShape, golden));
    EXPECT_EQ(cause.code, "shifted") << cause.text;
    EXPECT_NE(cause.text.find("i+2"), std::string::npos) << cause.text;
  }
}

TEST(CauseClass, MovedWithOtherEdgeIsShifted) {
  const std::vector<double> all = Normal(16 * 9, 15);
  const std::vector<double> golden(all.begin() + 16, all.end());
  const std::vector<double> target(all.begin(), all.end() - 16);
  const Cause cause = Classify(Make({8, 16}, target), Make({8, 16}, golden));
  EXPECT_EQ(cause.code, "shifted") << cause.text;
  EXPECT_NE(cause.text.find("i-1"), std::string::npos) << cause.text;
}

TEST(CauseClass, CausalMaskOffByOneIsShifted) {
  std::vector<double> golden(144), target(144), infinite(144), moved(144);
  for (size_t r = 0; r < 12; ++r) {
    for (size_t c = 0; c < 12; ++c) {
      golden[r * 12 + c] = c <= r;
      target[r * 12 + c] = c < r;
      infinite[r * 12 + c] = c <= r ? 0 : -std::numeric_limits<double>::infinity();
      moved[r * 12 + c] = c <= r + 1 ? 0 : -std::numeric_limits<double>::infinity();
    }
  }
  EXPECT_EQ(Classify(Make({12, 12}, target, DType::kBool), Make({12, 12}, golden, DType::kBool)).code,
            "shifted");
  EXPECT_EQ(Classify(Make({12, 12}, moved), Make({12, 12}, infinite)).code, "shifted");
}

TEST(CauseClass, ExchangedRowsArePermuted) {
  const std::vector<double> golden = Normal(kCount, 16);
  const std::vector<double> target = Mapped(golden, [&](double v, size_t i) {
    const size_t row = i / 96;
    return row == 1 ? golden[i + 96 * 4] : row == 5 ? golden[i - 96 * 4] : v;
  });
  const Cause cause = Classify(Make(kShape, target), Make(kShape, golden));
  EXPECT_EQ(cause.code, "permuted");
  EXPECT_NE(cause.text.find("1 and 5 are exchanged"), std::string::npos) << cause.text;
}

TEST(CauseClass, ReversedColumnsArePermuted) {
  const std::vector<double> golden = Normal(kCount, 17);
  const std::vector<double> target =
      Mapped(golden, [&](double, size_t i) { return golden[i / 16 * 16 + 15 - i % 16]; });
  EXPECT_EQ(Classify(Make(kShape, target), Make(kShape, golden)).code, "permuted");
}

TEST(CauseClass, InterleavedInsteadOfHalvesIsPermuted) {
  const std::vector<double> golden = Normal(kCount, 18);
  const std::vector<double> target = Mapped(golden, [&](double, size_t i) {
    const size_t c = i % 16;
    return golden[i / 16 * 16 + (c % 2) * 8 + c / 2];
  });
  EXPECT_EQ(Classify(Make(kShape, target), Make(kShape, golden)).code, "permuted");
}

// --- NaN and infinities ----------------------------------------------------------------------

TEST(CauseClass, NanNamesTheLaneAndTheDivisor) {
  const std::vector<double> golden = Normal(kCount, 19);
  const Made divisor = Make({16}, Mapped(Normal(16, 20), [](double v, size_t i) {
    return i == 5 ? 0 : v;
  }));
  const Made dividend = Make(kShape, Normal(kCount, 21));
  const std::vector<double> target = Mapped(golden, [](double v, size_t i) {
    return i % 16 == 5 ? std::numeric_limits<double>::infinity() : v;
  });
  const Cause cause = Classify(
      Make(kShape, target), Make(kShape, golden),
      {{"input.0", CauseCandidate::Role::kOperand, dividend.view()},
       {"input.1", CauseCandidate::Role::kOperand, divisor.view()}},
      "div");
  EXPECT_EQ(cause.code, "nonfinite");
  EXPECT_NE(cause.text.find("axis 2 (of 16) at 5"), std::string::npos) << cause.text;
  EXPECT_NE(cause.text.find("input.1 is 0 there: division by zero"), std::string::npos)
      << cause.text;
}

TEST(CauseClass, OverflowOfHalfNamesTheGoldenValue) {
  const std::vector<double> golden = Mapped(Normal(64, 22), [](double v, size_t i) {
    return i == 7 ? 70000 : v;
  });
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
  const Cause rows = Classify(
      Make(kShape, Mapped(golden, [&](double v, size_t i) { return v + bias[i % 16]; })),
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
  const Cause cause = Classify(
      Make(kShape, x), Make(kShape, Mapped(x, [&](double v, size_t i) { return v * gain[i % 16]; })),
      {{"weight", CauseCandidate::Role::kOperand, weight.view()}});
  EXPECT_EQ(cause.code, "scale");
  EXPECT_NE(cause.text.find("without the factor weight"), std::string::npos) << cause.text;
}

TEST(CauseClass, EarlierValueIsStale) {
  const Made old = Make(kShape, Normal(kCount, 31));
  const Made golden = Make(kShape, Normal(kCount, 32));
  EXPECT_EQ(Classify(old, golden, {{"w of step 0", CauseCandidate::Role::kEarlierStep, old.view()}})
                .code,
            "stale");
  EXPECT_EQ(Classify(old, golden, {{"x", CauseCandidate::Role::kEarlier, old.view()}}).code, "stale");
}

TEST(CauseClass, OwnShareOfACollectiveIsNotReduced) {
  const std::vector<double> own = Normal(kCount, 33);
  const std::vector<double> other = Normal(kCount, 34);
  const Made share = Make(kShape, own);
  const Made second = Make(kShape, other);
  const Made sum = Make(kShape, Mapped(own, [&](double v, size_t i) { return v + other[i]; }));
  const Made mean = Make(kShape, Mapped(own, [&](double v, size_t i) { return (v + other[i]) / 2; }));
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
  const Cause cause = Classify(input, Make(kShape, Mapped(x, [](double v, size_t) { return v / 8; })),
                               {{"input.0", CauseCandidate::Role::kOperand, input.view()}});
  EXPECT_EQ(cause.code, "scale");
  EXPECT_NE(cause.text.find("no effect"), std::string::npos) << cause.text;
}

// --- precision and random numbers ------------------------------------------------------------

TEST(CauseClass, ValuesOfANarrowerTypeAreNarrowed) {
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

TEST(CauseClass, OperandsRoundedEarlyAreNarrowed) {
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

TEST(CauseClass, RecordedOperandsTellRoundingThemFromRoundingTheSum) {
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
        Make({32, 24}, Mapped(rounded, [](double v, size_t i) {
               return v + 1e-5 * std::sin(static_cast<double>(i));
             })),
        golden, operands, "linear");
    EXPECT_EQ(sum.code, "accumulation") << sum.text;
  }
}

TEST(CauseClass, BatchedProductWithABiasIsDoneAgain) {
  const auto half = [](double v) {
    return static_cast<double>(
        NarrowToFloat(kFloat16Format, FloatToNarrow(kFloat16Format, static_cast<float>(v))));
  };
  const std::vector<double> x = Normal(3 * 8 * 16, 56);
  const std::vector<double> w = Normal(3 * 16 * 10, 57);
  std::vector<double> golden(3 * 8 * 10), target(3 * 8 * 10);
  for (size_t b = 0; b < 3; ++b) {
    for (size_t m = 0; m < 8; ++m) {
      for (size_t n = 0; n < 10; ++n) {
        for (size_t k = 0; k < 16; ++k) {
          const double left = x[(b * 8 + m) * 16 + k];
          const double right = w[(b * 16 + k) * 10 + n];
          golden[(b * 8 + m) * 10 + n] += left * right;
          target[(b * 8 + m) * 10 + n] += half(left) * half(right);
        }
      }
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

TEST(CauseClass, NarrowAccumulatorIsAccumulation) {
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

TEST(CauseClass, OtherNumbersOfOneKindAreARandomStream) {
  const Cause cause = Classify(Make(kShape, Normal(kCount, 42)), Make(kShape, Normal(kCount, 43)));
  EXPECT_EQ(cause.code, "random") << cause.text;
  EXPECT_EQ(cause.confidence, CauseConfidence::kMedium);
}

TEST(CauseClass, SmallDenseChangesOfAParameterAreAnotherVersion) {
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

TEST(CauseClass, DropoutOnOneSideAndOnBoth) {
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
    EXPECT_EQ(Classify(Make(kShape, drop(1, rate)), Make(kShape, drop(2, rate))).code,
              "random");
  }
}

// --- nothing fits ----------------------------------------------------------------------------

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
