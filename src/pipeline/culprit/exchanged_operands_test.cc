#include "pipeline/culprit/exchanged_operands.h"

#include <gtest/gtest.h>

#include <string>

#include "pipeline/two_dumps_for_test.h"

namespace plumbline {
namespace {

const std::string kLeft = TensorJson(3, -2, 5), kRight = TensorJson(1, 0.25, 1.5);
const std::string kProduct = TensorJson(2.5, -1.5, 4);

class ExchangedOperandsTest : public TwoDumpsTest {
 protected:
  void Record(const std::string& call, const std::string& result = kProduct) {
    target_.Add(call, kRight + "," + kLeft, result);
    golden_.Add(call, kLeft + "," + kRight, kProduct);
  }
  static std::string Backward(const std::string& first, const std::string& second) {
    return R"("Tensor.__mul__.0.backward": {"input": [)" + kProduct + R"(], "output": [)" + first +
           "," + second + "]}";
  }
};

TEST_F(ExchangedOperandsTest, WhatReturnsTheSameIsNoFault) {
  Record("Torch.some_call.0.forward");
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->what;
  for (const size_t row : {size_t{0}, size_t{1}}) {
    EXPECT_EQ(comparison.rows[row].reason, "operands-exchanged");
    EXPECT_EQ(comparison.rows[row].verdict, Verdict::kWithinNoise);
    EXPECT_EQ(comparison.rows[row].error, 0);
  }
  EXPECT_EQ(comparison.calls[0].verdict, Verdict::kSame);
}

TEST_F(ExchangedOperandsTest, RoundingOnBothIsNoFault) {
  target_.Add("Tensor.__mul__.0.forward",
              TensorJson(1.0000001, 0.25, 1.5) + "," + TensorJson(3, -2.0000002, 5), kProduct);
  golden_.Add("Tensor.__mul__.0.forward", kLeft + "," + kRight, kProduct);
  EXPECT_EQ(Named(), "");
}

TEST_F(ExchangedOperandsTest, AnotherResultIsAFaultThatTheOrderExplains) {
  Record("Tensor.__truediv__.0.forward", TensorJson(9, -1.5, 11));
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Tensor.__truediv__.0.forward");
  EXPECT_EQ(comparison.first_wrong_call->cause, "operands-exchanged");
}

TEST_F(ExchangedOperandsTest, AnOperandTakenTwiceIsAFault) {
  target_.Add("Tensor.__mul__.0.forward", kLeft + "," + kLeft, kProduct);
  golden_.Add("Tensor.__mul__.0.forward", kLeft + "," + kRight, kProduct);
  EXPECT_EQ(Named(), "Tensor.__mul__.0.forward");
}

TEST_F(ExchangedOperandsTest, StatisticsOfAMatrixProductDoNotShowItsOrder) {
  Record("Torch.matmul.0.forward");
  EXPECT_EQ(Named(), "Torch.matmul.0.forward");
}

TEST_F(ExchangedOperandsTest, StatisticsOfALargerResultDoNotShowItsOrder) {
  const std::string both = TensorJson(3, -2, 6, "[8]");
  target_.Add("Torch.cat.0.forward", kRight + "," + kLeft, both);
  golden_.Add("Torch.cat.0.forward", kLeft + "," + kRight, both);
  EXPECT_EQ(Named(), "Torch.cat.0.forward");
}

TEST_F(ExchangedOperandsTest, GradientsStandInTheOtherOrderToo) {
  Record("Tensor.__mul__.0.forward");
  target_.AddEntry(Backward(kLeft, kRight));
  golden_.AddEntry(Backward(kRight, kLeft));
  EXPECT_EQ(Named(), "");
}

TEST_F(ExchangedOperandsTest, AGradientWithoutPartnerIsAFault) {
  Record("Tensor.__mul__.0.forward");
  target_.AddEntry(Backward(kLeft, TensorJson(7, -7, 9)));
  golden_.AddEntry(Backward(kRight, kLeft));
  EXPECT_EQ(Named(), "Tensor.__mul__.0.backward");
}

TEST_F(ExchangedOperandsTest, GradientsAloneInAnotherOrderAreAFault) {
  for (DumpForTest* side : {&target_, &golden_}) {
    side->Add("Tensor.__mul__.0.forward", kLeft + "," + kRight, kProduct);
  }
  target_.AddEntry(Backward(kLeft, kRight));
  golden_.AddEntry(Backward(kRight, kLeft));
  EXPECT_EQ(Named(), "Tensor.__mul__.0.backward");
}

}  // namespace
}  // namespace plumbline
