#include "capture/call_recorder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "capture/recorder_for_test.h"

namespace plumbline::capture {
namespace {

using testing::TestProgram;

constexpr Sight kHit{.hit = true}, kUnknown{.unknown = true};

Config Of(Task task) {
  Config config;
  config.task = task;
  return config;
}

TEST(CallRecorder, OnlyTheOutermostApiIsAnEntry) {
  TestProgram program;
  program.Call("Functional.linear", {}, [&] { program.Call("Torch.matmul"); });
  program.Call("Torch.matmul");
  EXPECT_TRUE(program.Records("Functional.linear.0.forward"));
  EXPECT_TRUE(program.Records("Torch.matmul.0.forward"));
  EXPECT_FALSE(program.Records("Torch.matmul.1.forward"));
}

TEST(CallRecorder, NothingIsRecordedInsideTheToolOrOutsideTheWindow) {
  TestProgram program;
  {
    const InTool in_tool(program.thread, program.recorder.gate());
    program.Call("Torch.add");
  }
  EXPECT_FALSE(program.Records("Torch.add"));  // stops
  program.Call("Torch.mul");
  EXPECT_FALSE(program.Records("Torch.mul"));
}

TEST(CallRecorder, CallThatEndsItsStepIsCountedAsLost) {
  TestProgram program;
  program.Call("Torch.add", {}, [&] {
    program.recorder.EndStep(program.thread);
    program.recorder.observer().Step();
    (void)program.recorder.observer().Start(0);
  });
  program.Call("Torch.mul");
  EXPECT_TRUE(program.Records("Torch.mul.0.forward"));
  EXPECT_FALSE(program.Records("Torch.add"));
  EXPECT_NE(program.File("dump_error_info.log").find("calls_cut_off"), std::string::npos);
}

TEST(CallRecorder, NumbersStartAgainWithTheStep) {
  TestProgram program;
  program.Call("Torch.add");
  program.recorder.EndStep(program.thread);
  program.recorder.observer().Step();
  (void)program.recorder.observer().Start(0);
  program.Call("Torch.add");
  EXPECT_TRUE(program.Records("Torch.add.0.forward"));
}

TEST(CallRecorder, ModulesThatRaisedAreNoParentsOfLaterCalls) {
  Config config;
  config.level = Level::kMix;
  TestProgram program(config);
  const uint64_t outer = program.EnterModule("Module.net.Net");
  const uint64_t raised = program.EnterModule("Module.net.fc.Linear");
  program.LeaveModule(outer);
  EXPECT_FALSE(CallRecorder::IsOpen(program.thread, raised));
  program.Call("Torch.add");
  EXPECT_TRUE(program.thread.modules.empty());
  EXPECT_TRUE(program.Records("Module.net.Net.forward.0"));
  EXPECT_FALSE(program.Records("Linear"));
  EXPECT_NE(program.File("construct.json").find("\"Torch.add.0.forward\": null"),
            std::string::npos);
}

TEST(CallRecorder, BackwardParentIsTheEnclosingModule) {
  TestProgram program;
  EXPECT_EQ(CallRecorder::ParentOfBackward(program.thread), "");
  program.EnterModule("Module.net.Net");
  EXPECT_EQ(CallRecorder::ParentOfBackward(program.thread), "");
  program.EnterModule("Module.net.forwarder.Linear");
  EXPECT_EQ(CallRecorder::ParentOfBackward(program.thread), "Module.net.Net.backward.0");
  ApiCall call = program.recorder.NameApi(program.recorder.observer().counters().Register("F.f"));
  const auto entry = program.recorder.BackwardOf(program.thread, call);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->name, "F.f.0.backward");
  EXPECT_EQ(entry->parent, "Module.net.forwarder.Linear.backward.0");
}

TEST(CallRecorder, GradientOfAnEarlierStepHasNoPlace) {
  TestProgram program;
  ApiCall call = program.recorder.NameApi(program.recorder.observer().counters().Register("F.f"));
  const auto entry = program.recorder.BackwardOf(program.thread, call);
  EXPECT_TRUE(program.recorder.SelectsBackward(*entry));
  program.recorder.observer().Step();
  EXPECT_FALSE(program.recorder.SelectsBackward(*entry));
}

TEST(CallRecorder, RegionIsListedOnceAndCoversWhatRaisedInside) {
  Config config;
  config.level = Level::kMix;
  TestProgram program(config);
  for (int i = 0; i < 2; ++i) {
    program.recorder.PushRegion(program.thread, "optimizer");
    program.EnterModule("Module.net.Net");
    CallRecorder::PopRegion(program.thread, "optimizer");
    EXPECT_TRUE(program.thread.modules.empty());
  }
  EXPECT_NE(program.File("construct.json").find("\"optimizer\""), std::string::npos);
}

TEST(CallRecorder, OverflowCheckRecordsHitsWithTheirTensors) {
  Config config = Of(Task::kOverflowCheck);
  config.hit_limit = std::nullopt;
  TestProgram program(config);
  program.Call("Torch.add");
  program.Call("Torch.mul", {.output = kHit});
  program.Call("Torch.sub", {.input = kHit, .output = kHit});
  program.Call("Torch.div", {.input = kUnknown, .output = kHit});
  const std::string dump = program.File("dump.json");
  EXPECT_EQ(dump.find("Torch.add.0"), std::string::npos);
  EXPECT_NE(dump.find("values of output.0"), std::string::npos);
  for (const char* origin : {"\"origin\"", "\"propagated\"", "\"unknown\""}) {
    EXPECT_NE(dump.find(origin), std::string::npos) << origin;
  }
  EXPECT_EQ(program.stored.size(), 6u);
  EXPECT_EQ(program.live_tensors, 0);
}

TEST(CallRecorder, CollectionEndsWithTheLastHit) {
  Config config = Of(Task::kOverflowCheck);
  config.hit_limit = 1;
  TestProgram program(config);
  program.Call("Torch.add", {.output = kHit});
  program.Call("Torch.mul", {.output = kHit});
  EXPECT_TRUE(program.recorder.observer().is_done());
  EXPECT_TRUE(program.Records("Torch.add.0.forward"));
  EXPECT_FALSE(program.Records("Torch.mul"));
}

TEST(CallRecorder, FreshMemoryThatACallFillsIsNoInput) {
  Config config = Of(Task::kOverflowCheck);
  TestProgram program(config);
  program.Call("Tensor.fill_", {.input = kHit});
  EXPECT_FALSE(program.Records("Tensor.fill_.0"));
}

TEST(CallRecorder, NanCheckFlagsEveryEntry) {
  TestProgram program(Of(Task::kNanCheck));
  program.Call("Torch.add");
  program.Call("Torch.mul", {.output = kHit});
  program.Call("Torch.sub", {.output = kUnknown});
  const std::string dump = program.File("dump.json");
  for (const char* flag : {"\"is_nan\": 0", "\"is_nan\": 1", "\"is_nan\": null"}) {
    EXPECT_NE(dump.find(flag), std::string::npos) << dump;
  }
  EXPECT_TRUE(program.stored.empty());  // none of them is in tensor_list
}

TEST(CallRecorder, WithAListOnlySelectedGradientsKeepTheirPlace) {
  Config config;
  config.level = Level::kL0;
  config.list = {"fc1"};
  TestProgram program(config);
  CallRecorder& recorder = program.recorder;
  const std::string_view weight = "weight";
  for (const char* entry :
       {"Module.fc1.Linear.parameters_grad", "Module.fc2.Linear.parameters_grad"}) {
    recorder.ReserveGradients(program.thread, entry, {&weight, 1});
  }
  EXPECT_TRUE(recorder.SelectsGradients("Module.fc1.Linear.parameters_grad"));
  EXPECT_FALSE(recorder.SelectsGradients("Module.fc2.Linear.parameters_grad"));
  EXPECT_TRUE(program.Records("Module.fc1.Linear.parameters_grad"));
  EXPECT_FALSE(program.Records("Module.fc2.Linear.parameters_grad"));
}

TEST(StepGate, WaitsForThoseInsideAndLetsNobodyIn) {
  StepGate gate;
  gate.Enter();
  std::atomic<bool> has_left = false;
  std::jthread other([&] {
    std::this_thread::yield();
    has_left = true;
    gate.Leave();
  });
  const StepGate::Closed closed(gate, 0, testing::PlainThreads());
  EXPECT_TRUE(has_left);
  EXPECT_TRUE(gate.is_closed());
}

TEST(StepGate, OneThatIsInsideItselfDoesNotWaitForItself) {
  StepGate gate;
  gate.Enter();
  { const StepGate::Closed closed(gate, 1, testing::PlainThreads()); }
  EXPECT_FALSE(gate.is_closed());
}

}  // namespace
}  // namespace plumbline::capture
