#include "precheck/executor_pool.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "base/file/file.h"
#include "base/file/test_directory.h"

namespace plumbline::precheck::executor_pool_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

PoolOptions FakeOptions(const std::string& word = "") {
  PoolOptions options;
  options.program.python = "python3";
  options.program.words = {PLUMBLINE_TEST_DATA "/fake_executors.py"};
  if (!word.empty()) options.program.words.push_back(word);
  options.program.start_limit = seconds(30);
  options.call_limit = seconds(60);
  options.slots = 4;
  return options;
}

using Answers = std::map<std::pair<size_t, Role>, SideResult>;

// A pool that runs calls which consist of a name.
class FakePool {
 public:
  explicit FakePool(const PoolOptions& options) {
    auto made = ExecutorPool::Start(options);
    status_ = made ? plumbline::Status() : made.error();
    if (!made) return;
    pool_ = *std::move(made);
    const auto facts = pool_->AwaitReady();
    if (!facts) status_ = facts.error();
  }

  void Submit(size_t slot, const std::string& name, const std::string& more = "") {
    const auto inputs = pool_->Inputs(slot, 32);
    ASSERT_TRUE(inputs);
    const double values[] = {1, 2, 3, static_cast<double>(slot)};
    std::memcpy(inputs->data(), values, sizeof(values));
    pool_->Submit(slot, {fmt::format("\"name\":\"{}\"{}}}", name, more), 32});
    awaited_ += 2;
  }

  // All answers to what was submitted, or an error of the pool.
  Result<Answers> Collect() {
    Answers answers;
    while (awaited_ > 0) {
      PL_TRY_ASSIGN(std::vector<SideAnswer> some, pool_->Wait(-1, seconds(30)));
      awaited_ -= static_cast<int>(some.size());
      for (SideAnswer& one : some) {
        EXPECT_TRUE(answers.try_emplace({one.slot, one.role}, std::move(one.result)).second);
      }
    }
    return answers;
  }

  // The last number that a side made of a slot; -1: it has none.
  double Last(const Answers& answers, size_t slot, Role role) const {
    const auto at = answers.find({slot, role});
    if (at == answers.end() || !at->second.forward) return -1;
    double value = 0;
    std::memcpy(&value, pool_->Results(slot, role).data() + 24, sizeof(value));
    return value;
  }

  ExecutorPool& pool() { return *pool_; }
  const plumbline::Status& status() const { return status_; }

 private:
  plumbline::Status status_;
  std::unique_ptr<ExecutorPool> pool_;
  int awaited_ = 0;
};

std::string SkipOf(const Answers& answers, size_t slot, Role role) {
  const auto at = answers.find({slot, role});
  if (at == answers.end()) return "no answer";
  return at->second.forward ? "a value" : at->second.forward.error().Text();
}

TEST(ExecutorPool, BothSidesRunEveryCall) {
  PoolOptions options = FakeOptions();
  options.device_workers = 3;
  options.bench_workers = 2;
  FakePool fake(options);
  ASSERT_TRUE(fake.status()) << fake.status().error().message();
  for (int round = 0; round < 50; ++round) {
    for (size_t slot = 0; slot < 4; ++slot) fake.Submit(slot, "echo");
    const auto answers = fake.Collect();
    ASSERT_TRUE(answers) << answers.error().message();
    for (size_t slot = 0; slot < 4; ++slot) {
      EXPECT_EQ(fake.Last(*answers, slot, Role::kBench), static_cast<double>(slot));
      EXPECT_EQ(fake.Last(*answers, slot, Role::kDevice), 2.0 * static_cast<double>(slot));
    }
  }
}

// One bad call among good ones: it costs its side, with a word about how, and nothing else.
void ExpectOneBad(const std::string& name, const std::string& said, const PoolOptions& options) {
  FakePool fake(options);
  ASSERT_TRUE(fake.status()) << fake.status().error().message();
  fake.Submit(0, "echo");
  fake.Submit(1, name + " device");
  fake.Submit(2, "echo");
  fake.Submit(3, name + " bench");
  const auto answers = fake.Collect();
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_EQ(fake.Last(*answers, 0, Role::kDevice), 0);
  EXPECT_EQ(fake.Last(*answers, 1, Role::kBench), 1);
  EXPECT_EQ(fake.Last(*answers, 2, Role::kBench), 2);
  EXPECT_EQ(fake.Last(*answers, 2, Role::kDevice), 4);
  EXPECT_EQ(fake.Last(*answers, 3, Role::kDevice), 6);
  EXPECT_NE(SkipOf(*answers, 1, Role::kDevice).find(said), std::string::npos)
      << SkipOf(*answers, 1, Role::kDevice);
  EXPECT_NE(SkipOf(*answers, 3, Role::kBench).find(said), std::string::npos)
      << SkipOf(*answers, 3, Role::kBench);
}

TEST(ExecutorPool, ACrashCostsOneCall) {
  ExpectOneBad("abort", "crashed: the executor ended with signal 6", FakeOptions());
}

TEST(ExecutorPool, AHangCostsOneCall) {
  PoolOptions options = FakeOptions();
  options.call_limit = milliseconds(500);
  ExpectOneBad("hang", "timeout: no answer within 0.5 s", options);
}

TEST(ExecutorPool, ABigMemoryIsAskedForAloneFirst) {
  ExpectOneBad("memory", "out-of-memory: process", FakeOptions());
  ExpectOneBad("kill", "out-of-memory: the executor was killed (signal 9", FakeOptions());
}

TEST(ExecutorPool, NonsenseCostsOneCall) {
  ExpectOneBad("garbage", "-failed: ", FakeOptions());
  ExpectOneBad("endless", "-failed: an answer without an end", FakeOptions());
  ExpectOneBad("other", "-failed: an answer of an executor: to another call", FakeOptions());
  ExpectOneBad("far", "-failed: an answer of an executor: a tensor of 32 bytes at", FakeOptions());
}

TEST(ExecutorPool, ASkipIsHandedOn) {
  ExpectOneBad("skip", "device-failed: RuntimeError: no kernel", FakeOptions());
}

TEST(ExecutorPool, WorkersGoRoundTheDevices) {
  PoolOptions options = FakeOptions();
  options.device_type = "test";
  options.devices = {0, 2};
  options.device_workers = 4;
  options.slots = 16;
  FakePool fake(options);
  ASSERT_TRUE(fake.status());
  for (size_t slot = 0; slot < 16; ++slot) fake.Submit(slot, "echo");
  ASSERT_TRUE(fake.Collect());
}

TEST(ExecutorPool, TheInterpreterIsStartedAgainOnce) {
  const testing::TestDirectory dir;
  FakePool fake(FakeOptions());
  ASSERT_TRUE(fake.status());
  fake.Submit(0, "kill server once", fmt::format(R"(,"flag":"{}")", dir.Path("was killed")));
  fake.Submit(1, "echo");
  const auto answers = fake.Collect();
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_EQ(fake.Last(*answers, 0, Role::kDevice), 0);
  EXPECT_EQ(fake.Last(*answers, 1, Role::kDevice), 2);
  fake.Submit(2, "kill server device");
  const auto second = fake.Collect();
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message().find("for the second time"), std::string::npos);
}

TEST(ExecutorPool, AnAbsentDeviceIsSaid) {
  PoolOptions options = FakeOptions("no-device");
  options.device_type = "npu";
  const FakePool fake(options);
  ASSERT_FALSE(fake.status());
  EXPECT_EQ(fake.status().error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(fake.status().error().message().find("no device npu"), std::string::npos);
}

TEST(ExecutorPool, AnInterpreterThatCannotStartIsSaid) {
  const FakePool dies(FakeOptions("dies"));
  ASSERT_FALSE(dies.status());
  EXPECT_NE(dies.status().error().message().find("signal 6"), std::string::npos);
  PoolOptions options = FakeOptions();
  options.program.python = "/no/such/python";
  const FakePool none(options);
  ASSERT_FALSE(none.status());
  EXPECT_EQ(none.status().error().code(), ErrorCode::kNotFound);
  EXPECT_NE(none.status().error().message().find("/no/such/python"), std::string::npos);
}

TEST(ExecutorPool, AWaitEndsWhenItIsWoken) {
  FakePool fake(FakeOptions());
  ASSERT_TRUE(fake.status());
  const int wake = ::eventfd(1, EFD_CLOEXEC);
  const auto begin = std::chrono::steady_clock::now();
  const auto answers = fake.pool().Wait(wake, seconds(30));
  EXPECT_TRUE(answers && answers->empty());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
  ::close(wake);
}

}  // namespace
}  // namespace plumbline::precheck::executor_pool_test
