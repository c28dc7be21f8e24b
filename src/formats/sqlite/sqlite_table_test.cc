#include "formats/sqlite/sqlite_table.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/process/parallel.h"
#include "formats/sqlite/sqlite_tree.h"

namespace plumbline::sqlite_table {
namespace {

using testing::TestDirectory;

constexpr char kSchema[] =
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE long (row INTEGER PRIMARY KEY, word TEXT, real REAL, any);";

// What SQLite answers to a statement, "|" between columns and ";" behind rows.
std::string Answer(const std::string& path, const std::string& sql) {
  sqlite3* opened = nullptr;
  EXPECT_EQ(sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  const std::unique_ptr<sqlite3, sqlite::Closer> database(opened);
  std::string out;
  char* problem = nullptr;
  const auto add = [](void* text, int columns, char** values, char**) {
    for (int i = 0; i < columns; ++i) {
      *static_cast<std::string*>(text) +=
          (i > 0 ? "|" : "") + std::string(values[i] ? values[i] : "-");
    }
    *static_cast<std::string*>(text) += ';';
    return 0;
  };
  sqlite3_exec(opened, sql.c_str(), add, &out, &problem);
  if (problem != nullptr) out += problem;
  sqlite3_free(problem);
  return out;
}

// The row's letter, `length` times.
std::string TextOf(size_t row, size_t length) {
  return std::string(length, static_cast<char>('a' + row % 26));
}

void WriteTexts(const std::string& path, const std::vector<size_t>& lengths) {
  auto writer = Writer::Create(path, kSchema);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->Begin("facts", 2));
  ASSERT_TRUE(writer->Add(std::vector<Cell>{"rows", "many"}));
  const auto pack = [&](size_t begin, size_t end, PackedRows& packed) {
    for (size_t i = begin; i < end; ++i) {
      const auto key = static_cast<int64_t>(i);
      const std::string text = TextOf(i, lengths[i]);
      packed.Add(std::vector<Cell>{key, text, 0.5 * static_cast<double>(i),
                                   static_cast<int64_t>(lengths[i])});
    }
  };
  ASSERT_TRUE(writer->AddLong("long", lengths.size(), pack));
  ASSERT_TRUE(writer->Finish());
}

// Writes rows with texts of these lengths and has SQLite look at every value.
void ExpectKept(const std::vector<size_t>& lengths) {
  const TestDirectory directory;
  const std::string path = directory.Path("x.db");
  WriteTexts(path, lengths);
  EXPECT_EQ(Answer(path, "PRAGMA integrity_check"), "ok;") << lengths.size();
  EXPECT_EQ(Answer(path, "SELECT value FROM facts WHERE name = 'rows'"), "many;");
  const std::string count = std::to_string(lengths.size());
  EXPECT_EQ(Answer(path,
                   "SELECT count(*), count(CASE WHEN length(word) = any AND real = 0.5 * row AND "
                   "trim(word, char(97 + row % 26)) = '' THEN 1 END) FROM long"),
            count + "|" + count + ";");
  if (lengths.empty()) return;
  const size_t last = lengths.size() - 1;
  EXPECT_EQ(Answer(path, "SELECT word FROM long WHERE row = " + std::to_string(last)),
            TextOf(last, lengths[last]) + ";");
}

TEST(SqliteTable, TreesOfEveryDepthHoldTheirRows) {
  // No leaf, one, a few; a level between leaves and root (more than 1093 leaves).
  for (const size_t rows : {size_t{0}, size_t{1}, size_t{2}, size_t{900}, size_t{40'000}}) {
    std::vector<size_t> lengths(rows);
    for (size_t i = 0; i < rows; ++i) lengths[i] = i * 7 % 1501;
    ExpectKept(lengths);
  }
}

TEST(SqliteTable, LongTextsGoOnOverflowPages) {
  std::vector<size_t> lengths;
  for (size_t pages = 1; pages < 4; ++pages) {
    // Around what a leaf holds, whole overflow pages, and those with the least beside them.
    for (const size_t here : {size_t{0}, size_t{2031}}) {
      for (size_t i = 0; i < 90; ++i) lengths.push_back(pages * 16'384 + here - 80 + i);
    }
  }
  lengths.push_back(1'000'000);
  ExpectKept(lengths);
}

TEST(SqliteTable, ValuesKeepTheirTypeAndSize) {
  const TestDirectory directory;
  const std::string path = directory.Path("x.db");
  std::vector<Cell> values = {{},
                              std::string_view(),
                              std::string_view("t\0x", 3),
                              "\xff!",
                              -0.0,
                              1e300,
                              std::nan(""),
                              std::numeric_limits<double>::infinity()};
  for (int bits = 0; bits < 64; ++bits) {
    const uint64_t power = uint64_t{1} << bits;  // unsigned: the last ones wrap around
    for (const uint64_t number : {power, -power, power - 1, -power - 1}) {
      values.emplace_back(static_cast<int64_t>(number));
    }
  }
  auto writer = Writer::Create(path, kSchema);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(
      writer->AddLong("long", values.size(), [&](size_t begin, size_t end, PackedRows& out) {
        for (size_t i = begin; i < end; ++i) {
          out.Add(std::vector<Cell>{static_cast<int64_t>(i), {}, 2.0, values[i]});
        }
      }));
  ASSERT_TRUE(writer->Finish());
  EXPECT_EQ(Answer(path, "PRAGMA integrity_check"), "ok;");
  EXPECT_EQ(Answer(path, "SELECT quote(any), hex(any) FROM long WHERE row < 8"),
            "NULL|;''|;'t'|740078;'\xEF\xBF\xBD!'|EFBFBD21;0.0|302E30;1.0e+300|312E30652B333030;"
            "NULL|;Inf|496E66;");
  for (size_t i = 8; i < values.size(); ++i) {
    EXPECT_EQ(Answer(path, "SELECT any FROM long WHERE row = " + std::to_string(i)),
              std::to_string(std::get<int64_t>(values[i])) + ";");
  }
  EXPECT_EQ(Answer(path, "SELECT DISTINCT word, typeof(real), real FROM long"), "-|real|2.0;");
}

TEST(SqliteTable, PageThatSqliteLocksIsLeftOut) {
  constexpr uint32_t kBefore = (1U << 30) / sqlite::kPageBytes - 1;
  const TestDirectory directory;
  auto file = AtomicFile::Create(directory.Path("x.db"));
  ASSERT_TRUE(file);
  auto pages = sqlite::PageFile::Open(*file, kBefore);
  ASSERT_TRUE(pages);
  EXPECT_EQ(pages->next(), kBefore + 1);
  EXPECT_EQ(pages->after_next(), kBefore + 3);
  ASSERT_TRUE(pages->Append(std::string(sqlite::kPageBytes, 'a')));
  EXPECT_EQ(pages->next(), kBefore + 3);
  ASSERT_TRUE(pages->Append(std::string(sqlite::kPageBytes, 'b')));
  ASSERT_TRUE(pages->Finish());
  EXPECT_EQ(FileSize(file->temporary_path()).value(), (kBefore + 3) * sqlite::kPageBytes);
}

TEST(SqliteTable, BytesDoNotDependOnThreads) {
  const TestDirectory directory;
  std::string one;
  for (const int threads : {1, 2, 8}) {
    const std::string path = directory.Path(std::to_string(threads));
    RunWithThreads(threads, [&] { WriteTexts(path, std::vector<size_t>(20'000, 13)); });
    const std::string bytes = ReadFile(path).value();
    if (threads == 1) one = bytes;
    EXPECT_TRUE(bytes == one) << threads;
  }
}

}  // namespace
}  // namespace plumbline::sqlite_table
