#include "formats/sqlite_file.h"

#include <fmt/format.h>

#include <utility>

namespace plumbline::sqlite {

Result<NewDatabase> NewDatabase::Create(const std::string& path) {
  // Creates the temporary with the right mode; SQLite reopens it under its name.
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  NewDatabase result(std::move(file), path);
  const std::string temporary = JoinPath(DirectoryOf(path), fmt::format(".{}.tmp", BaseName(path)));
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(temporary.c_str(), &opened,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  result.database_.reset(opened);
  PL_TRY(result.Check(code));
  PL_TRY(result.Execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"));
  return result;
}

Status NewDatabase::Check(int code) const {
  if (code == SQLITE_OK || code == SQLITE_DONE) return {};
  const char* reason = sqlite3_errstr(code);
  const char* detail = database_ ? sqlite3_errmsg(database_.get()) : reason;
  return Error(ErrorCode::kIo,
               fmt::format("{}: cannot write the database: {} ({})", path_, reason, detail));
}

Status NewDatabase::Execute(const std::string& sql) {
  return Check(sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr));
}

Result<Statement> NewDatabase::Prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &statement, nullptr);
  Statement result(statement);
  PL_TRY(Check(code));
  return result;
}

Status NewDatabase::Close(bool durable) {
  const int code = sqlite3_close(database_.get());
  if (code != SQLITE_OK) return Check(code);  // a statement is open; the destructor tries again
  (void)database_.release();
  return file_.Commit(durable);
}

}  // namespace plumbline::sqlite
