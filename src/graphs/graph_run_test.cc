#include "graphs/graph_run.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "formats/array/npy.h"

namespace plumbline::graphs {
namespace {

using nlohmann::json;

class GraphRunOf : public ::testing::Test {
 protected:
  GraphRunOf() {
    for (const char* name : {"RANK_ID", "RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH"}) {
      ::unsetenv(name);
    }
  }
  Result<GraphRun> Plan(const char* task, const GraphPlace& place) {
    return GraphRun::Plan(std::nullopt, {task, root_.Path("dump"), "L2", std::nullopt}, place);
  }
  json Written() { return json::parse(*ReadFile(root_.Path("dump/kernel_kbyk_dump.json"))); }

  plumbline::testing::TestDirectory root_;
  const GraphPlace cpu_{"graph_kbyk", "CPU", "2.10.0"};
  const GraphPlace ascend_{"graph_kbyk", "Ascend", "2.10.0"};
};

TEST_F(GraphRunOf, StartsOnce) {
  auto run = Plan("tensor", cpu_);
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_TRUE(run->SetFirstIteration(7));
  const auto first = run->Start();
  EXPECT_FALSE(run->SetFirstIteration(8));
  EXPECT_EQ(Written()["common_dump_settings"]["initial_iteration"], 7);
  ASSERT_EQ(first.set.size(), 1U);
  EXPECT_EQ(first.set[0].second, root_.Path("dump/kernel_kbyk_dump.json"));
  EXPECT_TRUE(run->Start().set.empty());
  EXPECT_TRUE(run->TakeProblems().empty());
  // MindSpore writes it on CPU, and would complain about one that is there.
  EXPECT_EQ(KindOf(run->tree()), PathKind::kMissing);
}

TEST_F(GraphRunOf, MetadataIsWrittenWhereMindSporeLeavesItOut) {
  ::setenv("RANK_ID", "3", 1);
  auto run = Plan("statistics", ascend_);
  ASSERT_TRUE(run) << run.error().message();
  run->Start();
  const std::string place = root_.Path("dump/rank_3/.dump_metadata");
  EXPECT_EQ(json::parse(*ReadFile(place + "/data_dump.json")), Written());
  EXPECT_EQ(json::parse(*ReadFile(place + "/config.json"))["ms_version"], "2.10.0");
  // On CPU every process of MindSpore writes that of rank 0.
  for (const char* rank : {"0", "1"}) {
    ::setenv("RANK_ID", rank, 1);
    auto other = Plan("statistics", cpu_);
    ASSERT_TRUE(other);
    other->Start();
    const std::string file = other->tree() + "/.dump_metadata/config.json";
    EXPECT_EQ(KindOf(file) == PathKind::kFile, std::string(rank) == "1") << file;
  }
  ::unsetenv("RANK_ID");
}

TEST_F(GraphRunOf, ScopesBecomeExpressions) {
  auto run = Plan("tensor", cpu_);
  ASSERT_TRUE(run);
  run->SelectScopes({"fc1-Dense/", "a.b-Net/"});
  run->Start();
  const json common = Written()["common_dump_settings"];
  EXPECT_EQ(common["dump_mode"], 1);
  EXPECT_EQ(common["kernels"],
            json({"name-regex((.*/)?fc1-Dense/.*)", "name-regex((.*/)?a\\.b-Net/.*)"}));
  auto search = Plan("exception_dump", ascend_);
  ASSERT_TRUE(search) << search.error().message();
  search->TakeProblems();
  search->SelectScopes({"fc1-Dense/"});
  EXPECT_EQ(search->TakeProblems().size(), 1U);
}

TEST_F(GraphRunOf, DigestsHaveTheNameOfTheRelease) {
  for (const auto& [version, item] :
       {std::pair("2.7.0", "md5"), std::pair("2.7.1", "hash:md5"),
        std::pair("2.10.0rc1", "hash:md5"), std::pair("2.3", "md5")}) {
    ASSERT_TRUE(WriteFileAtomically(
        root_.Path("c.json"),
        R"({"task": "statistics", "level": "L2", "statistics": {"summary_mode": "md5"}})", false));
    auto run = GraphRun::Plan(root_.Path("c.json"),
                              {std::nullopt, root_.Path("dump"), std::nullopt, std::nullopt},
                              {"graph_kbyk", "Ascend", version});
    ASSERT_TRUE(run) << run.error().message();
    run->Start();
    EXPECT_EQ(Written()["common_dump_settings"]["statistic_category"], json({item})) << version;
  }
}

TEST_F(GraphRunOf, WhatFailsIsSaid) {
  auto run = Plan("tensor", cpu_);
  ASSERT_TRUE(run);
  ASSERT_TRUE(WriteFileAtomically(root_.Path("dump"), "a file", false));
  EXPECT_TRUE(run->Start().set.empty());
  ASSERT_EQ(run->TakeProblems().size(), 1U);
  EXPECT_EQ(GraphRun::Plan(std::nullopt, {"tensor", root_.Path("d"), "L2", std::nullopt},
                           {"graph_kbyk", "TPU", "2.10.0"})
                .error()
                .code(),
            ErrorCode::kInvalidArgument);
}

TEST_F(GraphRunOf, NothingWasDumped) {
  auto run = Plan("statistics", cpu_);
  ASSERT_TRUE(run);
  run->Start();
  run->Step();
  run->Close();
  const auto problems = run->TakeProblems();
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].find("are not complete"), std::string::npos);
}

TEST_F(GraphRunOf, AFullDiskIsSaidOnce) {
  auto run = Plan("statistics", cpu_);
  ASSERT_TRUE(run);
  run->Start();
  const std::string place = run->tree() + "/Net/0/0";
  ASSERT_TRUE(MakeDirectories(place));
  const std::string file = place + "/Add.n-op0.0.0.5.output.0.DefaultFormat.npy";
  ASSERT_TRUE(
      WriteFileAtomically(file, *npy::MakeGraphHeader(DType::kFloat32, Shape{1}) + "abcd", false));
  static SyscallTable real;
  real = Syscalls();
  Syscalls().write = [](int, const void*, size_t) -> ssize_t {
    errno = ENOSPC;
    return -1;
  };
  run->Close();
  run->Step();
  run->Close();
  Syscalls() = real;
  const auto problems = run->TakeProblems();
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].find("No space left"), std::string::npos) << problems[0];
  EXPECT_EQ(KindOf(file), PathKind::kFile);
}

TEST_F(GraphRunOf, AForkedProcessLeavesTheTreeAlone) {
  auto run = Plan("statistics", cpu_);
  ASSERT_TRUE(run);
  run->Start();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    run->Step();
    run->Close();
    const bool quiet = run->TakeProblems().empty();
    { const GraphRun gone = *std::move(run); }
    ::_exit(quiet ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace plumbline::graphs
