#include "precheck/grading/rounding_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace plumbline::precheck::rounding_scale_test {
namespace {

// A call whose tensors lie in one memory, and what its forward returned.
class Given {
 public:
  CallValue Floats(const std::vector<float>& elements) {
    TensorPlace place;
    place.shape = {static_cast<int64_t>(elements.size())};
    place.offset = memory_.size();
    memory_.resize(memory_.size() + elements.size() * sizeof(float));
    if (!elements.empty()) {
      std::memcpy(&memory_[place.offset], elements.data(), elements.size() * sizeof(float));
    }
    return CallValue(place);
  }
  [[nodiscard]] GivenToCall given() const {
    return {&call, memory_, {&forward, memory_}, {&device_forward, memory_}};
  }

  PreparedCall call;
  CallValue forward, device_forward;

 private:
  std::vector<std::byte> memory_;
};

TEST(RoundingScale, OfAResultIsTheLargestInputTimesTheRootOfTheTerms) {
  Given one;
  one.call.args.push_back(one.Floats({1, -7, 2, 3, 1, 1, 1, 1}));
  one.call.kwargs.emplace_back("other", one.Floats({5}));
  EXPECT_EQ(ForwardScale(one.given(), 2), 14);  // 4 terms each
  EXPECT_EQ(ForwardScale(one.given(), 16), 7);
  EXPECT_EQ(ForwardScale({}, 1), 0);
}

TEST(RoundingScale, OfAGradientFollowsTheDerivative) {
  // y = 8 x: derivatives of 8, and 2 for each unit of a gradient of 1/4.
  Given one;
  one.call.args.push_back(one.Floats({-0.5F, 0.5F}));
  one.call.args.push_back(CallValue(int64_t{3}));
  one.call.args.push_back(one.Floats({100, -100}));
  one.call.grads.emplace({one.Floats({0.25F, -0.125F})});
  one.forward = one.Floats({-4, 4});
  EXPECT_EQ(GradientScale(one.given(), 0), 2);
  EXPECT_EQ(GradientScale(one.given(), 1), 1);  // a flat argument: not below the result itself
  EXPECT_EQ(GradientScale(one.given(), 2), 0);  // there is no such argument
}

TEST(RoundingScale, TheErrorOfTheResultIsKnownWhereBothSidesAreAlike) {
  Given one;
  one.forward = one.Floats({1, 2, -3});
  EXPECT_TRUE(std::isnan(LargestResultError(one.given())));  // the device returned nothing
  one.device_forward = one.Floats({1, 2.25F, -3.5F});
  EXPECT_EQ(LargestResultError(one.given()), 0.5);
  one.device_forward = one.Floats({1, 2.25F});
  EXPECT_TRUE(std::isnan(LargestResultError(one.given())));
  one.device_forward = one.Floats({1, std::numeric_limits<float>::quiet_NaN(), -3});
  EXPECT_TRUE(std::isnan(LargestResultError(one.given())));
  one.device_forward.As<TensorPlace>()->offset = 1 << 20;
  EXPECT_TRUE(std::isnan(LargestResultError(one.given())));
}

TEST(RoundingScale, OfAMeanIsSharedOut) {
  Given one;
  one.call.args.push_back(one.Floats(std::vector<float>{-1, 1, 1, 1, 1, 1, 1, 1}));
  one.call.grads.emplace({one.Floats({1})});
  one.forward = one.Floats({0.75F});
  EXPECT_EQ(GradientScale(one.given(), 0), 0.75 / 8);
}

TEST(RoundingScale, NothingIsKnownOfElementsThatAreNotThere) {
  Given one;
  CallValue lost = one.Floats({3});
  lost.As<TensorPlace>()->offset = std::numeric_limits<size_t>::max() - 8;
  one.call.args.push_back(std::move(lost));
  one.call.args.push_back(one.Floats({}));
  EXPECT_EQ(ForwardScale(one.given(), 1), 0);
  EXPECT_EQ(GradientScale(one.given(), 0), 0);  // no gradient came in
}

TEST(RoundingScale, NaNAndInfinityAreLeftOut) {
  Given one;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  one.call.args.push_back(one.Floats({std::numeric_limits<float>::quiet_NaN(), -kInf, -2, 1}));
  EXPECT_EQ(ForwardScale(one.given(), 4), 2);
}

}  // namespace
}  // namespace plumbline::precheck::rounding_scale_test
