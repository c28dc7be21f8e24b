// Writing plain tables into a new SQLite database.

#ifndef PLUMBLINE_FORMATS_SQLITE_TABLE_H_
#define PLUMBLINE_FORMATS_SQLITE_TABLE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "formats/sqlite_record.h"
#include "plumbline/result.h"

namespace plumbline::sqlite_table {

using sqlite::Cell;
using sqlite::PackedRows;

// Packs the rows from `begin` to `end`. Called on several threads at once.
using PackRows = std::function<void(size_t begin, size_t end, PackedRows& rows)>;

// A database built beside its final name; without Finish() nothing is left. Small tables go through
// SQLite, long ones are written as pages. Errors are kIo and name the path. Single-threaded;
// move-only.
class Writer {
 public:
  // `schema`: the statements that create the tables.
  static Result<Writer> Create(const std::string& path, const std::string& schema);
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) = delete;
  ~Writer();

  // The table that Add() fills from now on; `columns` cells per row.
  Status Begin(std::string_view table, size_t columns);
  // Requires: as many cells as Begin() was told, and no AddLong() before.
  Status Add(std::span<const Cell> cells);
  // All rows of a table without indices whose first column is its INTEGER PRIMARY KEY and counts
  // from 0. Runs on the threads of the caller's arena; the bytes do not depend on their number.
  Status AddLong(const std::string& table, size_t rows, const PackRows& pack);
  // Gives the database its name, replacing what stands there.
  Status Finish();

 private:
  struct Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace plumbline::sqlite_table

#endif  // PLUMBLINE_FORMATS_SQLITE_TABLE_H_
