#include "watch/live/communication.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace plumbline::watch {
namespace {

TensorValues SentOf(const std::vector<float>& numbers) {
  const Shape sizes = {static_cast<int64_t>(numbers.size())};
  const Shape strides = {1};
  const auto bytes = std::as_bytes(std::span(numbers));
  return Measure({DType::kFloat32, bytes.data(), sizes, strides}, kCommunicationZero, nullptr);
}

TEST(Joined, IsTheTensorOfAllElements) {
  const std::vector<TensorValues> parts = {SentOf({1, -2, 0}), SentOf({}), SentOf({5})};
  const TensorValues joined = Joined(parts);
  const TensorValues whole = SentOf({1, -2, 0, 5});
  for (const Op op : {Op::kNorm, Op::kMin, Op::kMax, Op::kZeros, Op::kNans, Op::kMean}) {
    EXPECT_DOUBLE_EQ(joined.of(op), whole.of(op)) << NameOf(op);
  }
  EXPECT_EQ(joined.shape, whole.shape);
  EXPECT_FALSE(Joined({}).dtype);
}

TEST(CommunicationValues, CombinesTheCallsOfAStep) {
  CommunicationValues step;
  step.Add("all_reduce.pre_0", SentOf({3, 0}));
  step.Add("send.pre_0", SentOf({1}));
  step.Add("all_reduce.pre_0", SentOf({-4, 4, 2, 2}));
  const auto rows = step.Take();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].first, "all_reduce.pre_0");
  EXPECT_EQ(rows[1].first, "send.pre_0");
  const TensorValues& values = rows[0].second;
  EXPECT_EQ(values.of(Op::kMin), -4);
  EXPECT_EQ(values.of(Op::kMax), 4);
  EXPECT_DOUBLE_EQ(values.of(Op::kNorm), 3 + std::sqrt(40.0));
  EXPECT_EQ(values.of(Op::kMean), 1.25);
  EXPECT_EQ(values.of(Op::kZeros), 0.25);
  EXPECT_TRUE(step.Take().empty());
}

TEST(CommunicationValues, KeepsNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const bool is_first : {true, false}) {
    CommunicationValues step;
    step.Add("send.pre_0", SentOf({is_first ? nan : 1}));
    step.Add("send.pre_0", SentOf({is_first ? 1 : nan}));
    const TensorValues values = step.Take()[0].second;
    for (const Op op : {Op::kNorm, Op::kMin, Op::kMax, Op::kMean}) {
      EXPECT_TRUE(std::isnan(values.of(op))) << NameOf(op);
    }
    EXPECT_EQ(values.of(Op::kNans), 1);
  }
}

}  // namespace
}  // namespace plumbline::watch
