#include "capture/engine_recorder.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "base/file/file.h"
#include "base/file/test_directory.h"

namespace plumbline::capture {
namespace {

using Role = EngineRecorder::Role;

// Six floats as a matrix of two rows.
struct Told {
  std::array<float, 6> values = {1, 2, 3, 4, 5, 6};
  std::array<int64_t, 2> sizes = {2, 3};
  std::array<int64_t, 2> strides = {3, 1};
  [[nodiscard]] TensorView view() const {
    return {DType::kFloat32, reinterpret_cast<const std::byte*>(values.data()), sizes, strides};
  }
};

class EngineRecorderTest : public ::testing::Test {
 protected:
  // `task` and `level`: empty for the default.
  std::unique_ptr<EngineRecorder> Create(std::string task = {}, std::string level = {}) {
    EngineOptions options = Options();
    if (!task.empty()) options.overrides.task = std::move(task);
    if (!level.empty()) options.overrides.level = std::move(level);
    auto made = EngineRecorder::Create(options);
    EXPECT_TRUE(made) << made.error().message();
    return made ? *std::move(made) : nullptr;
  }
  EngineOptions Options() {
    EngineOptions options;
    options.keys = {"input_args", "input_kwargs", "output", "parameters"};
    options.overrides.dump_path = dump_.path();
    options.rank = 0;
    return options;
  }
  // One call with one input and one output.
  static void Tell(EngineRecorder& recorder, std::string_view name,
                   const EngineCall* parent = nullptr) {
    auto call = recorder.BeginCall(name, parent);
    ASSERT_TRUE(call) << call.error().message();
    if (*call == nullptr) return;
    const Told told;
    EXPECT_TRUE(recorder.AddTensor(**call, Role::kInput, "", told.view()));
    EXPECT_TRUE(recorder.AddTensor(**call, Role::kOutput, "", told.view()));
    EXPECT_TRUE(recorder.EndCall(**call));
  }
  std::string File(const std::string& name) {
    return ReadFile(JoinPath(dump_.path(), name)).value_or("missing");
  }

  plumbline::testing::TestDirectory dump_;
};

TEST_F(EngineRecorderTest, CallsAreNumberedInEachStep) {
  const auto recorder = Create();
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(recorder->BeginStep(), true);
    Tell(*recorder, "Functional.linear");
    Tell(*recorder, "Functional.linear");
    EXPECT_TRUE(recorder->EndStep());
  }
  recorder->Finish();
  for (const char* step : {"step0/rank0/dump.json", "step1/rank0/dump.json"}) {
    const std::string dump = File(step);
    EXPECT_NE(dump.find("\"Functional.linear.0.forward\""), std::string::npos) << dump;
    EXPECT_NE(dump.find("\"Functional.linear.1.forward\""), std::string::npos) << dump;
    EXPECT_EQ(dump.find("linear.2"), std::string::npos) << dump;
    EXPECT_NE(dump.find("\"Mean\": 3.5"), std::string::npos) << dump;
  }
}

TEST_F(EngineRecorderTest, ModulesEncloseTheCallsMadeInThem) {
  const auto recorder = Create("tensor", "mix");
  EXPECT_EQ(recorder->BeginStep(), true);
  auto module = recorder->BeginCall("Module.fc.Linear", nullptr);
  ASSERT_TRUE(module && *module);
  Tell(*recorder, "Functional.linear", module->get());
  EXPECT_TRUE(recorder->EndCall(**module));
  recorder->Finish();
  const std::string tree = File("step0/rank0/construct.json");
  EXPECT_NE(tree.find("\"Functional.linear.0.forward\": \"Module.fc.Linear.forward.0\""),
            std::string::npos)
      << tree;
  const std::string file = "dump_tensor_data/Functional.linear.0.forward.output.0.pt";
  EXPECT_EQ(KindOf(JoinPath(dump_.path(), "step0/rank0/" + file)), PathKind::kFile);
}

TEST_F(EngineRecorderTest, TheLevelChoosesBetweenApisAndModules) {
  const auto recorder = Create({}, "L0");
  EXPECT_EQ(recorder->BeginStep(), true);
  Tell(*recorder, "Functional.linear");
  Tell(*recorder, "Module.fc.Linear");
  recorder->Finish();
  const std::string dump = File("step0/rank0/dump.json");
  EXPECT_EQ(dump.find("Functional"), std::string::npos) << dump;
  EXPECT_NE(dump.find("\"Module.fc.Linear.forward.0\""), std::string::npos) << dump;
}

TEST_F(EngineRecorderTest, CallsThatOverlapAreApart) {
  const auto recorder = Create();
  EXPECT_EQ(recorder->BeginStep(), true);
  const Told told;
  auto first = recorder->BeginCall("Functional.relu", nullptr);
  auto second = recorder->BeginCall("Functional.gelu", nullptr);
  ASSERT_TRUE(first && *first && second && *second);
  EXPECT_TRUE(recorder->AddTensor(**first, Role::kInput, "", told.view()));
  EXPECT_TRUE(recorder->EndCall(**second));
  EXPECT_TRUE(recorder->AddTensor(**first, Role::kOutput, "", told.view()));
  EXPECT_TRUE(recorder->EndCall(**first));
  recorder->Finish();
  const std::string dump = File("step0/rank0/dump.json");
  EXPECT_NE(dump.find("relu.0.forward\": {\n   \"input_args\": [\n"), std::string::npos) << dump;
}

TEST_F(EngineRecorderTest, ThreadsTellOfTheirCallsAtOnce) {
  const auto recorder = Create();
  EXPECT_EQ(recorder->BeginStep(), true);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&recorder] {
      for (int call = 0; call < 25; ++call) Tell(*recorder, "Functional.relu");
    });
  }
  for (std::thread& thread : threads) thread.join();
  recorder->Finish();
  const std::string dump = File("step0/rank0/dump.json");
  EXPECT_NE(dump.find("\"Functional.relu.99.forward\""), std::string::npos);
  size_t means = 0;
  for (size_t at = dump.find("\"Mean\": 3.5"); at != std::string::npos;
       at = dump.find("\"Mean\": 3.5", at + 1)) {
    ++means;
  }
  EXPECT_EQ(means, 200U);
}

TEST_F(EngineRecorderTest, ACallBehindTheEndOfItsStepIsCountedAsLost) {
  const auto recorder = Create();
  EXPECT_EQ(recorder->BeginStep(), true);
  auto late = recorder->BeginCall("Functional.relu", nullptr);
  ASSERT_TRUE(late && *late);
  EXPECT_TRUE(recorder->EndStep());
  EXPECT_TRUE(recorder->AddTensor(**late, Role::kOutput, "", Told().view()));
  EXPECT_TRUE(recorder->EndCall(**late));
  EXPECT_EQ(recorder->BeginStep(), true);
  recorder->Finish();
  const std::string losses = File("step1/rank0/dump_error_info.log");
  EXPECT_NE(losses.find("the step ended before the call did"), std::string::npos) << losses;
}

TEST_F(EngineRecorderTest, ParametersAndKeywordArgumentsHaveNames) {
  const auto recorder = Create("tensor", "L0");
  EXPECT_EQ(recorder->BeginStep(), true);
  auto call = recorder->BeginCall("Module.fc.Linear", nullptr);
  ASSERT_TRUE(call && *call);
  const Told told;
  EXPECT_TRUE(recorder->AddTensor(**call, Role::kInput, "mask", told.view()));
  EXPECT_TRUE(recorder->AddTensor(**call, Role::kOutput, "", told.view()));
  EXPECT_TRUE(recorder->AddTensor(**call, Role::kParameter, "weight", told.view()));
  EXPECT_FALSE(recorder->AddTensor(**call, Role::kParameter, "weight", told.view()));
  EXPECT_FALSE(recorder->AddTensor(**call, Role::kParameter, "", told.view()));
  EXPECT_FALSE(recorder->AddTensor(**call, Role::kOutput, "out", told.view()));
  EXPECT_TRUE(recorder->EndCall(**call));
  recorder->Finish();
  const std::string dump = File("step0/rank0/dump.json");
  for (const char* file : {"kwargs.mask.pt", "output.0.pt", "parameters.weight.pt"}) {
    EXPECT_NE(dump.find("Module.fc.Linear.forward.0." + std::string(file)), std::string::npos)
        << dump;
  }
  EXPECT_LT(dump.find("\"input_kwargs\": {\n    \"mask\""), dump.find("\"parameters\": {\n"));
}

TEST_F(EngineRecorderTest, WrongOrderIsAnError) {
  const auto recorder = Create();
  EXPECT_FALSE(recorder->EndStep());
  EXPECT_EQ(recorder->BeginStep(), true);
  EXPECT_FALSE(recorder->BeginStep());
  auto call = recorder->BeginCall("Functional.relu", nullptr);
  ASSERT_TRUE(call && *call);
  EXPECT_TRUE(recorder->AddTensor(**call, Role::kOutput, "", Told().view()));
  EXPECT_FALSE(recorder->AddTensor(**call, Role::kInput, "", Told().view()));
  EXPECT_TRUE(recorder->EndCall(**call));
  EXPECT_FALSE(recorder->EndCall(**call));
  EXPECT_FALSE(recorder->AddTensor(**call, Role::kOutput, "", Told().view()));
  for (const char* name : {"", "linear", "Module.", "Functional."}) {
    EXPECT_FALSE(recorder->BeginCall(name, nullptr)) << name;
  }
}

TEST_F(EngineRecorderTest, WhatNeedsHooksIsRefused) {
  EngineOptions options = Options();
  options.overrides.task = "overflow_check";
  EXPECT_EQ(EngineRecorder::Create(options).error().code(), ErrorCode::kUnsupported);
  options = Options();
  options.overrides.level = "debug";
  EXPECT_EQ(EngineRecorder::Create(options).error().code(), ErrorCode::kUnsupported);
  options = Options();
  options.framework = "jax";
  EXPECT_EQ(EngineRecorder::Create(options).error().code(), ErrorCode::kInvalidArgument);
}

TEST_F(EngineRecorderTest, AnUnwritableDirectoryIsAnErrorAndNothingIsRecorded) {
  EngineOptions options = Options();
  const std::string blocked = JoinPath(dump_.path(), "blocked");
  ASSERT_TRUE(MakeDirectories(blocked));
  ASSERT_TRUE(WriteFileAtomically(JoinPath(blocked, "step0"), "in the way", false));
  options.overrides.dump_path = blocked;
  auto recorder = EngineRecorder::Create(options);
  ASSERT_TRUE(recorder) << recorder.error().message();
  const Result<bool> begun = (*recorder)->BeginStep();
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code(), ErrorCode::kIo);
  auto call = (*recorder)->BeginCall("Functional.relu", nullptr);
  ASSERT_TRUE(call);
  EXPECT_EQ(*call, nullptr);
  EXPECT_TRUE((*recorder)->EndStep());
}

}  // namespace
}  // namespace plumbline::capture
