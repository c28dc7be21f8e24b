#include "watch/perturb/check.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/text/csv.h"

namespace plumbline::perturb {
namespace {

using testing::TestDirectory;

Config ConfigFor(const std::string& path) {
  Config config;
  config.task = Task::kFreeBenchmark;
  config.dump_path = path;
  config.perturbation.modes = {Perturbation::kBitNoise};
  return config;
}

Comparison ComparedCall(const std::string& api, double change) {
  Comparison comparison;
  comparison.call = {api, api + ".0.forward", 0};
  comparison.mode = Perturbation::kBitNoise;
  comparison.default_threshold = 1.0002;
  if (change == 0) return comparison;
  OutputRow row;
  row.difference = Difference{.max_rel = change, .word = {}, .change = change};
  row.dtype = "torch.float32";
  row.shape = "torch.Size([2, 3])";
  comparison.rows.push_back(row);
  return comparison;
}

Expected Estimate(double change) { return Difference{.max_rel = 0, .word = {}, .change = change}; }

std::vector<csv::Row> Rows(const std::string& path) {
  const auto rows = csv::ReadRows(path);
  EXPECT_TRUE(rows) << path;
  return rows ? *rows : std::vector<csv::Row>();
}

TEST(Check, WhatItsConditionDoesNotExplainComesFirst) {
  const TestDirectory root;
  auto check = Check::Create(ConfigFor(root.path()), "pytorch");
  ASSERT_TRUE(check);
  (*check)->Begin(3, 5);
  (*check)->Report(ComparedCall("Torch.fine", 0), {});
  (*check)->Report(ComparedCall("Torch.steep", 8), Estimate(7));
  (*check)->Report(ComparedCall("Torch.wrong", 0.01), Estimate(1e-5));
  (*check)->Report(ComparedCall("Torch.unknown", 0.5), {});
  (*check)->Skip({"Torch.random", "Torch.random.0.forward", 0}, Perturbation::kBitNoise, "why");
  (*check)->Close();
  std::vector<std::string> order;
  for (const csv::Row& row : Rows(root.path() + "/rank5/free_benchmark_summary.csv")) {
    order.push_back(row[0] + " " + row[8]);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"api unexplained", "Torch.wrong 1", "Torch.steep 0",
                                             "Torch.unknown 0", "Torch.fine 0",
                                             "Torch.random 0"}));
  EXPECT_EQ(Rows(root.path() + "/step3/rank5/free_benchmark.csv").size(), 4u);
}

TEST(Check, NothingIsMadeBeforeThereIsARow) {
  const TestDirectory root;
  auto check = Check::Create(ConfigFor(root.path()), "pytorch");
  (*check)->Begin(0, std::nullopt);
  (*check)->EndStep();
  EXPECT_EQ(ListDirectory(root.path())->size(), 0u);
}

TEST(Check, RowsOfAnEarlierRunAndOfAnotherProcessStay) {
  const TestDirectory root;
  const std::string path = root.path() + "/step0/rank/free_benchmark.csv";
  for (int run = 0; run < 2; ++run) {
    auto check = Check::Create(ConfigFor(root.path()), "pytorch");
    (*check)->Begin(0, std::nullopt);
    (*check)->Report(ComparedCall("Torch.a", 1), {});
  }
  EXPECT_EQ(Rows(path).size(), 2u);
  EXPECT_EQ(Rows(path + ".1").size(), 2u);
  Result<File> other = File::OpenAppend(path);
  ASSERT_TRUE(other && other->TryLock());
  auto check = Check::Create(ConfigFor(root.path()), "pytorch");
  (*check)->Begin(0, std::nullopt);
  (*check)->Report(ComparedCall("Torch.a", 1), {});
  EXPECT_EQ(Rows(path).size(), 2u);
  EXPECT_EQ(ListDirectory(root.path() + "/step0/rank")->size(), 3u);
}

TEST(Check, AFullDiskIsCountedAndRaisesNothing) {
  const TestDirectory root;
  auto check = Check::Create(ConfigFor(root.path()), "pytorch");
  (*check)->Begin(0, std::nullopt);
  const SyscallTable saved = Syscalls();
  Syscalls().write = [](int, const void*, size_t) -> ssize_t {
    errno = ENOSPC;
    return -1;
  };
  (*check)->Report(ComparedCall("Torch.a", 1), {});
  (*check)->EndStep();
  Syscalls() = saved;
  (*check)->Report(ComparedCall("Torch.a", 1), {});
  (*check)->Close();
  EXPECT_EQ(Rows(root.path() + "/rank/free_benchmark_summary.csv")[1][4], "2");
}

TEST(Check, MindSporeHasNoCpuModeAndNoPreheat) {
  Config config = ConfigFor("out");
  config.perturbation.has_preheat = true;
  auto check = Check::Create(config, "mindspore");
  ASSERT_TRUE(check);
  EXPECT_EQ((*check)->warnings().size(), 1u);
  EXPECT_FALSE((*check)->config().has_preheat);
  config.perturbation.on_cpu = true;
  EXPECT_FALSE(Check::Create(config, "mindspore"));
  config.perturbation.list = {"mindspore.mint.div"};
  config.perturbation.on_cpu = false;
  check = Check::Create(config, "mindspore");
  EXPECT_TRUE((*check)->Selects({"Mint.div", "Mint.div.0.forward", 0}));
  EXPECT_FALSE((*check)->Selects({"Mint.divide", "Mint.divide.0.forward", 0}));
}

}  // namespace
}  // namespace plumbline::perturb
