#include "formats/xlsx_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/test_directory.h"
#include "formats/xlsx.h"
#include "formats/zip.h"

namespace plumbline::xlsx {
namespace {

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

}  // namespace
}  // namespace plumbline::xlsx
