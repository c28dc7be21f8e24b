// Values that are NaN on both sides prove nothing, and nothing good may be said of them.

#include "pipeline/count_rows.h"

#include <gtest/gtest.h>

#include <string>

#include "pipeline/two_dumps_for_test.h"

namespace plumbline {
namespace {

class NanOnBothTest : public TwoDumpsTest {
 protected:
  static std::string Tensor(const std::string& max, const std::string& min, const std::string& norm,
                            const std::string& shape = "[4]") {
    return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": {}, )"
                       R"("Max": {}, "Min": {}, "Mean": {}, "Norm": {}}})",
                       shape, max, min, norm == "null" ? "null" : "NaN", norm);
  }
  static std::string Nan(const std::string& shape = "[4]") {
    return Tensor("NaN", "NaN", "NaN", shape);
  }
  void AddToBoth(const std::string& name, const std::string& inputs, const std::string& outputs) {
    target_.Add(name, inputs, outputs);
    golden_.Add(name, inputs, outputs);
  }
  static std::string FirstLine(const Comparison& comparison) {
    const std::string text = SummaryText(comparison);
    return text.substr(0, text.find('\n'));
  }

  const std::string good_ = TensorJson(1, -2, 4);
};

TEST_F(NanOnBothTest, IsNotJudged) {
  AddToBoth("Torch.f.0.forward", good_, good_);
  AddToBoth("Torch.log.0.forward", good_, Nan());
  AddToBoth("Torch.add.0.forward", Nan(), Nan());
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.is_complete());
  EXPECT_EQ(comparison.counts.missing_values, 3u);
  EXPECT_EQ(FirstLine(comparison),
            "not judged completely: 3 values are NaN on both sides; the 3 paired calls show no "
            "wrong one");
  ASSERT_EQ(comparison.warnings.size(), 1u);
  EXPECT_EQ(
      comparison.warnings[0],
      "Torch.log.0.forward: Torch.log.0.forward.output.0 is NaN on both sides, the first of 3 "
      "such values; nothing tells whether that is right");
  EXPECT_TRUE(FailsOn(comparison, {"any"}).value());
  EXPECT_TRUE(FailsOn(comparison, {"unmatched"}).value());
  EXPECT_FALSE(FailsOn(comparison, {"suspicious", "broken"}).value());
}

TEST_F(NanOnBothTest, OtherMissingValuesAreToldApart) {
  AddToBoth("Torch.f.0.forward", good_, good_);
  AddToBoth("Torch.g.0.forward", good_, Tensor("NaN", "null", "NaN"));
  AddToBoth("Torch.h.0.forward", good_, Tensor("null", "null", "null"));
  EXPECT_EQ(FirstLine(Compare()),
            "not judged completely: 1 value without data or of another shape, 1 value is NaN on "
            "both sides; the 3 paired calls show no wrong one");
}

TEST_F(NanOnBothTest, NumbersToo) {
  AddToBoth("Torch.f.0.forward", good_ + ", " + ScalarJson("float", "NaN"), good_);
  EXPECT_EQ(Compare().counts.missing_values, 1u);
}

TEST_F(NanOnBothTest, NotInfinities) {
  AddToBoth("Torch.f.0.forward", good_, good_);
  AddToBoth("Torch.mask.0.forward", good_, Tensor("0", "-Infinity", "Infinity"));
  AddToBoth("Torch.mask.1.forward", good_, Tensor("Infinity", "-Infinity", "Infinity"));
  AddToBoth("Torch.mask.2.forward", good_, Tensor("null", "null", "Infinity"));
  EXPECT_EQ(FirstLine(Compare()), "no wrong call");
}

TEST_F(NanOnBothTest, AWrongCallStaysTheAnswer) {
  AddToBoth("Torch.log.0.forward", good_, Nan());
  target_.Add("Torch.tanh.0.forward", good_, TensorJson(0.9, -0.5, 2));
  golden_.Add("Torch.tanh.0.forward", good_, TensorJson(0.5, -0.5, 1));
  const std::string text = SummaryText(Compare());
  EXPECT_EQ(text.find("first wrong call: Torch.tanh.0.forward\n"), 0u);
  EXPECT_NE(text.find("\n  not judged: 1 value is NaN on both sides\n"), text.npos);
}

TEST_F(NanOnBothTest, MemoryThatNobodyWroteIsNoValue) {
  AddToBoth("Torch.empty.0.forward", ScalarJson("int", "4"), Nan());
  AddToBoth("Tensor.__getitem__.0.forward", Nan(), Nan("[2]"));
  AddToBoth("Tensor.fill_.0.forward", Nan("[2]"), TensorJson(1, 1, 2, "[2]"));
  AddToBoth("Tensor.copy_.0.forward", Nan() + ", " + good_, good_);
  const Comparison comparison = Compare();
  EXPECT_EQ(FirstLine(comparison), "no wrong call");
  EXPECT_EQ(comparison.rows[2].reason, "uninitialised");
}

TEST_F(NanOnBothTest, WhatIsComputedOfSuchMemoryIs) {
  AddToBoth("Torch.empty.0.forward", ScalarJson("int", "4"), Nan());
  AddToBoth("Torch.mul.0.forward", Nan() + ", " + good_, Nan());
  EXPECT_EQ(Compare().counts.missing_values, 1u);
}

TEST_F(NanOnBothTest, WhatIsCopiedOverSuchMemoryIs) {
  AddToBoth("Torch.f.0.forward", good_, good_);
  AddToBoth("Torch.empty.0.forward", ScalarJson("int", "4"), Nan());
  AddToBoth("Tensor.copy_.0.forward", Nan() + ", " + Nan(), Nan());
  EXPECT_EQ(Compare().counts.missing_values, 2u);  // and not the memory
}

}  // namespace
}  // namespace plumbline
