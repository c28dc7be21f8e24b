// What a database holds, for tests.

#ifndef PLUMBLINE_FORMATS_SQLITE_QUERY_FOR_TEST_H_
#define PLUMBLINE_FORMATS_SQLITE_QUERY_FOR_TEST_H_

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>
#include <vector>

namespace plumbline::sqlite {

// The rows of a query, their values joined by '|'.
inline std::vector<std::string> Query(const std::string& path, const char* sql) {
  std::vector<std::string> rows;
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  const auto add = [](void* out, int count, char** values, char**) {
    std::string row;
    for (int i = 0; i < count; ++i) {
      row += (i > 0 ? "|" : "") + std::string(values[i] != nullptr ? values[i] : "null");
    }
    static_cast<std::vector<std::string>*>(out)->push_back(row);
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(database, sql, add, &rows, nullptr), SQLITE_OK) << sql;
  sqlite3_close(database);
  return rows;
}

}  // namespace plumbline::sqlite

#endif  // PLUMBLINE_FORMATS_SQLITE_QUERY_FOR_TEST_H_
