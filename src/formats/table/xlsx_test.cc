#include "formats/table/xlsx.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "formats/pytorch/zip.h"

namespace plumbline::xlsx {

namespace {

constexpr std::array<std::string_view, 2> kHeader = {"a", "b"};

std::string FreshDirectory() {
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) /
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
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

using plumbline::testing::TestDirectory;
using Rows = std::map<size_t, std::vector<std::vector<Cell>>>;

Result<Rows> ReadAll(const std::string& path) {
  Rows rows;
  PL_TRY(ReadRows(path, [&](size_t sheet, std::span<const Cell> cells) {
    rows[sheet].emplace_back(cells.begin(), cells.end());
    return true;
  }));
  return rows;
}

std::string WriteTwoSheets(const std::string& path) {
  const std::vector<std::string_view> header{"a", "b & c", "d"};
  auto writer = Writer::CreateEmpty(path);
  EXPECT_TRUE(writer);
  for (const std::string_view name : {"first", "second"}) {
    EXPECT_TRUE(writer->BeginSheet(name, header));
    EXPECT_TRUE(writer->BeginRow(Fill::kRed));
    EXPECT_TRUE(writer->Text("<x> \"y\" \xC3\xA9"));
    EXPECT_TRUE(writer->Text(""));
    EXPECT_TRUE(writer->Number(0.1));
  }
  EXPECT_TRUE(writer->Close());
  return path;
}

TEST(XlsxReader, ReadsWhatTheWriterWrote) {
  const TestDirectory directory;
  const auto rows = ReadAll(WriteTwoSheets(directory.path() + "/a.xlsx"));
  ASSERT_TRUE(rows) << rows.error().message();
  ASSERT_EQ(rows->size(), 2U);
  for (const auto& [sheet, lines] : *rows) {
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0][1].text, "b & c");
    ASSERT_EQ(lines[1].size(), 3U);
    EXPECT_EQ(lines[1][0].text, "<x> \"y\" \xC3\xA9");
    EXPECT_EQ(lines[1][1].text, "");
    EXPECT_EQ(lines[1][2].text, "0.1");
    EXPECT_TRUE(lines[1][2].is_number);
    EXPECT_FALSE(lines[1][0].is_number);
  }
}

TEST(XlsxReader, SheetNamesThatCannotBe) {
  const TestDirectory directory;
  auto writer = Writer::CreateEmpty(directory.path() + "/a.xlsx");
  ASSERT_TRUE(writer);
  EXPECT_FALSE(writer->BeginSheet(std::string(32, 'x'), {}));
  EXPECT_TRUE(writer->BeginSheet("same", {}));
  EXPECT_FALSE(writer->BeginSheet("same", {}));
}

TEST(XlsxReader, EveryCutIsAnError) {
  const TestDirectory directory;
  const std::string path = WriteTwoSheets(directory.path() + "/a.xlsx");
  const std::string whole = *ReadFile(path);
  for (size_t size = 0; size < whole.size(); size += 97) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    const auto rows = ReadAll(path);
    ASSERT_FALSE(rows) << size;
    EXPECT_EQ(rows.error().code(), ErrorCode::kCorrupt) << size;
  }
}

TEST(XlsxReader, FlippedBytesNeverCrash) {
  const TestDirectory directory;
  const std::string path = WriteTwoSheets(directory.path() + "/a.xlsx");
  const std::string whole = *ReadFile(path);
  size_t errors = 0;
  for (size_t at = 0; at < whole.size(); at += 13) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5A);
    std::ofstream(path, std::ios::binary) << damaged;
    errors += ReadAll(path) ? 0 : 1;
  }
  EXPECT_GT(errors, whole.size() / 13 / 4);
}

// A workbook of one sheet with this XML.
std::string WriteXml(const std::string& path, std::string_view sheet, std::string_view shared = "",
                     const std::string& member = "sheet1.xml") {
  zip::Writer archive;
  archive.Add("xl/worksheets/" + member, sheet);
  if (!shared.empty()) archive.Add("xl/sharedStrings.xml", shared);
  std::ofstream(path, std::ios::binary) << archive.text() << archive.Directory();
  return path;
}

constexpr std::string_view kSpace = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
constexpr std::string_view kStrictSpace = "http://purl.oclc.org/ooxml/spreadsheetml/main";

TEST(XlsxReader, PrefixesOfNamespacesAreNoPartOfNames) {
  const TestDirectory directory;
  for (const std::string_view space : {kSpace, kStrictSpace}) {
    const auto rows = ReadAll(WriteXml(
        directory.path() + "/a.xlsx",
        fmt::format("<?xml version='1.0'?><x:worksheet xmlns:x='{}'><x:sheetData><x:row r='1'>"
                    "<x:c r='A1' t='s'><x:v>1</x:v></x:c><x:c r='C1'><x:v>0.5</x:v></x:c></x:row>"
                    "<x:row><x:c t='inlineStr'><x:is><x:r><x:t>a&#233;</x:t></x:r><x:r><x:t>&lt;"
                    "</x:t></x:r></x:is></x:c></x:row></x:sheetData></x:worksheet>",
                    space),
        fmt::format("<y:sst xmlns:y='{}'><y:si/><y:si><y:t>name</y:t><y:rPh><y:t>no</y:t></y:rPh>"
                    "</y:si></y:sst>",
                    space),
        "sheet.xml"));
    ASSERT_TRUE(rows) << rows.error().message();
    const auto& lines = rows->at(0);
    ASSERT_EQ(lines.size(), 2U);
    ASSERT_EQ(lines[0].size(), 3U);
    EXPECT_EQ(lines[0][0].text, "name");
    EXPECT_EQ(lines[0][1].text, "");
    EXPECT_EQ(lines[0][2].text, "0.5");
    EXPECT_TRUE(lines[0][2].is_number);
    EXPECT_EQ(lines[1][0].text, "a\xC3\xA9<");
  }
}

TEST(XlsxReader, WhatOtherNamespacesHoldIsNoRow) {
  const TestDirectory directory;
  const auto rows = ReadAll(WriteXml(
      directory.path() + "/a.xlsx",
      fmt::format("<worksheet xmlns='{}'><sheetData><row><c><v>1</v></c></row></sheetData><extLst>"
                  "<ext xmlns:o='urn:other'><o:row><o:c><o:v>2</o:v></o:c></o:row></ext></extLst>"
                  "</worksheet>",
                  kSpace)));
  ASSERT_TRUE(rows) << rows.error().message();
  ASSERT_EQ(rows->at(0).size(), 1U);
  EXPECT_EQ(rows->at(0)[0][0].text, "1");
}

TEST(XlsxReader, WhatIsNoTableIsSaid) {
  const TestDirectory directory;
  const std::string row = "<row><c><v>1</v></c></row>";
  for (const std::string& xml :
       {"<worksheet xmlns='urn:other'>" + row + "</worksheet>", "<sheet>" + row + "</sheet>",
        "<x:worksheet>" + row + "</x:worksheet>", std::string("<worksheet><row><row/></row>"),
        "<worksheet>" + row, std::string()}) {
    const auto rows = ReadAll(WriteXml(directory.path() + "/a.xlsx", xml));
    ASSERT_FALSE(rows) << xml;
    EXPECT_EQ(rows.error().code(), ErrorCode::kCorrupt) << xml;
    EXPECT_NE(rows.error().message().find("a.xlsx: damaged (xl/worksheets/sheet1.xml: "),
              std::string::npos)
        << rows.error().message();
  }
}

TEST(ZipExtract, StopsAtTheLimit) {
  const TestDirectory directory;
  const std::string archive = *ReadFile(WriteTwoSheets(directory.path() + "/a.xlsx"));
  const auto bytes = std::as_bytes(std::span(archive));
  const auto members = zip::ReadDirectory(bytes);
  ASSERT_TRUE(members);
  size_t deflated = 0;
  for (const zip::Member& member : *members) {
    const auto text = zip::Extract(bytes, member, 1 << 20);
    ASSERT_TRUE(text) << text.error().message();
    EXPECT_TRUE(zip::Extract(bytes, member, text->size()));
    const auto none = zip::Extract(bytes, member, text->size() - 1);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code(), ErrorCode::kInvalidArgument);
    deflated += member.is_deflated ? 1 : 0;
  }
  EXPECT_GT(deflated, 0U);
}

std::string Written(std::string_view text) {
  std::string out;
  AppendSheetText(text, out);
  return out;
}

TEST(SheetText, PlainTextStaysAsItIs) {
  EXPECT_EQ(Written("Functional.linear_1.0 [2, 3]"), "<t>Functional.linear_1.0 [2, 3]</t>");
  EXPECT_EQ(Written(""), "<t></t>");
}

TEST(SheetText, MarkupIsEscaped) {
  EXPECT_EQ(Written("<class 'a' & \"b\">"), "<t>&lt;class 'a' &amp; \"b\"&gt;</t>");
}

TEST(SheetText, BlanksAtTheEndsArePreserved) {
  EXPECT_EQ(Written("inf\t"), "<t xml:space=\"preserve\">inf\t</t>");
  EXPECT_EQ(Written(" a"), "<t xml:space=\"preserve\"> a</t>");
  EXPECT_EQ(Written("a\n b"), "<t>a\n b</t>");
}

TEST(SheetText, ControlCharactersAndEscapesAreEscaped) {
  EXPECT_EQ(Written("a\x1B"
                    "b\r"),
            "<t>a_x001B_b_x000D_</t>");
  EXPECT_EQ(Written("_x000D_ _x00g0_ _x00"), "<t>_x005F_x000D_ _x00g0_ _x00</t>");
}

TEST(SheetText, OnlyCharactersOfXmlRemain) {
  EXPECT_EQ(Written("\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80"),
            "<t>\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80</t>");
  EXPECT_EQ(Written("a\xFF"), "<t>a\xEF\xBF\xBD</t>");
  EXPECT_EQ(Written("\xC3"), "<t>\xEF\xBF\xBD</t>");                   // cut
  EXPECT_EQ(Written("\xC0\xAF"), "<t>\xEF\xBF\xBD\xEF\xBF\xBD</t>");   // overlong
  EXPECT_EQ(Written("\xEF\xBF\xBE").find('\xBE'), std::string::npos);  // U+FFFE
  EXPECT_EQ(Written("\xED\xA0\x80").find('\xED'), std::string::npos);  // a lone surrogate
}

TEST(SheetText, LongTextsAreCutBetweenCharacters) {
  const std::string wide(32766, 'x');
  EXPECT_EQ(Written(wide + "\xC3\xA9"), "<t>" + wide + "</t>");
  EXPECT_EQ(Written(std::string(40000, 'x')).size(), 32767u + 7);
}

}  // namespace

}  // namespace plumbline::xlsx
