#include "report/tensor_answer.h"

#include <gtest/gtest.h>

namespace plumbline::report {
namespace {

JudgedTensor Judged(std::string_view operation, Verdict verdict) {
  JudgedTensor tensor{std::string(operation), std::string(operation) + ".output.0", true, true, {}};
  tensor.verdict.verdict = verdict;
  return tensor;
}

std::string FirstLine(const TensorAnswer& answer) {
  const std::string text = AnswerText(answer, "rows");
  return text.substr(0, text.find('\n'));
}

TEST(TensorAnswer, GoodTensorsAlonePass) {
  const std::vector<JudgedTensor> tensors{Judged("a", Verdict::kSame),
                                          Judged("b", Verdict::kWithinNoise)};
  EXPECT_EQ(FirstLine(AnswerOf(tensors, 0)), "no wrong call");
}

TEST(TensorAnswer, SuspiciousTensorsAreNotClearedByGoodOnes) {
  std::vector<JudgedTensor> tensors{Judged("a", Verdict::kSame), Judged("b", Verdict::kSuspicious)};
  EXPECT_EQ(FirstLine(AnswerOf(tensors, 0)),
            "not judged completely: 1 tensor is suspicious and was not cleared; nothing is broken");
  tensors.push_back(Judged("c", Verdict::kSuspicious));
  const TensorAnswer answer = AnswerOf(tensors, 1);
  EXPECT_EQ(
      FirstLine(answer),
      "not judged completely: 2 tensors are suspicious and were not cleared; nothing is broken");
  EXPECT_TRUE(AnswerFailsOn(answer, {"suspicious"}).value());
  EXPECT_TRUE(AnswerFailsOn(answer, {"any"}).value());
  EXPECT_FALSE(AnswerFailsOn(answer, {"broken"}).value());
}

// Beside tensors that agree, and alone.
TEST(TensorAnswer, TensorsWithoutAVerdictDoNotPass) {
  for (const std::string_view reason : {"nonfinite-both", "shape-differs", "no-data"}) {
    std::vector<JudgedTensor> tensors{Judged("a", Verdict::kSame),
                                      Judged("b", Verdict::kNotComparable)};
    tensors[1].verdict.reason = reason;
    const TensorAnswer answer = AnswerOf(tensors, 0);
    EXPECT_EQ(FirstLine(answer), "not judged completely: the paired tensors show no wrong call");
    EXPECT_NE(AnswerText(answer, "rows").find("without a verdict: 1\n"), std::string::npos);
    EXPECT_TRUE(AnswerFailsOn(answer, {"unmatched"}).value());
    tensors[1].verdict.reason = "zero-both";
    EXPECT_EQ(FirstLine(AnswerOf(tensors, 0)), "no wrong call");
  }
}

TEST(TensorAnswer, ASuspiciousTensorAloneWasCompared) {
  const std::vector<JudgedTensor> tensors{Judged("a", Verdict::kSuspicious)};
  EXPECT_EQ(FirstLine(AnswerOf(tensors, 0)),
            "not judged completely: 1 tensor is suspicious and was not cleared; nothing is broken");
}

TEST(TensorAnswer, ABrokenTensorIsNamedBesideSuspiciousOnes) {
  const std::vector<JudgedTensor> tensors{Judged("a", Verdict::kSuspicious),
                                          Judged("b", Verdict::kBroken)};
  EXPECT_EQ(FirstLine(AnswerOf(tensors, 0)), "first wrong call: b");
}

}  // namespace
}  // namespace plumbline::report
