// A new SQLite database, built beside its final name; what its writers share.

#ifndef PLUMBLINE_FORMATS_SQLITE_FILE_H_
#define PLUMBLINE_FORMATS_SQLITE_FILE_H_

#include <sqlite3.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
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

// Written without journal: the file is new and thrown away on failure, so nothing needs to be
// undone. Without Close() nothing is left. Errors are kIo and name the path. Single-threaded.
class NewDatabase {
 public:
  static Result<NewDatabase> Create(const std::string& path);

  // For SQLITE_OK and SQLITE_DONE success.
  [[nodiscard]] Status Check(int code) const;
  // Runs statements that give no rows.
  Status Execute(const std::string& sql);
  Result<Statement> Prepare(const std::string& sql);
  // Closes the database and gives it its name, replacing what stands there. With `durable` it
  // survives a power loss from then on.
  Status Close(bool durable);
  // Closes the database and hands over its file, at which nothing was written through the handle.
  Result<AtomicFile> Detach();

  [[nodiscard]] sqlite3* handle() const { return database_.get(); }

 private:
  NewDatabase(AtomicFile file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  AtomicFile file_;
  std::string path_;
  std::unique_ptr<sqlite3, Closer> database_;
};

}  // namespace plumbline::sqlite

#endif  // PLUMBLINE_FORMATS_SQLITE_FILE_H_
