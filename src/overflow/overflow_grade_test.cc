#include "overflow/overflow_grade.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "formats/json/dump_json.h"

namespace plumbline {
namespace {

std::string GradedTensor(const std::string& max, const std::string& norm = "1.0",
                         const std::string& type = "torch.Tensor") {
  return fmt::format(R"({{"type": "{}", "dtype": "torch.float32", "shape": [2], "Max": {},)"
                     R"( "Min": 0.0, "Mean": 0.5, "Norm": {}}})",
                     type, max, norm);
}

const std::string kFineTensor = GradedTensor("1.0"), kNanTensor = GradedTensor("NaN"),
                  kInfTensor = GradedTensor("Infinity");

std::string LevelOf(const std::string& name, const std::string& inputs, const std::string& outputs,
                    const std::string& keywords = "") {
  const bool is_backward = name.ends_with("backward");
  const Result<Call> call = dump_json::ParseEntry(
      name, fmt::format(R"({{"{}": [{}], "input_kwargs": {{{}}}, "output": [{}]}})",
                        is_backward ? "input" : "input_args", inputs, keywords, outputs));
  EXPECT_TRUE(call.has_value());
  const std::optional<OverflowGrade> grade = GradeOfCall(*call);
  return grade ? std::string(OverflowLevelName(grade->level)) : "";
}

TEST(OverflowGrade, ScenesInTheirOrder) {
  const std::string name = "Torch.mul.0.forward";
  EXPECT_EQ(LevelOf(name, kFineTensor, kInfTensor), "critical");
  EXPECT_EQ(LevelOf(name, kNanTensor, kInfTensor), "high");
  EXPECT_EQ(LevelOf(name, kNanTensor, kFineTensor), "medium");
  EXPECT_EQ(LevelOf(name, kFineTensor, kFineTensor), "");
  EXPECT_EQ(LevelOf(name, kFineTensor, kFineTensor, "\"mask\": " + kNanTensor), "medium");
  EXPECT_EQ(LevelOf("Torch.mul.0.backward", kFineTensor, "null, " + kNanTensor), "critical");
  EXPECT_EQ(LevelOf("Torch.cat.0.forward", "[" + kFineTensor + ", " + kNanTensor + "]", kInfTensor),
            "high")
      << "nested";
  std::string mean = kFineTensor;
  mean.replace(mean.find("\"Mean\": 0.5"), 11, "\"Mean\": Infinity");
  EXPECT_EQ(LevelOf(name, kFineTensor, mean), "critical");
  std::string text = kFineTensor;
  text.replace(text.find("\"Max\": 1.0"), 10, R"("Max": "nan")");
  text.replace(text.find("\"type\": \"torch.Tensor\""), 22, R"("type": "Strange")");
  EXPECT_EQ(LevelOf(name, kFineTensor, text), "critical");
}

TEST(OverflowGrade, NormOfTheOutputsMayBeAHundredTimesThatOfTheInputs) {
  const std::string name = "Torch.mul.0.forward";
  EXPECT_EQ(LevelOf(name, GradedTensor("1.0", "1.0"), GradedTensor("1.0", "100.0")), "");
  EXPECT_EQ(LevelOf(name, GradedTensor("1.0", "1.0"), GradedTensor("1.0", "100.1")), "high");
  EXPECT_EQ(LevelOf(name, GradedTensor("1.0", "0.0"), GradedTensor("1.0", "100.0")), "");
  EXPECT_EQ(LevelOf(name, GradedTensor("1.0", "0.0"), GradedTensor("1.0", "100.1")), "high");
  EXPECT_EQ(LevelOf(name, GradedTensor("1.0", "0.5") + ", " + GradedTensor("1.0", "2.0"),
                    GradedTensor("1.0", "150.0")),
            "")
      << "the largest input counts";
  EXPECT_EQ(LevelOf(name, GradedTensor("1.0", "NaN"), GradedTensor("1.0", "500.0")), "")
      << "no number";
  const std::string cell = GradedTensor("1.0", "1.0", "mindspore.Tensor");
  EXPECT_EQ(LevelOf("Mint.mul.0.forward", cell, GradedTensor("1.0", "101.0", "mindspore.Tensor")),
            "high");
  EXPECT_EQ(LevelOf(name, "", GradedTensor("1.0", "500.0")), "") << "without inputs nothing jumps";
}

TEST(OverflowGrade, MemoryThatIsOnlyFilledMayHoldAnything) {
  EXPECT_EQ(LevelOf("Torch.empty.0.forward", "", kNanTensor), "");
  EXPECT_EQ(LevelOf("Torch.empty_like.0.forward", kNanTensor, kNanTensor), "");
  EXPECT_EQ(LevelOf("Torch.empty_strided.0.forward", "", kFineTensor + ", " + kNanTensor),
            "critical")
      << "another output";
  EXPECT_EQ(LevelOf("Distributed.recv.0.forward", kNanTensor, kFineTensor), "");
  EXPECT_EQ(LevelOf("Distributed.recv.0.forward", "", kFineTensor, "\"tensor\": " + kNanTensor),
            "");
  EXPECT_EQ(LevelOf("Distributed.recv.0.forward", kNanTensor, kNanTensor), "high")
      << "a NaN was received";
  EXPECT_EQ(LevelOf("Distributed.all_gather.0.forward", "[" + kNanTensor + "], " + kFineTensor,
                    kFineTensor),
            "");
  EXPECT_EQ(LevelOf("Distributed.all_gather.0.forward", "[" + kNanTensor + "], " + kNanTensor,
                    kFineTensor),
            "medium");
  EXPECT_EQ(
      LevelOf("Distributed.reduce_scatter.0.forward", "", kFineTensor, "\"output\": " + kInfTensor),
      "");
  EXPECT_EQ(LevelOf("Distributed.reduce_scatter.0.forward", kFineTensor, kFineTensor,
                    "\"input\": " + kInfTensor),
            "medium");
  for (const char* api :
       {"_reduce_scatter_base", "all_gather_into_tensor", "reduce_scatter_tensor"}) {
    EXPECT_EQ(LevelOf(fmt::format("Distributed.{}.0.forward", api), kNanTensor + ", " + kFineTensor,
                      kFineTensor),
              "");
  }
  EXPECT_EQ(LevelOf("Tensor.masked_fill_.0.forward", kInfTensor, kFineTensor), "");
  EXPECT_EQ(LevelOf("Tensor.masked_fill_.0.forward", kInfTensor, kInfTensor), "high");
  EXPECT_EQ(
      LevelOf("Tensor.masked_fill_.0.forward", kInfTensor, kInfTensor, "\"value\": " + kInfTensor),
      "")
      << "another input explains it";
}

}  // namespace
}  // namespace plumbline
