#include "load/name_mapping.h"

#include <gtest/gtest.h>

#include "base/file/file.h"
#include "base/file/test_directory.h"

namespace plumbline::load {
namespace {

using testing::TestDirectory;

NameMapping MappingOf(std::string_view text) {
  const TestDirectory directory;
  EXPECT_TRUE(WriteFileAtomically(directory.Path("mapping.csv"), text, false));
  return NameMapping::Read(directory.path()).value();
}

TEST(DumpNameMapping, WithoutATableNamesAreTheirOwn) {
  const TestDirectory directory;
  const auto mapping = NameMapping::Read(directory.path());
  ASSERT_TRUE(mapping);
  EXPECT_TRUE(mapping->rows().empty());
  const std::string file = "4711";
  EXPECT_EQ(mapping->NameOf(file), "4711");
}

TEST(DumpNameMapping, NamesMayHoldCommasAndQuotes) {
  const NameMapping mapping = MappingOf("1.npy,a,b.npy\r\n2.npy,\"x\".npy\n");
  const std::string one = "1.npy", two = "2.npy";
  EXPECT_EQ(mapping.NameOf(one), "a,b.npy");
  EXPECT_EQ(mapping.NameOf(two), "\"x\".npy");
  EXPECT_TRUE(mapping.notes().empty());
}

TEST(DumpNameMapping, QuotedCellsAreReadAsCsv) {
  const NameMapping mapping = MappingOf(
      "1,\"Add.a,b.1.2.3\"\r\n\"2\",\"Add.\"\"x\"\".1.2.3\"\n3,\"Add.a\r\nb.1.2.3\"\r\n\"4\",Add.d."
      "1.2.3\n"
      "no row\n5,\"\"\n6,\"x\" y\n7,\"never\n");
  const std::map<std::string, std::string> expected = {
      {"1", "Add.a,b.1.2.3"}, {"2", "Add.\"x\".1.2.3"}, {"3", "Add.a\r\nb.1.2.3"},
      {"4", "Add.d.1.2.3"},   {"6", "\"x\" y"},         {"7", "\"never"}};
  EXPECT_EQ(mapping.rows(), expected);
  ASSERT_EQ(mapping.notes().size(), 2U);
  EXPECT_NE(mapping.notes()[0].find("line 6 is no row"), std::string::npos) << mapping.notes()[0];
  EXPECT_NE(mapping.notes()[1].find("line 7 is no row"), std::string::npos);
}

TEST(DumpNameMapping, AByteOrderMarkIsNoPartOfAName) {
  const std::string file = "123";
  EXPECT_EQ(MappingOf("\xEF\xBB\xBF"
                      "123,Add.a.1.2.3\n")
                .NameOf(file),
            "Add.a.1.2.3");
}

TEST(DumpNameMapping, TheSuffixOfArraysMayBeMissing) {
  const NameMapping mapping = MappingOf("1,a\n2.npy,b\n3,c.npy\n");
  for (const auto& [file, name] : std::map<std::string, std::string>{{"1", "a"},
                                                                     {"1.npy", "a.npy"},
                                                                     {"2.npy", "b.npy"},
                                                                     {"3", "c.npy"},
                                                                     {"3.npy", "c.npy"}}) {
    EXPECT_EQ(mapping.NameOf(file), name) << file;
  }
  EXPECT_EQ(mapping.rows().size(), 3U);
}

// Rows lie apart in the text, in any order; what is quoted lies elsewhere.
TEST(DumpNameMapping, RowsOfALongTableAreFound) {
  std::string text;
  for (int i = 5000; i-- > 0;) {
    const std::string number = std::to_string(i);
    text +=
        i % 3 == 0 ? "\"" + number + "\",\"op\n" + number + "\"\n" : number + ",op" + number + "\n";
  }
  const NameMapping mapping = MappingOf(text);
  EXPECT_EQ(mapping.size(), 5000U);
  for (int i = 0; i < 5000; ++i) {
    const std::string number = std::to_string(i);
    ASSERT_EQ(mapping.NameOf(number), (i % 3 == 0 ? "op\n" : "op") + number);
    ASSERT_EQ(mapping.NameOf(number + ".npy"), (i % 3 == 0 ? "op\n" : "op") + number + ".npy");
  }
  EXPECT_EQ(mapping.Find("0.npy"), std::nullopt);
  EXPECT_EQ(mapping.NameOf("5000"), "5000");
}

// The file was written over: its later name is the name of what it holds.
TEST(DumpNameMapping, TheLaterRowOfAFileCounts) {
  const std::string file = "1";
  EXPECT_EQ(MappingOf("1,early\n1,late\n").NameOf(file), "late");
}

TEST(DumpNameMapping, OtherLinesAreNotes) {
  const NameMapping mapping = MappingOf("no comma\n1,a\n,name\n2,\n\n");
  EXPECT_EQ(mapping.rows().size(), 1U);
  ASSERT_EQ(mapping.notes().size(), 3U);
  EXPECT_NE(mapping.notes()[0].find("mapping.csv: line 1 is no row"), std::string::npos);
  EXPECT_NE(mapping.notes()[2].find("line 4"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::load
