#include "formats/json/error_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file/test_directory.h"

namespace plumbline {
namespace {

using testing::TestDirectory;

class ErrorLogTest : public ::testing::Test {
 protected:
  // The sum of what a log of that text counts; of an error 999.
  uint64_t Missing(const std::string& text) {
    std::ofstream(path_) << text;
    return Missing();
  }
  [[nodiscard]] uint64_t Missing() const {
    const auto losses = error_log::Read(path_);
    return losses ? error_log::CountMissing(*losses) : 999;
  }

  const TestDirectory directory_;
  const std::string path_ = directory_.Path("dump_error_info.log");
};

TEST_F(ErrorLogTest, WhatIsWrittenIsRead) {
  const std::vector<Loss> losses = {{"calls_dropped", 3, "why (so)"},
                                    {"records_not_journaled", 7, "kept"}};
  EXPECT_EQ(Missing(error_log::Format(losses, 4096)), 3U);
  const auto read = error_log::Read(path_);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0].sentence, "why (so)");
  EXPECT_EQ((*read)[1].count, 7U);
}

TEST_F(ErrorLogTest, NeverLongerThanAsked) {
  std::vector<Loss> losses(50, {"calls_dropped", 1, std::string(5000, 'x')});
  const std::string text = error_log::Format(losses, 4096);
  EXPECT_LE(text.size(), 4096U);
  EXPECT_TRUE(text.ends_with(")\n"));
  EXPECT_GT(Missing(text), 0U);
}

TEST_F(ErrorLogTest, LinesOfOthersCountOneEach) {
  EXPECT_EQ(Missing("[2024] [ERROR] something failed\nTraceback\n[2024] [ERROR] a: b\n"), 2U);
  EXPECT_EQ(Missing("[t] [ERROR] a: 0 ()\n"), 1U);
}

TEST_F(ErrorLogTest, ATextOfAnotherKindIsALoss) {
  EXPECT_EQ(Missing("Traceback (most recent call last):\n"), 1U);
  EXPECT_EQ(Missing(std::string("\0\0", 2)), 1U);
  EXPECT_EQ(Missing(" \n\n"), 0U);
  EXPECT_EQ(Missing(""), 0U);
}

TEST_F(ErrorLogTest, CountsNeverWrapAround) {
  const std::string half = "[t] [ERROR] a: 9223372036854775808 (x)\n";
  EXPECT_GT(Missing(half + half), uint64_t{1} << 63);
  EXPECT_GT(Missing("[t] [ERROR] a: 18446744073709551615 (x)\n[t] [ERROR] b: 1 (x)\n"), 1U);
  EXPECT_EQ(Missing("[t] [ERROR] a: 99999999999999999999999 (x)\n"), 1U);
}

TEST_F(ErrorLogTest, AHugeOneIsALossAndNotRead) {
  EXPECT_EQ(Missing("[t] [ERROR] a: 2 (x)\n"), 2U);
  std::filesystem::resize_file(path_, uint64_t{3} << 30);
  EXPECT_EQ(Missing(), 3U);
  std::ofstream(path_).close();
  std::filesystem::resize_file(path_, uint64_t{3} << 30);
  EXPECT_GT(Missing(), 0U);
}

TEST_F(ErrorLogTest, AsManyCountersAsAFileNamesAreNotKept) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "[t] [ERROR] c" + std::to_string(i) + ": 1 (x)\n";
  EXPECT_EQ(Missing(text), 10'000U);
  EXPECT_LT(error_log::Read(path_)->size(), 100U);
}

TEST_F(ErrorLogTest, WhatIsNoFileIsAnError) {
  EXPECT_EQ(error_log::Read(path_).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_log::Read(directory_.path()).error().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace plumbline
