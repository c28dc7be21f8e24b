// SQLite databases: new ones, built beside their final names, with plain tables written into them,
// and such that readers may open while they are written.

#ifndef PLUMBLINE_FORMATS_SQLITE_SQLITE_TABLE_H_
#define PLUMBLINE_FORMATS_SQLITE_SQLITE_TABLE_H_

#include <sqlite3.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "formats/sqlite/sqlite_tree.h"
#include "plumbline/result.h"

namespace plumbline::sqlite {

struct Closer {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
// Belongs to the database it was prepared for, and must be gone before that is closed.
using Statement = std::unique_ptr<sqlite3_stmt, Closer>;

// Binds a text that stays until the statement is stepped. What is not UTF-8 would be stored as it
// is and refused by readers: U+FFFD stands for it.
int BindText(sqlite3_stmt* statement, int at, std::string_view text);

// An open database. Errors are kIo and name the path. Single-threaded; move-only.
class Database {
 public:
  // One that others may read and write meanwhile; `path` is made if it is missing. Transactions are
  // whole whenever the process ends; what is committed when the machine does, may be lost. Waits up
  // to ten seconds for a writer.
  static Result<Database> OpenShared(const std::string& path);
  // One that others may write meanwhile; nothing is written.
  static Result<Database> OpenToRead(const std::string& path);
  // One that nobody writes: no lock is taken and no file made beside it, so that it may lie where
  // nothing can be written. What another program changes meanwhile leads to wrong answers.
  static Result<Database> OpenImmutable(const std::string& path);

  // For SQLITE_OK, SQLITE_ROW and SQLITE_DONE success.
  [[nodiscard]] Status Check(int code) const;
  // Runs statements that give no rows.
  Status Execute(const std::string& sql);
  Result<Statement> Prepare(const std::string& sql);

  [[nodiscard]] sqlite3* handle() const { return database_.get(); }

 protected:
  Database(std::string path, std::string_view action) : path_(std::move(path)), action_(action) {}
  // See sqlite3_open_v2().
  Status Open(const std::string& file, int flags);

  std::string path_;
  std::string_view action_;  // for errors: what could not be done with it
  std::unique_ptr<sqlite3, Closer> database_;
};

// Written without journal: the file is new and thrown away on failure, so nothing needs to be
// undone. Without Close() nothing is left.
class NewDatabase : public Database {
 public:
  static Result<NewDatabase> Create(const std::string& path);

  // Closes the database and gives it its name, replacing what stands there. With `durable` it
  // survives a power loss from then on.
  Status Close(bool durable);
  // Closes the database and hands over its file, at which nothing was written through the handle.
  Result<AtomicFile> Detach();

 private:
  NewDatabase(AtomicFile file, std::string path)
      : Database(std::move(path), "write"), file_(std::move(file)) {}

  AtomicFile file_;
};

}  // namespace plumbline::sqlite

namespace plumbline::sqlite_table {

// Writing plain tables into a new SQLite database.

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

#endif  // PLUMBLINE_FORMATS_SQLITE_SQLITE_TABLE_H_
