#include "formats/xlsx.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "formats/xlsx_reader.h"

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

TEST(Xlsx, FullSheetContinues) {
  constexpr size_t kRowsOfSheet = 1048576, kRows = kRowsOfSheet + 2;  // of data, without headers
  const std::string path = JoinPath(FreshDirectory(), "result.xlsx");
  Result<Writer> writer = Writer::Create(path, kHeader);
  for (size_t i = 0; i < kRows; ++i) {
    ASSERT_TRUE(writer->BeginRow(Fill::kNone));
    const bool near_end = i + 4 > kRowsOfSheet;
    ASSERT_TRUE(!near_end || writer->Number(static_cast<double>(i)));
  }
  ASSERT_TRUE(writer->Close());
  std::vector<size_t> rows;
  std::vector<std::string> last;
  ASSERT_TRUE(ReadRows(path, [&](size_t sheet, std::span<const Cell> cells) {
    rows.resize(sheet + 1);
    ++rows[sheet];
    if (!cells.empty()) last.push_back(cells[0].text);
    return true;
  }));
  EXPECT_EQ(rows, (std::vector<size_t>{kRowsOfSheet, 4}));
  EXPECT_EQ(last, (std::vector<std::string>{"a", "1048573", "1048574", "a", "1048575", "1048576",
                                            "1048577"}));
}

TEST(Xlsx, MissingDirectoryIsNotFound) {
  EXPECT_EQ(Writer::Create("/nonexistent/dir/result.xlsx", kHeader).error().code(),
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace plumbline::xlsx
