#include "base/text/csv.h"

#include <gtest/gtest.h>

#include <random>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/text/text_parts.h"

namespace plumbline::csv {
namespace {

std::string Written(const Row& row) {
  std::string out;
  AppendRow(std::span<const std::string>(row), out);
  return out;
}

TEST(Csv, QuotesOnlyWhereNeeded) {
  EXPECT_EQ(Written({"a", "b c", "x,y", "say \"hi\"", "two\nlines", ""}),
            "a,b c,\"x,y\",\"say \"\"hi\"\"\",\"two\nlines\",\n");
  EXPECT_EQ(Written({""}), "\"\"\n");
}

TEST(Csv, NamesAreWrittenExactly) {
  for (const std::string name : {"a", "-a", "=b", "\xFF", "a,b", "a\"b", "a\r\nb", "@\n"}) {
    std::string text;
    AppendExactly(name, text);
    const auto first = ParseFirst(text + "\nnext,row\n");
    ASSERT_TRUE(first) << name;
    EXPECT_EQ(first->cells, Row{name});
    EXPECT_EQ(first->bytes, text.size() + 1);
  }
  EXPECT_EQ(ParseFirst("\r\nx")->bytes, 2U);
  EXPECT_FALSE(ParseFirst("\"a\nb,c\n"));
}

TEST(Csv, OnlyTextIsWritten) {
  std::string out;
  AppendCell("a\xC3\xA9", out);
  EXPECT_EQ(out, "a\xC3\xA9");
  out.clear();
  AppendCell(std::string_view("\xFF,\0", 3), out);
  EXPECT_EQ(out, "\"\xEF\xBF\xBD,\xEF\xBF\xBD\"");
}

TEST(Csv, FormulaCellsGetALeadingSpace) {
  EXPECT_EQ(Written({"=1+1", "@x", "+cmd", "-a", "%x", "a;=b"}), " =1+1, @x, +cmd, -a, %x, a;=b\n");
  EXPECT_EQ(Written({"=A,B"}), "\" =A,B\"\n");
  EXPECT_EQ(Written({"\xEF\xBC\x9D"}), " \xEF\xBC\x9D\n");
}

TEST(Csv, FormulasBehindTabsAndLineBreaksToo) {
  EXPECT_EQ(Written({"\t=1+1", "\t\t@x", "\t-a"}), " \t=1+1, \t\t@x, \t-a\n");
  EXPECT_EQ(Written({"\r=1+1", "\r\n+cmd", "\n=1"}), "\" \r=1+1\",\" \r\n+cmd\",\" \n=1\"\n");
  EXPECT_TRUE(LooksLikeFormula("a;\t=b"));
  EXPECT_TRUE(LooksLikeFormula("\t @a"));
  EXPECT_TRUE(LooksLikeFormula("\n \t=1"));
  EXPECT_EQ(Written({"\ta", "\r", "\t-1.5", " =1"}), "\ta,\"\r\",\t-1.5, =1\n");
}

TEST(Csv, NumbersAreNoFormulas) {
  EXPECT_EQ(Written({"-1", "+2.5", "-1e-05", "-inf", "-nan", "-0.0"}),
            "-1,+2.5,-1e-05,-inf,-nan,-0.0\n");
  EXPECT_TRUE(LooksLikeFormula("--1"));
  EXPECT_TRUE(LooksLikeFormula("-1+2"));
  EXPECT_TRUE(LooksLikeFormula("-"));
}

TEST(Csv, ReadsEveryLineEndAndTheByteOrderMark) {
  const auto rows = Parse(
                        "\xEF\xBB\xBF"
                        "a,b\r\n\nc\rd,\"e\"\"\n\"")
                        .value();
  EXPECT_EQ(rows, (std::vector<Row>{{"a", "b"}, {}, {"c"}, {"d", "e\"\n"}}));
  EXPECT_TRUE(Parse("").value().empty());
}

TEST(Csv, DamagedQuotesAreCorrupt) {
  EXPECT_EQ(Parse("a,\"b").error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(Parse("\"a\"b").error().code(), ErrorCode::kCorrupt);
}

TEST(Csv, RowsOfALongFileComeOneByOne) {
  const testing::TestDirectory dir;
  const std::string path = dir.Path("a.csv");
  // Lines of many lengths across the ends of blocks, and a last one without an end.
  std::string text = "\xEF\xBB\xBF";
  for (size_t i = 0; text.size() < (size_t{9} << 20); ++i) {
    text += std::to_string(i) + ",\"(" + std::string(i % 701, '1') + ",2)\"\r\n";
    if (i % 1000 == 0) text += '\n';
  }
  text += "last,x";
  const std::vector<Row> expected = Parse(text).value();
  ASSERT_TRUE(WriteFileAtomically(path, text, /*durable=*/false));
  size_t at = 0;
  ASSERT_TRUE(VisitRows(path, [&](const Row& row) -> Status {
    EXPECT_EQ(row, expected.at(at++));
    return {};
  }));
  EXPECT_EQ(at, expected.size());
  const auto stop = [](const Row& /*row*/) { return Status(Error(ErrorCode::kIo, "enough")); };
  EXPECT_EQ(VisitRows(path, stop).error().message(), path + ": enough");
  EXPECT_EQ(VisitRows(dir.Path("none"), stop).error().code(), ErrorCode::kNotFound);
  ASSERT_TRUE(WriteFileAtomically(path, text + ",\"y", /*durable=*/false));
  const auto go_on = [](const Row& /*row*/) { return Status(); };
  EXPECT_EQ(VisitRows(path, go_on).error().message(),
            path + ": quoted cell at byte " + std::to_string(text.size() + 1) + " never ends");
}

TEST(Csv, ALineBreakWithinACellEndsNoRowAcrossBlocks) {
  const testing::TestDirectory dir;
  const std::string path = dir.Path("x.csv");
  // 5 MiB, so that the cell of 3 MiB lies across the end of the first block.
  const std::string cell = std::string(size_t{3} << 20, 'x') + "\nend, \"quoted\"";
  const std::string first(size_t{2} << 20, 'y');
  std::string text = std::string(kByteOrderMark) + first + "\r\n";
  text += Written({cell, "b"}) + "c\r\n";
  ASSERT_TRUE(WriteFileAtomically(path, text, /*durable=*/false));
  std::vector<Row> rows;
  std::string places;
  const auto end = VisitWholeRows(path, [&](Row& row, const RowPlace& place) -> Status {
    rows.push_back(row);
    places += text.substr(place.begin, place.end - place.begin);
    return {};
  });
  EXPECT_EQ(rows, (std::vector<Row>{{first}, {cell, "b"}, {"c"}}));
  EXPECT_EQ(kByteOrderMark.size() + places.size(), text.size());
  EXPECT_EQ(end.value(), text.size());
}

TEST(Csv, ATornLastRowIsLeftOut) {
  const testing::TestDirectory dir;
  const std::string path = dir.Path("x.csv");
  const std::string whole = "a,b\r\n";
  for (const std::string torn : {"c", "c,\"d", "c,\"d\"\"", "c,\"d\"", "c,d\r", "\"c\r\nd\r\n"}) {
    ASSERT_TRUE(WriteFileAtomically(path, whole + torn, /*durable=*/false));
    std::vector<Row> rows;
    const auto end = VisitWholeRows(path, [&](Row& row, const RowPlace& /*place*/) -> Status {
      rows.push_back(row);
      return {};
    });
    EXPECT_EQ(end.value(), whole.size()) << torn;
    EXPECT_EQ(rows, (std::vector<Row>{{"a", "b"}})) << torn;
  }
  ASSERT_TRUE(WriteFileAtomically(path, "\"a\"b\n", /*durable=*/false));
  const auto none = [](Row& /*row*/, const RowPlace& /*place*/) { return Status(); };
  EXPECT_EQ(VisitWholeRows(path, none).error().code(), ErrorCode::kCorrupt);
}

TEST(Csv, RandomRowsComeBack) {
  std::mt19937 random(3);
  constexpr std::string_view kAlphabet = "ab,\"\n\r; ";
  for (int round = 0; round < 2000; ++round) {
    Row row(1 + random() % 4);
    for (std::string& cell : row) {
      for (size_t i = random() % 6; i > 0; --i) cell += kAlphabet[random() % kAlphabet.size()];
    }
    EXPECT_EQ(Parse(Written(row)).value(), std::vector<Row>{row});
  }
}

}  // namespace
}  // namespace plumbline::csv
