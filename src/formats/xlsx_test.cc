#include "formats/xlsx.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <vector>

#include "base/file.h"

namespace plumbline::xlsx {
namespace {

constexpr std::array<std::string_view, 2> kHeader = {"a", "b"};

std::string FreshDirectory() {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) /
                                     testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path.string();
}

// Contents are read back with openpyxl by tests/golden; here the file's life is tested.
TEST(Xlsx, AppearsOnlyWhenClosed) {
  const std::string directory = FreshDirectory();
  const std::string path = JoinPath(directory, "result.xlsx");
  Result<Writer> writer = Writer::Create(path, kHeader);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->BeginRow(Fill::kRed));
  ASSERT_TRUE(writer->Number(1.5));
  ASSERT_TRUE(writer->Text("=SUM(A1)"));
  EXPECT_EQ(KindOf(path), PathKind::kMissing);
  ASSERT_TRUE(writer->Close());
  EXPECT_EQ(KindOf(path), PathKind::kFile);
  EXPECT_EQ(ListDirectory(directory)->size(), 1u);
}

TEST(Xlsx, DroppedWithoutCloseLeavesNothing) {
  const std::string directory = FreshDirectory();
  {
    Result<Writer> writer = Writer::Create(JoinPath(directory, "result.xlsx"), kHeader);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->BeginRow(Fill::kNone));
    ASSERT_TRUE(writer->Text(""));
  }
  EXPECT_TRUE(ListDirectory(directory)->empty());
}

TEST(Xlsx, FileModeIsNotWorldReadable) {
  const std::string path = JoinPath(FreshDirectory(), "result.xlsx");
  Result<Writer> writer = Writer::Create(path, kHeader);
  ASSERT_TRUE(writer->Close());
  const auto others = std::filesystem::perms::others_all;
  EXPECT_EQ(std::filesystem::status(path).permissions() & others, std::filesystem::perms::none);
}

TEST(Xlsx, OverlongTextIsCutNotRefused) {
  Result<Writer> writer = Writer::Create(JoinPath(FreshDirectory(), "result.xlsx"), kHeader);
  ASSERT_TRUE(writer->BeginRow(Fill::kNone));
  EXPECT_TRUE(writer->Text(std::string(40000, 'x')));
  EXPECT_TRUE(writer->Close());
}

TEST(Xlsx, MissingDirectoryIsNotFound) {
  EXPECT_EQ(Writer::Create("/nonexistent/dir/result.xlsx", kHeader).error().code(),
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace plumbline::xlsx
