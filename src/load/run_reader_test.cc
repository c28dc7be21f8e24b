#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "plumbline/run.h"

namespace plumbline {
namespace {

constexpr const char* kDump = R"({
 "task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": null,
 "data": {
  "Torch.abs.0.forward": {"input_args": [{"type": "int", "value": 1}], "output": []},
  "Torch.abs.1.forward": {"input_args": [], "output": []}
 }
})";

class RunReader : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(::testing::TempDir()) /
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(root_ / name) << text;
  }
  Result<plumbline::Run> Open(bool salvage = false) {
    return plumbline::Run::Open(root_.string(), {.salvage = salvage});
  }

  std::filesystem::path root_;
};

TEST_F(RunReader, CallsStacksAndParentsAreFound) {
  Write("dump.json", kDump);
  Write("stack.json", R"({"Torch.abs.0.forward": ["File a.py, line 1, in f, \n x"]})");
  Write("construct.json",
        R"({"Torch.abs.0.forward": "Module.m.M.forward.0", "Torch.abs.1.forward": null})");
  const Result<plumbline::Run> run = Open();
  ASSERT_TRUE(run) << run.error().message();
  ASSERT_EQ(run->calls().size(), 2u);
  EXPECT_EQ(run->calls()[1].name, "Torch.abs.1.forward");
  EXPECT_EQ(run->StackOf("Torch.abs.0.forward").size(), 1u);
  EXPECT_TRUE(run->StackOf("Torch.abs.1.forward").empty());
  EXPECT_EQ(run->ParentOf("Torch.abs.0.forward"), "Module.m.M.forward.0");
  EXPECT_EQ(run->ParentOf("Torch.abs.1.forward"), "");
  EXPECT_EQ(run->TensorPath("x.pt"), (root_ / "dump_tensor_data" / "x.pt").string());
}

TEST_F(RunReader, GroupedStacksOfNewestReleaseAreRead) {
  Write("dump.json", kDump);
  Write("stack.json", R"({"0": [["Torch.abs.0.forward", "Torch.abs.1.forward"], ["File a.py"]]})");
  const Result<plumbline::Run> run = Open();
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_EQ(run->StackOf("Torch.abs.1.forward").front(), "File a.py");
}

TEST_F(RunReader, SideFilesMayBeMissing) {
  Write("dump.json", kDump);
  const Result<plumbline::Run> run = Open();
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->StackOf("Torch.abs.0.forward").empty());
}

TEST_F(RunReader, TruncatedDumpIsCorruptAndSalvageable) {
  const std::string text = kDump;
  Write("dump.json", text.substr(0, text.find("Torch.abs.1") + 20));
  const Result<plumbline::Run> refused = Open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kCorrupt);
  EXPECT_NE(refused.error().message().find("byte"), std::string::npos);
  const Result<plumbline::Run> salvaged = Open(true);
  ASSERT_TRUE(salvaged) << salvaged.error().message();
  EXPECT_EQ(salvaged->calls().size(), 1u);
  EXPECT_TRUE(salvaged->loss().truncated);
}

TEST_F(RunReader, DamagedStackIsSaidAndLeftOut) {
  Write("dump.json", kDump);
  Write("stack.json", "{\"Torch.abs.0.forward\": [");
  const Result<plumbline::Run> run = Open();
  ASSERT_TRUE(run);
  ASSERT_EQ(run->loss().side_files.size(), 1u);
  EXPECT_NE(run->loss().side_files[0].find("stack.json"), std::string::npos);
  EXPECT_TRUE(run->StackOf("Torch.abs.0.forward").empty());
}

TEST_F(RunReader, LossesOfTheRecorderAreRead) {
  Write("dump.json", kDump);
  EXPECT_EQ(Open()->loss().recorder_drops, 0u);
  Write("dump_error_info.log",
        "[2026-01-01 12:00:00 +0000] [ERROR] tensors_dropped: 9 (disk full)\n"
        "[2026-01-01 12:00:00 +0000] [ERROR] records_not_journaled: 3 (kept)\n"
        "[2025-01-31 12:00:00 +0800] [ERROR] analyse failed: name=x, pid=1\nTraceback\n");
  EXPECT_EQ(Open()->loss().recorder_drops, 10u);
}

TEST_F(RunReader, JournalNewerThanTheDumpIsUnfinished) {
  Write("dump.json", kDump);
  EXPECT_FALSE(Open()->loss().unfinished);
  Write(".dump.journal", "x");
  using std::filesystem::last_write_time;
  const auto now = last_write_time(root_ / "dump.json");
  last_write_time(root_ / ".dump.journal", now - std::chrono::seconds(1));
  EXPECT_FALSE(Open()->loss().unfinished);
  last_write_time(root_ / ".dump.journal", now + std::chrono::seconds(1));
  EXPECT_TRUE(Open()->loss().unfinished);
}

TEST_F(RunReader, TensorsOfAnotherRunAreNotFollowed) {
  const std::filesystem::path other = root_ / "other";
  std::filesystem::create_directories(other / "dump_tensor_data");
  std::string text = kDump;
  text.replace(text.find("null"), 4, "\"" + (other / "dump_tensor_data").string() + "\"");
  Write("dump.json", text);
  std::ofstream(other / "dump.json") << text;
  EXPECT_EQ(Open()->TensorPath("x.pt"), (other / "dump_tensor_data/x.pt").string());
  std::ofstream(other / "dump.json") << kDump;  // recorded again since
  EXPECT_EQ(Open()->TensorPath("x.pt"), (root_ / "dump_tensor_data/x.pt").string());
}

TEST_F(RunReader, DumpDirectoryOfHeaderIsSecondChoice) {
  const std::filesystem::path elsewhere = root_ / "elsewhere";
  std::filesystem::create_directories(elsewhere);
  std::string text = kDump;
  text.replace(text.find("null"), 4, "\"" + elsewhere.string() + "\"");
  Write("dump.json", text);
  EXPECT_EQ(Open()->TensorPath("x.pt"), (elsewhere / "x.pt").string());
  std::filesystem::create_directories(root_ / "dump_tensor_data");
  EXPECT_EQ(Open()->TensorPath("x.pt"), (root_ / "dump_tensor_data" / "x.pt").string());
}

}  // namespace
}  // namespace plumbline
