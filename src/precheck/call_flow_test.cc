#include "precheck/call_flow.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>

namespace plumbline::precheck::call_flow_test {
namespace {

// Calls of the fake executors, which answer with their inputs, doubled on the device.
class FakeCalls : public CheckedCalls {
 public:
  // Call number `bad` does what `misdeed` names; every tenth one cannot be made ready.
  explicit FakeCalls(size_t bad = 1000, std::string misdeed = "", size_t bytes = 32)
      : bad_(bad), misdeed_(std::move(misdeed)), bytes_(bytes) {}

  OrSkip<CallToRun> Prepare(size_t index) const override {
    if (index % 10 == 9) return Skip{SkipCause::kBadArgument, "nine"};
    CallToRun to_run;
    to_run.call.name = index == bad_ ? misdeed_ : "echo";
    to_run.call.input_bytes = bytes_;
    GeneratedData data;
    data.key = index;
    data.range = {1, 2, 1, 2};
    to_run.call.fills.push_back({0, DType::kFloat64, {4}, data, false});
    to_run.runs_device = index % 2 == 0;
    return to_run;
  }

  CallOutcome Skipped(size_t index, Skip skip) const override {
    CallOutcome outcome;
    outcome.name = std::to_string(index);
    outcome.forward.status = CheckStatus::kSkip;
    outcome.forward.skip = std::move(skip);
    return outcome;
  }

  CallOutcome Judge(const RanCall& ran) const override {
    if (!ran.bench->forward) return Skipped(ran.index, ran.bench->forward.error());
    CallOutcome outcome;
    outcome.name = std::to_string(ran.index);
    outcome.forward.status = IsRight(ran) ? CheckStatus::kPass : CheckStatus::kError;
    return outcome;
  }

 private:
  static bool IsRight(const RanCall& ran) {
    double given = 0, bench = 0, device = 0;
    std::memcpy(&given, ran.inputs.data(), sizeof(given));
    std::memcpy(&bench, ran.bench_memory.data(), sizeof(bench));
    if (given < 1 || bench != given) return false;
    if (ran.device == nullptr) return ran.index % 2 == 1;
    std::memcpy(&device, ran.device_memory.data(), sizeof(device));
    return device == 2 * given;
  }

  size_t bad_;
  std::string misdeed_;
  size_t bytes_;
};

std::unique_ptr<ExecutorPool> FakePool() {
  PoolOptions options;
  options.program.python = "python3";
  options.program.words = {PLUMBLINE_TEST_DATA "/fake_executors.py"};
  options.bench_workers = options.device_workers = 2;
  auto pool = ExecutorPool::Start(options);
  EXPECT_TRUE(pool);
  return pool ? *std::move(pool) : nullptr;
}

std::vector<size_t> Numbers(size_t count) {
  std::vector<size_t> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = i;
  return numbers;
}

using Recorded = std::map<size_t, CallOutcome>;
Result<FlowEnd> RunFake(const FakeCalls& calls, size_t count, const FlowOptions& options,
                        Recorded& recorded) {
  const auto pool = FakePool();
  return RunCalls(calls, Numbers(count), *pool, options, [&](size_t index, CallOutcome outcome) {
    EXPECT_TRUE(recorded.try_emplace(index, std::move(outcome)).second);
    return plumbline::Status();
  });
}

void ExpectAll(const Recorded& recorded, size_t count) {
  EXPECT_EQ(recorded.size(), count);
  for (const auto& [index, outcome] : recorded) {
    EXPECT_EQ(outcome.name, std::to_string(index));
    const CheckStatus expected = index % 10 == 9 ? CheckStatus::kSkip : CheckStatus::kPass;
    EXPECT_EQ(outcome.forward.status, expected) << index;
  }
}

TEST(CallFlow, EveryCallIsRecordedOnce) {
  Recorded recorded;
  const auto end = RunFake(FakeCalls(), 500, {.threads = 3}, recorded);
  ASSERT_TRUE(end) << end.error().message();
  EXPECT_FALSE(end->was_stopped);
  EXPECT_EQ(end->facts.framework_version, "1.0");
  ExpectAll(recorded, 500);
}

TEST(CallFlow, LargeInputsWaitForRoom) {
  Recorded recorded;
  const FakeCalls calls(1000, "", size_t{3} << 20);
  const auto end = RunFake(calls, 50, {.threads = 3, .most_input_bytes = 1}, recorded);
  ASSERT_TRUE(end) << end.error().message();
  ExpectAll(recorded, 50);
}

TEST(CallFlow, ABadCallIsOneOutcome) {
  Recorded recorded;
  const auto end = RunFake(FakeCalls(4, "abort bench"), 20, {}, recorded);
  ASSERT_TRUE(end) << end.error().message();
  EXPECT_EQ(recorded[4].forward.skip->cause, SkipCause::kCrashed);
  recorded.erase(4);
  ExpectAll(recorded, 19);
}

TEST(CallFlow, AStopEndsItBetweenCalls) {
  Recorded recorded;
  std::atomic<int> asked = 0;
  const FlowOptions options{.threads = 2, .is_stopped = [&] { return ++asked > 3; }};
  const auto end = RunFake(FakeCalls(4, "hang bench"), 20, options, recorded);
  ASSERT_TRUE(end) << end.error().message();
  EXPECT_TRUE(end->was_stopped);
  EXPECT_FALSE(recorded.contains(4));
  for (const auto& [index, outcome] : recorded) EXPECT_EQ(outcome.name, std::to_string(index));
}

TEST(CallFlow, WhoCannotRecordEndsIt) {
  const auto pool = FakePool();
  size_t count = 0;
  const auto end = RunCalls(FakeCalls(), Numbers(50), *pool, {}, [&](size_t, const CallOutcome&) {
    return ++count < 5 ? plumbline::Status() : Error(ErrorCode::kIo, "no space left");
  });
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().message(), "no space left");
  EXPECT_EQ(count, 5U);
}

TEST(CallFlow, ARequestHoldsTheWholeCall) {
  PreparedCall call;
  call.name = "Functional.linear.0";
  call.type = "Functional";
  call.api = "linear";
  call.args.emplace_back(TensorPlace{.dtype = DType::kFloat16, .shape = {2}, .offset = 64});
  call.kwargs = {{"bias", CallValue()}};
  EXPECT_EQ(RequestText(call),
            R"("name":"Functional.linear.0","type":"Functional","api":"linear",)"
            R"("args":[{"tensor":["float16",[2],64,false,null]}],"kwargs":[["bias",null]],)"
            R"("grads":null,"autocast":null})");
  call.grads = std::vector<CallValue>{CallValue(), CallValue(int64_t{1})};
  call.autocast = DType::kBFloat16;
  const std::string text = RequestText(call);
  EXPECT_TRUE(text.ends_with(R"("grads":[null,1],"autocast":"bfloat16"})")) << text;
}

}  // namespace
}  // namespace plumbline::precheck::call_flow_test
