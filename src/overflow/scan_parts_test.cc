#include "overflow/scan_parts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file/test_directory.h"
#include "base/text/json_record.h"
#include "load/rank_scan_record.h"

namespace plumbline {
namespace {

using testing::TestDirectory;

void WriteText(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

// Three ranks, of which rank 1 is damaged and rank 2 has NaN.
class ScanPartsTest : public ::testing::Test {
 protected:
  ScanPartsTest() {
    for (int rank = 0; rank < 3; ++rank) {
      const std::string folder = directory_.Path("rank" + std::to_string(rank));
      WriteText(folder + "/dump.json", rank == 1 ? "]" : DumpOf(rank == 2 ? "NaN" : "1.0"));
      WriteText(folder + "/stack.json", "{}");
      WriteText(folder + "/construct.json", "{}");
    }
  }

  static std::string DumpOf(const std::string& max) {
    return R"({"task": "statistics", "level": "mix", "data": {"Torch.log.0.forward": {)"
           R"("input_args": [], "input_kwargs": {}, "output": [{"type": "torch.Tensor", )"
           R"("dtype": "torch.float32", "shape": [2], "Max": )" +
           max + R"(, "Min": 0.0, "Mean": 0.5, "Norm": 1.0}]}}})";
  }

  // All items, made in `count` parts.
  std::vector<json::Value> Items(uint64_t count, std::string& state) const {
    std::vector<json::Value> items(3);
    for (uint64_t i = 0; i < count; ++i) {
      const auto part = ScanPart(directory_.path(), {i, count}, 1);
      EXPECT_TRUE(part);
      EXPECT_EQ(part->all, 3U);
      state = part->state;
      for (const auto& [index, text] : part->items) items[index] = *json::Value::Parse(text);
    }
    return items;
  }

  TestDirectory directory_;
};

TEST_F(ScanPartsTest, PartsHaveWhatOneProcessReads) {
  for (const uint64_t count : {1U, 2U, 7U}) {
    std::string state;
    const auto items = Items(count, state);
    auto scans = TakeScans(directory_.path(), state, items);
    ASSERT_TRUE(scans) << scans.error().message();
    for (int rank : {0, 2}) {
      const std::string name = "rank" + std::to_string(rank);
      const auto whole = ScanRank({directory_.Path(name), name, rank});
      ASSERT_TRUE(whole);
      const auto& scanned = (*scans)[static_cast<size_t>(rank)].scan;
      ASSERT_TRUE(scanned);
      EXPECT_EQ(json::RecordText(*scanned), json::RecordText(*whole));
      EXPECT_EQ(whole->bad_entries, rank == 2 ? 1U : 0U);
    }
    const auto damaged = (*scans)[1].Take();
    ASSERT_FALSE(damaged);
    EXPECT_EQ(damaged.error().code(), ErrorCode::kCorrupt);
    EXPECT_FALSE(damaged.error().message().empty());
  }
}

TEST_F(ScanPartsTest, WhatChangedSinceIsRefused) {
  std::string state;
  auto items = Items(2, state);
  WriteText(directory_.Path("rank0/dump.json"), DumpOf("22.0"));
  auto scans = TakeScans(directory_.path(), state, items);
  ASSERT_FALSE(scans);
  EXPECT_NE(scans.error().message().find("rank0: has changed since"), std::string::npos);
  items = Items(2, state);
  items[2] = json::Value("no scan");
  EXPECT_FALSE(TakeScans(directory_.path(), state, items));
  std::filesystem::remove_all(directory_.Path("rank1"));
  scans = TakeScans(directory_.path(), state, items);
  ASSERT_FALSE(scans);
  EXPECT_EQ(scans.error().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace plumbline
