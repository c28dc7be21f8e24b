#include "precheck/mindspore_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/file/test_directory.h"
#include "formats/array/npy.h"
#include "precheck/input_data.h"

namespace plumbline::precheck::mindspore_calls_test {
namespace {

constexpr uint64_t kSeed = 1234;

std::string TensorJson(std::string_view dtype, std::string_view shape,
                       std::string_view more = R"("Max": 1.0, "Min": -1.0)") {
  return R"({"type": "mindspore.Tensor", "dtype": ")" + std::string(dtype) + R"(", "shape": )" +
         std::string(shape) + ", " + std::string(more) + "}";
}

std::string EntryJson(std::string_view args, std::string_view kwargs = "{}",
                      std::string_view output = "[]") {
  return R"({"input_args": [)" + std::string(args) + R"(], "input_kwargs": )" +
         std::string(kwargs) + R"(, "output": )" + std::string(output) + "}";
}

class MindSporeCalls : public ::testing::Test {
 protected:
  // A dump.json whose "data" are these members.
  Result<MindSporePlan> Open(const std::string& data,
                             const std::string& head = R"("task": "statistics", "level": "L1",
                             "framework": "mindspore", "dump_data_dir": null)") {
    Write("dump.json", "{" + head + R"(, "data": {)" + data + "}}");
    return MindSporePlan::Open(directory_.Path("dump.json"), kSeed);
  }
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = directory_.Path(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  // The one call of a dump whose forward has these arguments.
  OrSkip<MindSporeCall> PrepareArgs(const std::string& args, const std::string& kwargs = "{}") {
    plan_ = std::make_unique<Result<MindSporePlan>>(
        Open(R"("Mint.add.0.forward": )" + EntryJson(args, kwargs)));
    EXPECT_TRUE(*plan_) << plan_->error().message();
    return (*plan_)->Prepare(0);
  }
  std::string DetailOf(const std::string& args) {
    const auto made = PrepareArgs(args);
    return made ? "" : made.error().Text();
  }

  testing::TestDirectory directory_;
  std::unique_ptr<Result<MindSporePlan>> plan_;
};

TEST(MindSporeSelection, TakesMintAndListedTensorMethods) {
  EXPECT_TRUE(IsCheckedInMindSpore("Mint.where.0.forward", "mindspore"));
  EXPECT_TRUE(IsCheckedInMindSpore("MintFunctional.relu.3.backward", "mindspore"));
  EXPECT_TRUE(IsCheckedInMindSpore("Tensor.masked_fill.0.forward", "mindspore"));
  EXPECT_FALSE(IsCheckedInMindSpore("Tensor.abs.0.forward", "mindspore"));
  EXPECT_FALSE(IsCheckedInMindSpore("Functional.relu.0.forward", "mindspore"));
  EXPECT_TRUE(IsCheckedInMindSpore("Functional.flash_attention_score.0.forward", "mindspore"));
  EXPECT_FALSE(IsCheckedInMindSpore("Cell.net.Net.forward.0", "mindspore"));
  EXPECT_FALSE(IsCheckedInMindSpore("Mint.where.0", "mindspore"));
}

TEST(MindSporeSelection, OfMindTorchTakesPyTorchsTypes) {
  EXPECT_TRUE(IsCheckedInMindSpore("Torch.add.0.forward", "mindtorch"));
  EXPECT_TRUE(IsCheckedInMindSpore("Functional.relu.0.forward", "mindtorch"));
  EXPECT_TRUE(IsCheckedInMindSpore("Tensor.abs.0.forward", "mindtorch"));
  EXPECT_FALSE(IsCheckedInMindSpore("Mint.add.0.forward", "mindtorch"));
}

TEST_F(MindSporeCalls, ThoseOfOtherTypesAreNoCalls) {
  const auto plan = Open(
      R"("Cell.net.Net.forward.0": )" + EntryJson("") + R"(, "Mint.add.0.forward": )" +
      EntryJson("") + R"(, "Torch.add.0.forward": )" + EntryJson("") +
      R"(, "Mint.add.0.backward": {"input": [], "output": []})" + R"(, "Mint.add.1.sideways": {})");
  ASSERT_TRUE(plan) << plan.error().message();
  ASSERT_EQ(plan->size(), 1);
  EXPECT_EQ(plan->call(0).name, "Mint.add.0");
  EXPECT_FALSE(plan->call(0).backward.empty());
  ASSERT_EQ(plan->warnings().size(), 1);
  EXPECT_NE(plan->warnings()[0].find("Mint.add.1.sideways"), std::string::npos);
}

TEST_F(MindSporeCalls, AMissingFrameworkIsMindSporeWithAWarning) {
  const auto plan = Open(R"("Mint.add.0.forward": )" + EntryJson(""), R"("task": "statistics")");
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->framework(), "mindspore");
  EXPECT_EQ(plan->size(), 1);
  EXPECT_EQ(plan->warnings().size(), 1);
}

TEST_F(MindSporeCalls, AnotherTaskIsRefused) {
  const auto plan = Open("", R"("task": "structure", "framework": "mindspore")");
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(plan.error().message().find("structure"), std::string::npos);
}

TEST_F(MindSporeCalls, LongerNamesAndLoneBackwardsAreSkipped) {
  const auto plan = Open(R"("Mint.linalg.inv.0.forward": )" + EntryJson("") +
                         R"(, "Mint.sub.0.backward": {"input": [], "output": []})" +
                         R"(, "MintFunctional.dropout.0.forward": )" + EntryJson(""));
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->size(), 3);
  EXPECT_EQ(plan->Prepare(0).error().cause, SkipCause::kNotInInventory);
  EXPECT_EQ(plan->Prepare(1).error().cause, SkipCause::kMissingData);
  EXPECT_EQ(plan->Prepare(2).error().cause, SkipCause::kRandom);
}

TEST_F(MindSporeCalls, EveryKindOfArgumentIsRebuilt) {
  const auto made =
      PrepareArgs(TensorJson("Float32", "[2, 3]") +
                      R"(, null, {"type": "int", "value": 3}, {"type": "float", "value": 1},
          {"type": "bool", "value": false}, {"type": "str", "value": "none"},
          {"type": "slice", "value": [1, null, 2]}, [{"type": "int", "value": 4}])",
                  R"({"dtype": {"type": "mindspore.dtype", "value": "Float16"}})");
  ASSERT_TRUE(made) << made.error().Text();
  const std::vector<CallValue>& args = made->call.args;
  ASSERT_EQ(args.size(), 8);
  EXPECT_EQ(args[0].As<TensorPlace>()->shape, (Shape{2, 3}));
  EXPECT_FALSE(args[0].As<TensorPlace>()->raised);
  EXPECT_TRUE(args[1].is_null());
  EXPECT_EQ(*args[2].As<int64_t>(), 3);
  EXPECT_EQ(*args[3].As<double>(), 1);
  EXPECT_FALSE(*args[4].As<bool>());
  EXPECT_EQ(*args[5].As<std::string>(), "none");
  EXPECT_EQ(args[6].As<CallSequence>()->kind, Sequence::kSlice);
  EXPECT_EQ(args[7].As<CallSequence>()->kind, Sequence::kTuple);
  EXPECT_EQ(made->call.kwargs[0].second.As<SpecialValue>()->text, "torch.float16");
  EXPECT_FALSE(made->call.grads);
  EXPECT_FALSE(made->call.backward_skip);
}

TEST_F(MindSporeCalls, WhatCannotBeRebuiltIsNamed) {
  EXPECT_NE(DetailOf(TensorJson("UInt16", "[2]")).find("UInt16"), std::string::npos);
  EXPECT_NE(DetailOf(TensorJson("Int4", "[2]")).find("bad-argument"), std::string::npos);
  EXPECT_NE(DetailOf(TensorJson("Float32", "[2]", R"("Max": null, "Min": 0.0)")), "");
  EXPECT_NE(DetailOf(R"({"type": "int", "value": null})").find("without a value"),
            std::string::npos);
  EXPECT_NE(DetailOf("{}").find("without type"), std::string::npos);
  EXPECT_NE(DetailOf("3").find("bare value"), std::string::npos);
  EXPECT_NE(DetailOf(R"({"type": "function", "value": "f"})").find("function"), std::string::npos);
  EXPECT_NE(DetailOf(TensorJson("Float32", "[4611686018427387904, 16]")), "");
}

TEST_F(MindSporeCalls, ArgumentsOfOneShapeAndRangeDiffer) {
  const std::string tensor = TensorJson("Float32", "[100]");
  const auto made = PrepareArgs(tensor + ", " + tensor);
  ASSERT_TRUE(made);
  std::vector<std::byte> memory(made->call.input_bytes);
  ASSERT_TRUE(FillInputs(made->call, memory));
  const size_t second = made->call.args[1].As<TensorPlace>()->offset;
  EXPECT_NE(std::memcmp(memory.data(), memory.data() + second, 400), 0);
}

TEST_F(MindSporeCalls, RangesMayHaveInfinitiesAndNaN) {
  const auto drawn_from = [&](const char* range) {
    const auto made = PrepareArgs(TensorJson("Float32", "[6]", range));
    EXPECT_TRUE(made) << made.error().Text();
    std::vector<std::byte> memory(made->call.input_bytes);
    EXPECT_TRUE(FillInputs(made->call, memory));
    std::vector<float> values(6);
    std::memcpy(values.data(), memory.data(), 24);
    return values;
  };
  const auto is_within = [](float value) { return value >= 1 && value <= 2; };
  const std::vector<float> with_inf =
      drawn_from(R"("Max": Infinity, "Max_except_inf_nan": 2.0, "Min": 1.0)");
  EXPECT_EQ(with_inf.front(), 1);
  EXPECT_EQ(with_inf.back(), INFINITY);
  EXPECT_TRUE(std::all_of(with_inf.begin(), with_inf.end() - 1, is_within));
  const std::vector<float> with_nan =
      drawn_from(R"("Max": NaN, "Max_except_inf_nan": 2.0, "Min": NaN, "Min_except_inf_nan": 1.0)");
  EXPECT_EQ(with_nan.front(), 1);
  EXPECT_TRUE(std::isnan(with_nan[1]));
  EXPECT_TRUE(std::all_of(with_nan.begin() + 2, with_nan.end(), is_within));
  EXPECT_EQ(with_nan.back(), 2);
}

TEST_F(MindSporeCalls, FloatingTensorsRequireAGradientWhereThereIsABackward) {
  const auto plan =
      Open(R"("Mint.mul.0.forward": )" +
           EntryJson(TensorJson("Int64", "[2]") + ", [" + TensorJson("Float32", "[2]") + "]") +
           R"(, "Mint.mul.0.backward": {"input": [)" + TensorJson("Float32", "[2]") +
           R"(], "output": []})");
  ASSERT_TRUE(plan);
  const auto made = plan->Prepare(0);
  ASSERT_TRUE(made) << made.error().Text();
  EXPECT_FALSE(made->call.args[0].As<TensorPlace>()->requires_grad);
  const CallValue& inner = made->call.args[1].As<CallSequence>()->items[0];
  EXPECT_TRUE(inner.As<TensorPlace>()->requires_grad);
  ASSERT_TRUE(made->call.grads);
  EXPECT_EQ(made->call.grads->size(), 1);
  EXPECT_FALSE(made->backward);
}

TEST_F(MindSporeCalls, ABackwardThatCannotBeBuiltLeavesTheForward) {
  const auto plan = Open(R"("Mint.abs.0.forward": )" + EntryJson(TensorJson("Float32", "[2]")) +
                         R"(, "Mint.abs.0.backward": {"input": [)" + TensorJson("UInt64", "[2]") +
                         R"(], "output": []})");
  ASSERT_TRUE(plan);
  const auto made = plan->Prepare(0);
  ASSERT_TRUE(made);
  EXPECT_FALSE(made->call.grads);
  ASSERT_TRUE(made->call.backward_skip);
  EXPECT_EQ(made->call.backward_skip->cause, SkipCause::kBadArgument);
}

TEST_F(MindSporeCalls, ADamagedEntryCostsItsDirection) {
  const std::string good = EntryJson(TensorJson("Float32", "[2]"));
  const auto plan =
      Open(R"("Mint.abs.0.forward": )" + good + R"(, "Mint.abs.0.backward": 3, )" +
               R"("Mint.abs.1.forward": {"input_args": [)" + TensorJson("Float32", "\"[2]\"") +
               R"(]}, "Mint.abs.2.forward": )" + good + R"(, "Mint.abs.2.forward": )" + good,
           R"("task": "statistics", "framework": "mindspore")");
  ASSERT_TRUE(plan) << plan.error().message();
  const auto first = plan->Prepare(0);
  ASSERT_TRUE(first) << first.error().Text();
  EXPECT_EQ(first->call.backward_skip->Text().find("bad-argument: Mint.abs.0.backward: "), 0U);
  EXPECT_EQ(plan->Prepare(1).error().Text().find("bad-argument: Mint.abs.1.forward: shape"), 0U);
  EXPECT_TRUE(plan->Prepare(2));
  ASSERT_EQ(plan->warnings().size(), 1U);
  EXPECT_NE(plan->warnings()[0].find("such as Mint.abs.2.forward"), std::string::npos);
}

// Recordings with tensors.
class MindSporeTensors : public MindSporeCalls {
 protected:
  std::string Recorded(const std::string& name, const std::vector<float>& values,
                       std::string_view dtype = "Float32") {
    const Shape shape = {static_cast<int64_t>(values.size())};
    std::string text = *npy::MakeHeader(DType::kFloat32, shape);
    text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    Write("dump_tensor_data/" + name, text);
    return TensorJson(dtype, "[" + std::to_string(values.size()) + "]",
                      R"("Max": 1, "Min": 0, "data_name": ")" + name + "\"");
  }
  Result<MindSporePlan> OpenTensors(const std::string& data) {
    return Open(data, R"("task": "tensor", "framework": "mindspore",
                         "dump_data_dir": "/of/another/machine")");
  }
};

TEST_F(MindSporeTensors, AreReadBesideTheDumpAndSoAreTheOutputs) {
  const auto plan =
      OpenTensors(R"("Mint.abs.0.forward": )" + EntryJson(Recorded("in.npy", {-1, 2}), "{}",
                                                          "[" + Recorded("out.npy", {1, 2}) + "]"));
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_TRUE(plan->uses_recorded_data());
  const auto made = plan->Prepare(0);
  ASSERT_TRUE(made) << made.error().Text();
  ASSERT_TRUE(made->forward);
  std::vector<std::byte> memory(made->forward->memory.input_bytes);
  ASSERT_TRUE(FillInputs(made->forward->memory, memory));
  const std::vector<float> expected = {1, 2};
  EXPECT_EQ(std::memcmp(memory.data(), expected.data(), 8), 0);
}

TEST_F(MindSporeTensors, OfBFloat16AreWrittenAsFloat32) {
  const auto plan = OpenTensors(R"("Mint.abs.0.forward": )" +
                                EntryJson(Recorded("in.npy", {-1, 1.0078125F}, "BFloat16")));
  ASSERT_TRUE(plan);
  const auto made = plan->Prepare(0);
  ASSERT_TRUE(made) << made.error().Text();
  EXPECT_EQ(made->call.args[0].As<TensorPlace>()->dtype, DType::kBFloat16);
  std::vector<std::byte> memory(made->call.input_bytes);
  ASSERT_TRUE(FillInputs(made->call, memory));
  const std::vector<uint16_t> expected = {0xBF80, 0x3F81};
  EXPECT_EQ(std::memcmp(memory.data(), expected.data(), 4), 0);
}

TEST_F(MindSporeTensors, AMissingFileSkipsItsCallAlone) {
  const std::string gone = TensorJson("Float32", "[2]", R"("data_name": "gone.npy")");
  const auto plan =
      OpenTensors(R"("Mint.abs.0.forward": )" + EntryJson(gone) + R"(, "Mint.abs.1.forward": )" +
                  EntryJson(Recorded("in.npy", {1}), "{}", "[" + gone + "]"));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->Prepare(0).error().cause, SkipCause::kMissingData);
  const auto made = plan->Prepare(1);
  ASSERT_TRUE(made);
  EXPECT_FALSE(made->forward);
  EXPECT_EQ(made->forward_skip->cause, SkipCause::kMissingData);
}

TEST_F(MindSporeTensors, RecordedGradientsFindTheTensorTheyAreOf) {
  const std::string two = Recorded("two.npy", {1, 2}), three = Recorded("three.npy", {1, 2, 3});
  const std::string number = R"({"type": "int", "value": 1})";
  const auto order_of = [&](const std::string& args, const std::string& gradients) {
    const auto plan = OpenTensors(R"("Mint.f.0.forward": )" + EntryJson(args) +
                                  R"(, "Mint.f.0.backward": {"input": [)" + two +
                                  R"(], "output": [)" + gradients + "]}");
    return *(*plan->Prepare(0)).backward;
  };
  const RecordedReturn aligned = order_of(number + "," + two + "," + three, "null, null," + three);
  EXPECT_EQ(aligned.order, GradientOrder::kRecorded);
  const std::vector<CallValue>& items = aligned.value.As<CallSequence>()->items;
  ASSERT_EQ(items.size(), 2);
  EXPECT_TRUE(items[0].is_null());
  EXPECT_EQ(items[1].As<TensorPlace>()->shape, (Shape{3}));
  // Nulls of what is no tensor left out; then one that fits nowhere.
  EXPECT_EQ(order_of(number + "," + two + "," + three, two + "," + three).order,
            GradientOrder::kRecorded);
  EXPECT_EQ(order_of(two + "," + two, three).order, GradientOrder::kListed);
}

}  // namespace
}  // namespace plumbline::precheck::mindspore_calls_test
