// Writing plain tables into a new SQLite database.

#ifndef PLUMBLINE_FORMATS_SQLITE_TABLE_H_
#define PLUMBLINE_FORMATS_SQLITE_TABLE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "plumbline/result.h"

namespace plumbline::sqlite_table {

// Texts are borrowed until Add() returns. SQLite has no NaN: write a text or nothing.
using Cell = std::variant<std::monostate, int64_t, double, std::string_view>;

// A database built beside its final name in one transaction; without Finish() nothing is left.
// Errors are kIo and name the path. Single-threaded; move-only.
class Writer {
 public:
  // `schema`: the statements that create the tables.
  static Result<Writer> Create(const std::string& path, const std::string& schema);
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) = delete;
  ~Writer();

  // The table that Add() fills from now on; `columns` cells per row.
  Status Begin(std::string_view table, size_t columns);
  // Requires: as many cells as Begin() was told.
  Status Add(std::span<const Cell> cells);
  // Commits, and gives the database its name, replacing what stands there.
  Status Finish();

 private:
  struct Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace plumbline::sqlite_table

#endif  // PLUMBLINE_FORMATS_SQLITE_TABLE_H_
