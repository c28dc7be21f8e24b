// What follows from a rounding that noise alone flipped, and what does not.

#include "pipeline/culprit/discrete_flip.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/file.h"
#include "formats/torch_pt.h"
#include "pipeline/two_dumps_for_test.h"

namespace plumbline {
namespace {

using Values = std::vector<float>;

Values Times(Values values, float factor) {
  for (float& each : values) each *= factor;
  return values;
}

// Both sides read x, which differs by noise, and round it: 0.5 is 0, a little more is 1.
class DiscreteFlipTest : public TwoDumpsTest {
 protected:
  void SetUp() override {
    for (DumpForTest* side : {&target_, &golden_}) {
      const bool is_target = side == &target_;
      const Values x = {is_target ? 0.50000006F : 0.5F, 1.25F, 2.25F, 3.25F};
      Add(*side, "Torch.mul.0.forward", {0.5F, 1.25F, 2.25F, 3.25F}, x);
      Add(*side, "Torch.round.0.forward", x, {is_target ? 1.0F : 0.0F, 1, 2, 3});
    }
  }
  void Add(DumpForTest& side, const std::string& name, const Values& input, const Values& output,
           const std::string& parent = {}) {
    side.Add(name, Tensor(side, name + ".input.0", input), Tensor(side, name + ".output.0", output),
             parent);
  }
  // A call of both sides that reads these and doubles them.
  void Read(const Values& target, const Values& golden) {
    Add(target_, "Torch.mul.1.forward", target, Times(target, 2));
    Add(golden_, "Torch.mul.1.forward", golden, Times(golden, 2));
  }
  Comparison CompareTensors() {
    Result<Comparison> result = CompareRuns(target_.Write("tensor"), golden_.Write("tensor"));
    EXPECT_TRUE(result);
    return result ? std::move(*result) : Comparison();
  }
  std::string NamedWithTensors() {
    const Comparison comparison = CompareTensors();
    return comparison.first_wrong_call ? comparison.first_wrong_call->name : "";
  }
  void ExpectFollows(size_t row) {
    const Comparison comparison = CompareTensors();
    EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->what;
    EXPECT_EQ(comparison.rows[3].reason, "flip");
    EXPECT_EQ(comparison.rows[row].reason, "follows-flip");
    EXPECT_EQ(comparison.rows[row].verdict, Verdict::kNotComparable);
    EXPECT_GT(comparison.counts.missing_values, 0U);
  }

  std::string Tensor(const DumpForTest& side, const std::string& name, const Values& values,
                     bool is_trained = false) {
    const std::string files =
        directory_.Path(&side == &target_ ? "target" : "golden") + "/dump_tensor_data/";
    EXPECT_TRUE(MakeDirectories(files));
    const std::span<const std::byte> data = std::as_bytes(std::span(values));
    const int64_t sizes[] = {static_cast<int64_t>(values.size())};
    const torch_pt::Frame frame =
        torch_pt::MakeFrame(DType::kFloat32, sizes, data.size(), Crc32(data));
    const std::string body(reinterpret_cast<const char*>(data.data()), data.size());
    EXPECT_TRUE(WriteFileAtomically(files + name + ".pt", frame.head + body + frame.tail, false));
    double sum = 0, squares = 0;
    for (const double each : values) {
      sum += each;
      squares += each * each;
    }
    return fmt::format(
        R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [{}], "Max": {}, )"
        R"("Min": {}, "Mean": {}, "Norm": {}, "requires_grad": {}, "data_name": "{}.pt"}})",
        values.size(), *std::ranges::max_element(values), *std::ranges::min_element(values),
        sum / static_cast<double>(values.size()), std::sqrt(squares), is_trained, name);
  }
};

// Rows: two of each call.
constexpr size_t kRead = 4;

TEST_F(DiscreteFlipTest, RepeatsThatNobodyRecordedFollow) {
  Read({1, 1, 2, 3, 1, 1, 2, 3}, {0, 1, 2, 3, 0, 1, 2, 3});
  ExpectFollows(kRead);
}

TEST_F(DiscreteFlipTest, PartsFollow) {
  Read({1, 1}, {0, 1});
  ExpectFollows(kRead);
}

TEST_F(DiscreteFlipTest, OtherElementsBesideTheFlipAreNamed) {
  Read({1, 1, 2, 3, 1, 1, 2, 2}, {0, 1, 2, 3, 0, 1, 2, 3});
  EXPECT_EQ(NamedWithTensors(), "Torch.mul.1.forward");
}

TEST_F(DiscreteFlipTest, SoIsTheFlipAtMorePlaces) {
  Read({1, 1, 1, 1, 1, 1, 2, 3}, {0, 1, 0, 1, 0, 1, 2, 3});
  EXPECT_EQ(NamedWithTensors(), "Torch.mul.1.forward");
}

TEST_F(DiscreteFlipTest, AndAPartThatIsWrong) {
  Read({2, 1}, {1, 1});
  EXPECT_EQ(NamedWithTensors(), "Torch.mul.1.forward");
}

// What a module around the rounding returns, behind an addition inside of it.
class FlipInsideTest : public DiscreteFlipTest {
 protected:
  static constexpr size_t kSum = 4, kResult = 6;
  static inline const Values kTarget = {3, 3, 4, 5}, kGolden = {2, 3, 4, 5};

  void Record(const Values& target, const Values& golden) {
    const std::string module = "Module.m.M.forward.0";
    const Values before = {0.5F, 1.25F, 2.25F, 3.25F};
    Add(target_, "Torch.add.0.forward", {1, 1, 2, 3}, kTarget, module);
    Add(golden_, "Torch.add.0.forward", {0, 1, 2, 3}, kGolden, module);
    Add(target_, module, before, target);
    Add(golden_, module, before, golden);
  }
};

TEST_F(FlipInsideTest, ItsResultFollows) {
  Record(kTarget, kGolden);
  ExpectFollows(kSum + 1);
  ExpectFollows(kResult + 1);
}

TEST_F(FlipInsideTest, SoDoesWhatNoCallInsideReturned) {
  Record({6, 1.5F, 2, 2.5F}, {4, 1.5F, 2, 2.5F});
  ExpectFollows(kResult + 1);
}

TEST_F(FlipInsideTest, AnotherResultThanThatOfTheCallInsideIsNamed) {
  Record(Times(kTarget, 2), kGolden);
  EXPECT_EQ(NamedWithTensors(), "Module.m.M.forward.0");
}

TEST_F(FlipInsideTest, AWrongCallInsideIsNamed) {
  Record(kTarget, kGolden);
  Add(target_, "Torch.exp.0.forward", {1, 2}, {2, 7}, "Module.n.M.forward.0");
  Add(golden_, "Torch.exp.0.forward", {1, 2}, {2, 3}, "Module.n.M.forward.0");
  Add(target_, "Module.n.M.forward.0", {1, 2}, {2, 7});
  Add(golden_, "Module.n.M.forward.0", {1, 2}, {2, 3});
  EXPECT_EQ(NamedWithTensors(), "Torch.exp.0.forward");
}

// No flip is inside of it, whatever was flipped before.
TEST_F(FlipInsideTest, AModuleBehindItIsNamed) {
  Record(kTarget, kGolden);
  Add(target_, "Module.n.M.forward.0", {1, 2}, {2, 7});
  Add(golden_, "Module.n.M.forward.0", {1, 2}, {2, 3});
  EXPECT_EQ(NamedWithTensors(), "Module.n.M.forward.0");
}

// A parameter that multiplies what was rounded, its gradient, and what a step left of it.
class FlipBeforeStepTest : public DiscreteFlipTest {
 protected:
  static constexpr size_t kLeft = 11;

  // `rounded`: what the parameter multiplies.
  void Record(DumpForTest& side, const Values& rounded, bool has_gradient = true) {
    const std::string name = "Torch.mul.1.forward", gradient = "Torch.mul.1.backward";
    const Values parameter = {0.5F, 0.75F, 1, 1.5F};
    Values product = rounded, left = parameter;
    for (size_t i = 0; i < parameter.size(); ++i) {
      product[i] *= parameter[i];
      left[i] -= rounded[i] / 8;
    }
    Multiply(side, name, rounded, parameter, product);
    if (has_gradient) {
      side.AddEntry(fmt::format(R"("{}": {{"input": [{}], "output": [null, {}]}})", gradient,
                                Tensor(side, gradient + ".input.0", {1, 1, 1, 1}),
                                Tensor(side, gradient + ".output.1", rounded)));
    }
    Multiply(side, "Torch.mul.2.forward", {1, 1, 1, 1}, left, left);
  }

 private:
  void Multiply(DumpForTest& side, const std::string& name, const Values& by,
                const Values& parameter, const Values& product) {
    side.Add(name,
             Tensor(side, name + ".input.0", by) + "," +
                 Tensor(side, name + ".input.1", parameter, true),
             Tensor(side, name + ".output.0", product));
  }
};

TEST_F(FlipBeforeStepTest, WhatTheStepLeftFollows) {
  Record(target_, {1, 1, 2, 3});
  Record(golden_, {0, 1, 2, 3});
  ExpectFollows(kLeft);
}

TEST_F(FlipBeforeStepTest, WithoutAGradientItIsNamed) {
  Record(target_, {1, 1, 2, 3}, false);
  Record(golden_, {0, 1, 2, 3}, false);
  EXPECT_EQ(NamedWithTensors(), "Torch.mul.2.forward");
}

}  // namespace
}  // namespace plumbline
