#include "precheck/output_grade.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensor/half.h"

namespace plumbline::precheck::output_grade_test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// One side of a call: values whose tensors lie in `memory`.
class Side {
 public:
  template <class T>
  CallValue Tensor(DType dtype, Shape shape, const std::vector<T>& elements) {
    TensorPlace place;
    place.dtype = dtype;
    place.shape = std::move(shape);
    place.offset = memory_.size();
    memory_.resize(memory_.size() + elements.size() * sizeof(T));
    if (!elements.empty()) {
      std::memcpy(&memory_[place.offset], elements.data(), elements.size() * sizeof(T));
    }
    return CallValue(place);
  }
  CallValue Floats(const std::vector<float>& elements) {
    return Tensor(DType::kFloat32, {static_cast<int64_t>(elements.size())}, elements);
  }
  CallValue Doubles(const std::vector<double>& elements) {
    return Tensor(DType::kFloat64, {static_cast<int64_t>(elements.size())}, elements);
  }
  CallValue Halves(const std::vector<float>& elements) {
    std::vector<uint16_t> bits;
    for (const float x : elements) {
      bits.push_back(static_cast<uint16_t>(FloatToNarrow(kFloat16Format, x)));
    }
    return Tensor(DType::kFloat16, {static_cast<int64_t>(elements.size())}, bits);
  }
  CallValue BFloats(const std::vector<float>& elements) {
    std::vector<uint16_t> bits;
    for (const float x : elements) {
      bits.push_back(static_cast<uint16_t>(FloatToNarrow(kBFloat16Format, x)));
    }
    return Tensor(DType::kBFloat16, {static_cast<int64_t>(elements.size())}, bits);
  }
  [[nodiscard]] std::span<const std::byte> memory() const { return memory_; }

 private:
  std::vector<std::byte> memory_;
};

CallValue List(std::vector<CallValue> items, Sequence kind = Sequence::kList) {
  return CallValue(CallSequence{kind, std::move(items)});
}
CallValue Int(int64_t value) { return CallValue(value); }
CallValue Text(const char* text) { return CallValue(std::string(text)); }

struct Call {
  std::string name = "Functional.softmax.0";
  std::string api = "softmax";
  Direction direction = Direction::kForward;
};

DirectionOutcome Grade(const CallValue& bench, const Side& bench_side, const CallValue& device,
                       const Side& device_side, const Call& call = {}) {
  return GradeDirection(call.name, call.api, call.direction,
                        {&bench, bench_side.memory(), &device, device_side.memory()}, {});
}
// Of values without tensors.
DirectionOutcome Grade(const CallValue& bench, const CallValue& device) {
  return Grade(bench, {}, device, {});
}
OutputRow GradeFloats(const std::vector<double>& bench, const std::vector<float>& device,
                      const Call& call = {}) {
  Side b, d;
  const CallValue bench_value = b.Doubles(bench);
  const CallValue device_value = d.Floats(device);
  return Grade(bench_value, b, device_value, d, call).rows.at(0);
}
OutputRow GradeHalves(const std::vector<float>& bench, const std::vector<float>& device,
                      const Call& call = {}) {
  Side b, d;
  const CallValue bench_value = b.Floats(bench);
  const CallValue device_value = d.Halves(device);
  return Grade(bench_value, b, device_value, d, call).rows.at(0);
}
double ValueOf(const Cell& cell) { return cell ? cell->value : kNaN; }

// ---- The ladder ----

TEST(OutputGrade, RoundingOfLargeTermsNearZeroIsNoError) {
  // Three of a hundred elements are what is left of terms around 3, as behind a normalisation.
  std::vector<float> bench(100, 3.0F), device(100, 3.0F);
  for (size_t i = 0; i < 3; ++i) bench[i] = 0.01F, device[i] = 0.0125F;
  const OutputRow rounded = GradeHalves(bench, device);
  EXPECT_EQ(rounded.status, CheckStatus::kWarning);
  EXPECT_NE(rounded.message.find("rounding may do that"), std::string::npos) << rounded.message;
  // One unit of the last place of 3 is 2^-10 x 3 = 0.0029 here.
  for (size_t i = 0; i < 3; ++i) device[i] = 0.014F;
  EXPECT_EQ(GradeHalves(bench, device).status, CheckStatus::kError);
}

TEST(OutputGrade, InfinityOnTheDeviceIsAnError) {
  const OutputRow row = GradeFloats(
      {1, -2, 0.5, 0x1p-23, 3},
      {1 + 0x1p-23F, -2, 0.5F - 0x1p-25F, 0x1p-22F, std::numeric_limits<float>::infinity()});
  EXPECT_EQ(row.status, CheckStatus::kError);
  EXPECT_TRUE(std::isnan(ValueOf(row.cosine)));
  EXPECT_EQ(ValueOf(row.small_value_error_ratio), 1);
  EXPECT_NEAR(ValueOf(row.rmse), 7.09446633947e-08, 1e-18);
  EXPECT_TRUE(row.rmse->is_double && row.max_rel_error->is_double && row.mean_rel_error->is_double);
  EXPECT_EQ(ValueOf(row.error_balance), 0.4);
  EXPECT_FALSE(row.max_abs_error.has_value());
  EXPECT_EQ(row.bench_dtype, "torch.float64");
  EXPECT_EQ(row.device_dtype, "torch.float32");
  EXPECT_EQ(row.shape, "(5,)");
}

// A mask of attention is full of them on every device.
TEST(OutputGrade, TheSameInfinitiesAreNoError) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr float kInfF = std::numeric_limits<float>::infinity();
  EXPECT_EQ(GradeFloats({-kInf, -kInf}, {-kInfF, -kInfF}).status, CheckStatus::kPass);
  EXPECT_EQ(GradeFloats({-kInf, 1, 2}, {-kInfF, 1, 2}).status, CheckStatus::kPass);
  EXPECT_EQ(GradeFloats({-kInf, 1, 2}, {-kInfF, 1, 2.5F}).status, CheckStatus::kError);
  EXPECT_EQ(GradeFloats({-kInf, 1, 2}, {kInfF, 1, 2}).status, CheckStatus::kError);
  EXPECT_EQ(GradeFloats({1, -kInf, 2}, {-kInfF, 1, 2}).status, CheckStatus::kError);
  EXPECT_EQ(GradeFloats({-kInf, 1, kNaN}, {-kInfF, 1, 2}).status, CheckStatus::kError);
}

TEST(OutputGrade, OneElementMayBeTheSameInfinity) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr float kInfF = std::numeric_limits<float>::infinity();
  const OutputRow row = GradeFloats({kInf}, {kInfF});
  EXPECT_EQ(row.status, CheckStatus::kPass) << row.message;
  EXPECT_FALSE(row.is_all_zero);
  EXPECT_EQ(GradeFloats({kInf}, {-kInfF}).status, CheckStatus::kError);
  EXPECT_EQ(GradeFloats({kInf}, {3}).status, CheckStatus::kError);
  EXPECT_EQ(GradeFloats({3}, {kInfF}).status, CheckStatus::kError);
}

TEST(OutputGrade, NaNAtTheSamePlacesLeavesTheRestToBeJudged) {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const OutputRow row = GradeFloats({kNaN, 1, 2}, {nan, 1, 2});
  EXPECT_EQ(row.status, CheckStatus::kWarning);
  EXPECT_NE(row.message.find("1 element is NaN on both sides"), std::string::npos) << row.message;
  EXPECT_EQ(GradeFloats({kNaN, 1, 2}, {nan, 1, 2.5F}).status, CheckStatus::kError);
  EXPECT_EQ(GradeFloats({kNaN, 1, 2}, {1, nan, 2}).status, CheckStatus::kError);
  EXPECT_EQ(GradeFloats({kNaN, 1}, {1, 1}).status, CheckStatus::kError);
  EXPECT_EQ(GradeFloats({1, 1}, {nan, 1}).status, CheckStatus::kError);
  EXPECT_EQ(GradeFloats({kNaN}, {1}).status, CheckStatus::kError);
}

TEST(OutputGrade, NaNEverywhereIsNoComparison) {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  for (const OutputRow& row : {GradeFloats({kNaN, kNaN}, {nan, nan}), GradeHalves({nan}, {nan})}) {
    EXPECT_EQ(row.status, CheckStatus::kSkip);
    EXPECT_EQ(row.message, "no-output: All elements are NaN on both sides.");
    EXPECT_FALSE(row.rmse.has_value());
  }
}

TEST(OutputGrade, SmallErrorPassesAtTheSecondStep) {
  const OutputRow row = GradeFloats({1, 2, 3}, {1, 2, 3.0005F});
  EXPECT_EQ(row.status, CheckStatus::kPass);
  EXPECT_NEAR(ValueOf(row.cosine), 0.99999999681191, 1e-12);  // 3.0005 is rounded
  EXPECT_NEAR(ValueOf(row.max_abs_error), 0.0005, 1e-7);
  EXPECT_TRUE(row.max_abs_error->is_double);
  EXPECT_FALSE(row.thousandth.has_value());
  EXPECT_FALSE(row.facts.has_value());
  EXPECT_EQ(row.message, "Maximum absolute error 0.0005 is below 0.001.");
}

// 10 000 elements, one of them -10, the others 10; `off` of them times `factor` on the device.
OutputRow GradeTens(size_t off, float factor) {
  std::vector<double> bench(10000, 10);
  bench[0] = -10;
  std::vector<float> device(bench.begin(), bench.end());
  for (size_t i = 1; i <= off; ++i) device[i] *= factor;
  return GradeFloats(bench, device);
}

TEST(OutputGrade, TooFewThousandthsAreAnError) {
  const OutputRow row = GradeTens(20, 1.005F);
  EXPECT_EQ(row.status, CheckStatus::kError);
  EXPECT_EQ(ValueOf(row.thousandth), 0.998);
  EXPECT_FALSE(row.hundredth.has_value());
  EXPECT_EQ(ValueOf(row.ten_thousandth), 0.998);
  EXPECT_EQ(row.message,
            "Maximum absolute error 0.05 is not below 0.001. 20 of 10000 elements have a relative "
            "error of 0.001 or more, fewer than 0.1 % may.");
  ASSERT_TRUE(row.facts.has_value());
  EXPECT_EQ(row.facts->worst_index, 1U);
  EXPECT_EQ(row.facts->histogram[10], 20U);
}

TEST(OutputGrade, TooFewTenThousandthsAreAWarning) {
  const OutputRow row = GradeTens(5, 1.0005F);
  EXPECT_EQ(row.status, CheckStatus::kWarning);
  EXPECT_EQ(ValueOf(row.thousandth), 1);
  EXPECT_EQ(ValueOf(row.ten_thousandth), 0.9995);
}

TEST(OutputGrade, EqualValuesPassWithBlankShares) {
  const OutputRow row = GradeTens(0, 1);
  EXPECT_EQ(row.status, CheckStatus::kPass);
  EXPECT_EQ(ValueOf(row.max_abs_error), 0);
  EXPECT_FALSE(row.thousandth.has_value());
  EXPECT_FALSE(row.ten_thousandth.has_value());
}

TEST(OutputGrade, OneUnitOfTheLastPlaceOfFloat16Passes) {
  std::vector<float> bench(10000, 10);
  bench[0] = -10;
  std::vector<float> device = bench;
  for (size_t i = 1; i <= 5; ++i) device[i] += 0x1p-7F;
  const OutputRow row = GradeHalves(bench, device);
  EXPECT_EQ(row.status, CheckStatus::kPass);
  EXPECT_EQ(ValueOf(row.hundredth), 1);
  EXPECT_EQ(ValueOf(row.thousandth), 1);
  EXPECT_FALSE(row.ten_thousandth.has_value());
  EXPECT_FALSE(row.max_abs_error->is_double);
}

TEST(OutputGrade, OneSideAllZeroIsAnErrorBothAreNot) {
  EXPECT_EQ(GradeFloats({0, 0}, {0, 1e-6F}).status, CheckStatus::kError);
  EXPECT_EQ(GradeFloats({0, 1e-6}, {0, 0}).status, CheckStatus::kError);
  const OutputRow row = GradeFloats({0, 0}, {0, 0});
  EXPECT_EQ(row.status, CheckStatus::kPass);
  EXPECT_FALSE(row.cosine.has_value());
  EXPECT_TRUE(row.is_all_zero);
  EXPECT_EQ(row.message,
            "Both sides are all zero, which proves little. Maximum absolute error 0 is below "
            "0.001.");
}

// ---- What rounding leaves ----

// The gradient of the one argument of a call, `given` to its forward in the type of the device.
struct GradientCase {
  std::vector<float> given, incoming;
  std::vector<double> result;
  std::vector<double> bench;
  std::vector<float> device;
  std::string api = "softmax";
  std::vector<double> device_result = {};
};
OutputRow GradeGradient(const GradientCase& what, DType device_dtype = DType::kFloat32,
                        std::optional<DType> autocast = std::nullopt) {
  Side inputs, b, d;
  PreparedCall call;
  call.args.push_back(inputs.Floats(what.given));
  call.grads.emplace({inputs.Floats(what.incoming)});
  call.autocast = autocast;
  const CallValue forward = b.Doubles(what.result);
  const CallValue device_forward = d.Floats({what.device_result.begin(), what.device_result.end()});
  const bool is_half = device_dtype == DType::kBFloat16;
  const CallValue bench =
      List({is_half ? b.Floats({what.bench.begin(), what.bench.end()}) : b.Doubles(what.bench)});
  const CallValue device = List({is_half ? d.BFloats(what.device) : d.Floats(what.device)});
  GradeOptions options;
  options.given = {&call, inputs.memory(), {&forward, b.memory()}, {&device_forward, d.memory()}};
  const ReturnedPair pair = {&bench, b.memory(), &device, d.memory()};
  return GradeDirection("Functional." + what.api + ".0", what.api, Direction::kBackward, pair,
                        options)
      .rows.at(0);
}

// softmax(x).sum() has no gradient: y (1 - sum(y)) is what rounding leaves of it.
GradientCase OfSoftmaxSum() {
  return {{-1, 1, 0.5F, 0},
          {1, 1, 1, 1},
          {0.06, 0.47, 0.3, 0.17},
          {0, 0, 0, 0},
          {1e-8F, -2e-8F, 3e-8F, 1e-8F}};
}

TEST(OutputGrade, NothingButRoundingIsNoError) {
  GradientCase what = OfSoftmaxSum();
  for (const std::vector<double>& bench :
       {std::vector<double>{0, 0, 0, 0}, std::vector<double>{3e-16, -4e-16, 1e-16, 3e-16}}) {
    what.bench = bench;
    const OutputRow row = GradeGradient(what);
    EXPECT_EQ(row.status, CheckStatus::kWarning) << row.message;
    EXPECT_NE(row.message.find("Nothing but rounding is left"), std::string::npos) << row.message;
  }
  what.device = {0, 0, 0, 0};
  EXPECT_EQ(GradeGradient(what).status, CheckStatus::kWarning);  // the device alone is zero
  what.bench = {1e-9, 2e-8, -1e-8, 3e-9};
  what.device = {0.001F, 0.002F, -0.002F, 0.001F};
  EXPECT_EQ(GradeGradient(what, DType::kBFloat16).status, CheckStatus::kWarning);
}

TEST(OutputGrade, AWrongGradientIsMoreThanRounding) {
  GradientCase what = OfSoftmaxSum();
  what.device = {0.06F, 0.47F, 0.3F, 0.17F};  // the sum was forgotten
  EXPECT_EQ(GradeGradient(what).status, CheckStatus::kError);
  what.device = {1e-5F, -2e-5F, 3e-5F, 1e-5F};
  EXPECT_EQ(GradeGradient(what).status, CheckStatus::kError);
  // A small gradient is one nevertheless, and zeros are wrong.
  what.bench = {1e-6, -2e-6, 3e-6, 1e-6};
  what.device = {0, 0, 0, 0};
  EXPECT_EQ(GradeGradient(what).status, CheckStatus::kError);
  what.device = {-1e-6F, 2e-6F, -3e-6F, 1e-6F};
  EXPECT_EQ(GradeGradient(what).status, CheckStatus::kError);
}

TEST(OutputGrade, ASumThatCancelsIsNoError) {
  Side inputs, b, d;
  PreparedCall call;
  call.args.push_back(inputs.Floats({3, -1, -2, 1e-3F, -1e-3F}));
  const CallValue bench = b.Doubles({1e-17}), device = d.Floats({1e-7F}), wrong = d.Floats({1e-3F});
  GradeOptions options;
  options.given = {&call, inputs.memory(), {}, {}};
  const auto status = [&](const CallValue& of_device) {
    return GradeDirection("Torch.sum.0", "sum", Direction::kForward,
                          {&bench, b.memory(), &of_device, d.memory()}, options)
        .status;
  };
  EXPECT_EQ(status(device), CheckStatus::kWarning);
  EXPECT_EQ(status(wrong), CheckStatus::kError);
}

// Behind a normalisation the gradients that come in add up to nothing, but for their own roundings.
TEST(OutputGrade, ABiasWhoseGradientsCancelIsNoError) {
  Side inputs, b, d;
  PreparedCall call;
  for (const size_t elements : {8U, 8U, 2U}) {
    call.args.push_back(inputs.Floats(std::vector<float>(elements, 1)));
  }
  call.grads.emplace({inputs.Floats({2, -1, -1, 1, -1, 0.5F, 0.5F, -1})});
  const CallValue weights = b.Doubles({1, 2, 3, 4, 5, 6, 7, 8});
  const CallValue device_weights = d.Floats({1, 2, 3, 4, 5, 6, 7, 8});
  const CallValue bench = List({weights, weights, b.Doubles({2e-7, -3e-7})});
  const auto status = [&](const std::string& api, std::vector<float> bias) {
    const CallValue device = List({device_weights, device_weights, d.Floats(std::move(bias))});
    GradeOptions options;
    options.given = {&call, inputs.memory(), {}, {}};
    return GradeDirection("Functional." + api + ".0", api, Direction::kBackward,
                          {&bench, b.memory(), &device, d.memory()}, options)
        .status;
  };
  EXPECT_EQ(status("linear", {2.4e-7F, -4e-7F}), CheckStatus::kWarning);
  EXPECT_EQ(status("linear", {2.4e-4F, -4e-4F}), CheckStatus::kError);
  EXPECT_EQ(status("bilinear", {2.4e-7F, -4e-7F}), CheckStatus::kError);
}

// exp(x - y) with y = 20.03 as bfloat16 has it, 20: 3 % off everywhere.
TEST(OutputGrade, AnExponentialOfTheRoundedResultIsNoError) {
  GradientCase what = {{20, 16, 15, 14},
                       {1},
                       {20.03},
                       {0.97, 0.0178, 0.00654, 0.0024},
                       {1, 0.0183F, 0.00674F, 0.00248F},
                       "logsumexp",
                       {20}};
  const OutputRow row = GradeGradient(what, DType::kBFloat16);
  EXPECT_EQ(row.status, CheckStatus::kWarning) << row.message;
  EXPECT_NE(row.message.find("the exponential of the result"), std::string::npos);
  what.device[0] = 1.06F;
  EXPECT_EQ(GradeGradient(what, DType::kBFloat16).status, CheckStatus::kError);
  what.device[0] = 1;
  what.api = "norm";
  EXPECT_EQ(GradeGradient(what, DType::kBFloat16).status, CheckStatus::kError);
}

// ---- Regions of mixed precision ----

TEST(OutputGrade, AGradientOfARegionIsJudgedByItsType) {
  GradientCase what = {{-1, 1, 0.5F, 0},
                       {1, 1, 1, 1},
                       {1, 2, 3, 4},
                       {1, 2, -3, 0.5},
                       {1.004F, 2.004F, -3.008F, 0.5F},
                       "linear"};
  EXPECT_EQ(GradeGradient(what).status, CheckStatus::kError);
  const OutputRow row = GradeGradient(what, DType::kFloat32, DType::kBFloat16);
  EXPECT_EQ(row.status, CheckStatus::kWarning) << row.message;
  EXPECT_NE(row.message.find("In a region of torch.bfloat16"), std::string::npos) << row.message;
  what.device = {1, 2, -3.0015F, 0.5F};
  EXPECT_EQ(GradeGradient(what).status, CheckStatus::kWarning);
  EXPECT_EQ(GradeGradient(what, DType::kFloat32, DType::kBFloat16).status, CheckStatus::kPass);
  what.device = {1.1F, 2.1F, -3.1F, 0.5F};
  EXPECT_EQ(GradeGradient(what, DType::kFloat32, DType::kBFloat16).status, CheckStatus::kError);
  what.device = {1, 2, -3, 0.5F};
  EXPECT_EQ(GradeGradient(what, DType::kFloat32, DType::kBFloat16).message,
            "Maximum absolute error 0 is below 0.001.");
}

// ---- Arguments that a call changes in place ----

struct ChangedCase {
  ArgumentsAfter bench, device;
};
DirectionOutcome GradeChanged(const Side& b, const Side& d, const ChangedCase& changed) {
  const CallValue nothing;
  const ReturnedPair pair = {&nothing,   b.memory(),     &nothing,
                             d.memory(), &changed.bench, &changed.device};
  return GradeDirection("Tensor.__setitem__.0", "__setitem__", Direction::kForward, pair, {});
}

TEST(OutputGrade, AnArgumentChangedInPlaceIsComparedUnderItsPlace) {
  Side b, d;
  ChangedCase changed;
  changed.bench.changed = {{"0", b.Doubles({1, 2})}, {"3_1", b.Doubles({5, 5})}};
  changed.device.changed = {{"3_1", d.Floats({5, 6})}, {"0", d.Floats({1, 2})}};
  const DirectionOutcome outcome = GradeChanged(b, d, changed);
  ASSERT_EQ(outcome.rows.size(), 3U);
  EXPECT_EQ(outcome.rows[0].status, CheckStatus::kSkip);  // it returned nothing
  EXPECT_EQ(outcome.rows[1].name, "Tensor.__setitem__.0.forward.input.0");
  EXPECT_EQ(outcome.rows[1].status, CheckStatus::kPass);
  EXPECT_EQ(outcome.rows[1].message, "Changed in place. Maximum absolute error 0 is below 0.001.");
  EXPECT_EQ(outcome.rows[2].name, "Tensor.__setitem__.0.forward.input.3_1");
  EXPECT_EQ(outcome.rows[2].status, CheckStatus::kError);
  EXPECT_EQ(outcome.status, CheckStatus::kError);
}

TEST(OutputGrade, AnArgumentThatOneSideChangedIsAnError) {
  Side b, d;
  ChangedCase changed;
  changed.bench.changed = {{"0", b.Doubles({1, 2})}};
  EXPECT_EQ(GradeChanged(b, d, changed).rows.at(1).message,
            "Only the benchmark changed this argument in place.");
  EXPECT_EQ(GradeChanged(b, d, changed).status, CheckStatus::kError);
  std::swap(changed.bench, changed.device);
  EXPECT_EQ(GradeChanged(b, d, changed).rows.at(1).message,
            "Only the device changed this argument in place.");
}

TEST(OutputGrade, AnArgumentThatMayHaveKeptItsValueIsCompared) {
  Side b, d;
  ChangedCase changed;
  changed.bench.changed = {{"1", b.Doubles({1, 2.00001})}};
  changed.device.kept = {{"1", d.Floats({1, 2})}, {"2", d.Floats({7})}};
  changed.bench.kept = {{"2", b.Doubles({3})}};
  const DirectionOutcome outcome = GradeChanged(b, d, changed);
  ASSERT_EQ(outcome.rows.size(), 2U);  // what both sides kept is no effect of the call
  EXPECT_EQ(outcome.rows[1].status, CheckStatus::kPass);
}

TEST(OutputGrade, AnArgumentThatIsReturnedIsNotJudgedTwice) {
  Side b, d;
  ChangedCase changed;
  changed.bench.changed = {{"0", CallValue()}};
  changed.device.changed = {{"0", CallValue()}};
  EXPECT_EQ(GradeChanged(b, d, changed).rows.size(), 1U);
  changed.device.changed.clear();
  EXPECT_EQ(GradeChanged(b, d, changed).rows.size(), 2U);
}

// ---- Cells of the standards ----

TEST(OutputGrade, StandardOfTheApiFillsItsCells) {
  const OutputRow ulp = GradeHalves({1, 1.5F, 0, -3}, {1 + 0x1p-10F, 1.5F, 0x1p-10F, -3 - 0x1p-8F},
                                    {"Torch.matmul.0", "matmul"});
  EXPECT_EQ(ValueOf(ulp.max_ulp), 2);
  EXPECT_EQ(ValueOf(ulp.mean_ulp), 1);
  EXPECT_EQ(ValueOf(ulp.ulp_proportion), 0.25);
  EXPECT_FALSE(ulp.max_ulp->is_double);
  EXPECT_FALSE(ulp.rmse.has_value());
  const OutputRow absolute =
      GradeHalves({1, 0x1p-11F}, {1 + 0x1p-9F, 0x1p-11F + 0x1p-17F}, {"Torch.add.0", "add"});
  EXPECT_EQ(ValueOf(absolute.rel_error_ratio), 1);
  EXPECT_EQ(ValueOf(absolute.abs_error_ratio), 0);
  EXPECT_TRUE(absolute.inf_nan_error_ratio->is_integer);  // no such element
  EXPECT_FALSE(absolute.error_balance.has_value());
  const OutputRow binary = GradeHalves({1, 2}, {1, 2}, {"Functional.relu.0", "relu"});
  EXPECT_EQ(ValueOf(binary.error_rate), 0);
  const OutputRow thousandth = GradeHalves({1, 2}, {1, 2}, {"Functional.conv2d.0", "conv2d"});
  EXPECT_EQ(ValueOf(thousandth.thousandth), 1);
  EXPECT_FALSE(thousandth.hundredth.has_value());
}

TEST(OutputGrade, Float64HasNoStandardAndSaysSo) {
  Side b, d;
  const CallValue bench = b.Doubles({1, 2}), device = d.Doubles({1, 2});
  const OutputRow row = Grade(bench, b, device, d).rows.at(0);
  EXPECT_EQ(row.status, CheckStatus::kPass);
  EXPECT_FALSE(row.rmse.has_value());
  EXPECT_NE(row.message.find("torch.float64"), std::string::npos);
}

TEST(OutputGrade, UnitsOfAZeroBenchmarkAreNoted) {
  const OutputRow row = GradeHalves({0, 1}, {0x1p-10F, 1}, {"Torch.mm.0", "mm"});
  EXPECT_NE(row.message.find("1 element is of a zero benchmark"), std::string::npos);
}

// ---- Types and shapes ----

TEST(OutputGrade, UnequalShapesAreAnError) {
  Side b, d;
  const CallValue bench = b.Tensor<float>(DType::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const CallValue device = d.Tensor<float>(DType::kFloat32, {3, 2}, {1, 2, 3, 4, 5, 6});
  const OutputRow row = Grade(bench, b, device, d).rows.at(0);
  EXPECT_EQ(row.status, CheckStatus::kError);
  EXPECT_EQ(row.message, "The shape is (2, 3) on the benchmark and (3, 2) on the device.");
}

CheckStatus StatusOfKinds(DType bench_dtype, DType device_dtype) {
  Side b, d;
  const std::vector<uint8_t> zeros(16);
  const CallValue bench = b.Tensor(bench_dtype, {1}, zeros);
  const CallValue device = d.Tensor(device_dtype, {1}, zeros);
  return Grade(bench, b, device, d).rows.at(0).status;
}

TEST(OutputGrade, KindsOfTypesHaveToAgree) {
  EXPECT_EQ(StatusOfKinds(DType::kInt8, DType::kInt64), CheckStatus::kPass);
  EXPECT_EQ(StatusOfKinds(DType::kUInt16, DType::kInt16), CheckStatus::kPass);
  EXPECT_EQ(StatusOfKinds(DType::kBool, DType::kUInt8), CheckStatus::kPass);
  EXPECT_EQ(StatusOfKinds(DType::kBool, DType::kInt32), CheckStatus::kError);
  EXPECT_EQ(StatusOfKinds(DType::kFloat32, DType::kInt32), CheckStatus::kError);
  EXPECT_EQ(StatusOfKinds(DType::kFloat64, DType::kBFloat16), CheckStatus::kPass);
  EXPECT_EQ(StatusOfKinds(DType::kComplex128, DType::kComplex64), CheckStatus::kPass);
  EXPECT_EQ(StatusOfKinds(DType::kComplex64, DType::kFloat32), CheckStatus::kError);
}

TEST(OutputGrade, NoElementsAreSkipped) {
  Side b, d;
  const CallValue bench = b.Floats({}), device = d.Floats({});
  const DirectionOutcome outcome = Grade(bench, b, device, d);
  EXPECT_EQ(outcome.status, CheckStatus::kSkip);
  ASSERT_TRUE(outcome.skip.has_value());
  EXPECT_EQ(outcome.skip->cause, SkipCause::kNoOutput);
  EXPECT_EQ(outcome.rows.at(0).shape, "(0,)");
}

TEST(OutputGrade, QuantisedIntegersMayBeOneApart) {
  const auto status = [](int8_t device_value) {
    Side b, d;
    const CallValue bench = b.Tensor<int8_t>(DType::kInt8, {2}, {5, 6});
    const CallValue device = d.Tensor<int8_t>(DType::kInt8, {2}, {5, device_value});
    return Grade(bench, b, device, d, {"NPU.npu_dynamic_quant.0", "npu_dynamic_quant"}).status;
  };
  EXPECT_EQ(status(7), CheckStatus::kPass);
  EXPECT_EQ(status(8), CheckStatus::kError);
}

TEST(OutputGrade, ElementsOutsideTheMemoryAreSkipped) {
  Side b, d;
  const CallValue bench = b.Floats({1, 2});
  TensorPlace place = *bench.As<TensorPlace>();
  place.offset = std::numeric_limits<size_t>::max() - 4;
  const DirectionOutcome outcome = Grade(bench, b, CallValue(place), d);
  EXPECT_EQ(outcome.status, CheckStatus::kSkip);
  EXPECT_EQ(outcome.skip->cause, SkipCause::kDeviceFailed);
}

// ---- Trees ----

TEST(OutputGrade, NestedValuesHaveJoinedIndices) {
  const CallValue tree = List({Int(1), List({Int(2), Int(3)}, Sequence::kTuple)});
  const DirectionOutcome outcome = Grade(tree, tree);
  ASSERT_EQ(outcome.rows.size(), 3U);
  EXPECT_EQ(outcome.rows[0].name, "Functional.softmax.0.forward.output.0");
  EXPECT_EQ(outcome.rows[1].name, "Functional.softmax.0.forward.output.1_0");
  EXPECT_EQ(outcome.rows[2].name, "Functional.softmax.0.forward.output.1_1");
  EXPECT_EQ(outcome.status, CheckStatus::kPass);
  EXPECT_FALSE(outcome.skip.has_value());
}

TEST(OutputGrade, MapsAreComparedByKey) {
  const CallValue bench(CallMap{{"a", Int(1)}, {"b", Int(2)}});
  const CallValue device(CallMap{{"b", Int(2)}, {"a", Int(7)}});
  const DirectionOutcome outcome = Grade(bench, device);
  ASSERT_EQ(outcome.rows.size(), 2U);
  EXPECT_EQ(outcome.rows[0].status, CheckStatus::kError);
  EXPECT_EQ(outcome.rows[0].message, "Key \"a\". The values differ.");
  EXPECT_EQ(outcome.rows[1].name, "Functional.softmax.0.forward.output.1");
  EXPECT_EQ(outcome.rows[1].status, CheckStatus::kPass);
}

TEST(OutputGrade, LostKeyIsOneErrorRow) {
  const CallValue bench(CallMap{{"a", Int(1)}, {"b", Int(2)}});
  const CallValue device(CallMap{{"a", Int(1)}});
  for (const DirectionOutcome& outcome : {Grade(bench, device), Grade(device, bench)}) {
    ASSERT_EQ(outcome.rows.size(), 1U);
    EXPECT_EQ(outcome.status, CheckStatus::kError);
    EXPECT_NE(outcome.rows[0].message.find("\"b\""), std::string::npos);
  }
}

TEST(OutputGrade, FewerDeviceOutputsAreOneErrorRow) {
  const DirectionOutcome outcome = Grade(List({Int(1), Int(2)}), List({Int(1)}));
  ASSERT_EQ(outcome.rows.size(), 1U);
  EXPECT_EQ(outcome.status, CheckStatus::kError);
  EXPECT_EQ(outcome.rows[0].name, "Functional.softmax.0.forward.output.0");
  EXPECT_EQ(outcome.rows[0].message, "The benchmark returned 2 values, the device 1.");
}

TEST(OutputGrade, SurplusDeviceOutputsAreIgnored) {
  EXPECT_EQ(Grade(List({Int(1)}), List({Int(1), Int(2)})).rows.size(), 1U);
}

TEST(OutputGrade, PlainValuesHaveToBeEqual) {
  const auto status = [](const CallValue& bench, const CallValue& device) {
    return Grade(bench, device).rows.at(0).status;
  };
  EXPECT_EQ(status(Int(3), Int(3)), CheckStatus::kPass);
  EXPECT_EQ(status(Int(3), Int(4)), CheckStatus::kError);
  EXPECT_EQ(status(CallValue(true), Int(1)), CheckStatus::kPass);
  EXPECT_EQ(status(Int(1), CallValue(true)), CheckStatus::kError);
  EXPECT_EQ(status(Int(1), CallValue(1.0)), CheckStatus::kError);
  EXPECT_EQ(status(CallValue(kNaN), CallValue(kNaN)), CheckStatus::kError);
  EXPECT_EQ(status(Text("a"), Text("a")), CheckStatus::kPass);
  EXPECT_EQ(status(Text("a"), CallValue()), CheckStatus::kError);
  EXPECT_EQ(status(CallValue(), Int(1)), CheckStatus::kError);
  const OutputRow row = Grade(Int(3), Int(3)).rows.at(0);
  EXPECT_EQ(row.bench_dtype, "<class 'int'>");
  EXPECT_TRUE(row.error_rate->is_integer);
  EXPECT_FALSE(Grade(Int(3), Int(4)).rows.at(0).error_rate.has_value());
}

TEST(OutputGrade, UnknownObjectsNeverPass) {
  const CallValue object(SpecialValue{Special::kOther, "Generator", "x"});
  EXPECT_EQ(Grade(object, object).status, CheckStatus::kError);
  const CallValue dtype(SpecialValue{Special::kDType, "", "torch.float16"});
  EXPECT_EQ(Grade(dtype, dtype).status, CheckStatus::kPass);
}

TEST(OutputGrade, NothingReturnedIsSkipped) {
  for (const CallValue& value :
       {CallValue(), List({}), CallValue(CallMap{}), List({CallValue()})}) {
    const DirectionOutcome outcome = Grade(value, value);
    EXPECT_EQ(outcome.status, CheckStatus::kSkip);
    EXPECT_EQ(outcome.rows.size(), 1U);
    EXPECT_TRUE(outcome.skip.has_value());
  }
}

TEST(OutputGrade, SkippedOutputsBesideAPassAreAPass) {
  EXPECT_EQ(Grade(List({CallValue(), Int(1)}), List({CallValue(), Int(1)})).status,
            CheckStatus::kPass);
}

TEST(OutputGrade, AnErrorIsWorseThanAWarning) {
  Side b, d;
  std::vector<double> tens(10000, 10);
  tens[0] = -10;
  std::vector<float> off(tens.begin(), tens.end());
  for (size_t i = 1; i <= 5; ++i) off[i] *= 1.0005F;
  const CallValue bench = List({Int(1), b.Doubles(tens)});
  const CallValue device = List({Int(2), d.Floats(off)});
  const DirectionOutcome outcome = Grade(bench, b, device, d);
  EXPECT_EQ(outcome.rows.at(0).status, CheckStatus::kError);
  EXPECT_EQ(outcome.rows.at(1).status, CheckStatus::kWarning);
  EXPECT_EQ(outcome.status, CheckStatus::kError);
}

// ---- Single APIs ----

TEST(OutputGrade, FusedAttentionComparesItsFirstOutput) {
  Side b, d;
  const CallValue bench = List({b.Floats({1, 2}), Int(1)});
  const CallValue device = List({d.Floats({1, 2}), Int(2)});
  Call call{"NPU.npu_fusion_attention.0", "npu_fusion_attention"};
  EXPECT_EQ(Grade(bench, b, device, d, call).status, CheckStatus::kPass);
  EXPECT_EQ(Grade(bench, b, device, d, call).rows.size(), 1U);
  call.direction = Direction::kBackward;
  EXPECT_EQ(Grade(bench, b, device, d, call).status, CheckStatus::kError);
}

OutputRow GradeDropout(size_t n, size_t bench_zeros, size_t device_zeros, float rest = 1) {
  std::vector<float> bench(n, 1), device(n, rest);
  std::fill_n(bench.begin(), bench_zeros, 0.0F);
  std::fill_n(device.begin(), device_zeros, 0.0F);
  return GradeHalves(bench, device, {"Functional.dropout.0", "dropout"});
}

TEST(OutputGrade, DropoutIsJudgedByItsShareOfZeros) {
  EXPECT_EQ(GradeDropout(100, 50, 59).status, CheckStatus::kPass);
  EXPECT_EQ(GradeDropout(100, 50, 60).status, CheckStatus::kError);
  EXPECT_EQ(GradeDropout(99, 0, 99).status, CheckStatus::kWarning);
  const OutputRow row = GradeDropout(100, 50, 59);
  EXPECT_EQ(row.name, "Functional.dropout.0.forward.output.0");
  EXPECT_EQ(row.message, "50 % of the elements are zero on the benchmark, 59 % on the device.");
}

TEST(OutputGrade, WhatADropoutKeepsIsScaledAlike) {
  EXPECT_EQ(GradeDropout(99, 50, 50, 1).status, CheckStatus::kPass);
  const OutputRow wrong = GradeDropout(99, 50, 50, 7);
  EXPECT_EQ(wrong.status, CheckStatus::kError);
  EXPECT_NE(wrong.message.find("49 of 49 elements that both sides keep differ by more than 1 %."),
            std::string::npos);
  EXPECT_EQ(GradeDropout(1000, 500, 500, 1.02F).status, CheckStatus::kError);
}

TEST(OutputGrade, BeyondTheDevicesTypeIsInfinite) {
  const auto inf = std::numeric_limits<float>::infinity();
  const auto grade = [](float big, float device) {
    return GradeHalves({1, 2, big}, {1, 2, device}, {"Torch.exp.0", "exp"});
  };
  const OutputRow right = grade(70000, inf);
  EXPECT_EQ(right.status, CheckStatus::kPass);
  EXPECT_NE(right.message.find("1 element is infinite on the device"), std::string::npos);
  EXPECT_EQ(grade(70000, -inf).status, CheckStatus::kError);
  EXPECT_EQ(grade(60000, inf).status, CheckStatus::kError);
}

TEST(OutputGrade, DropoutWithNaNIsAnError) {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(GradeDropout(99, 50, 50, nan).status, CheckStatus::kError);
  EXPECT_EQ(GradeDropout(1000, 500, 500, nan).status, CheckStatus::kError);
}

TEST(OutputGrade, BackwardOfDropoutComparesTheFirstGradient) {
  Side b, d;
  const CallValue bench = List({b.Floats(std::vector<float>(200, 1)), Int(1)});
  const CallValue device = List({d.Floats(std::vector<float>(200, 1)), Int(2)});
  const Call call{"Functional.dropout.0", "dropout", Direction::kBackward};
  const DirectionOutcome outcome = Grade(bench, b, device, d, call);
  ASSERT_EQ(outcome.rows.size(), 1U);
  EXPECT_EQ(outcome.rows[0].name, "Functional.dropout.0.backward.output.0");
  EXPECT_EQ(outcome.status, CheckStatus::kPass);
}

}  // namespace
}  // namespace plumbline::precheck::output_grade_test
