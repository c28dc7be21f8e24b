#include "formats/sqlite_file.h"

#include <fmt/format.h>

#include <utility>

#include "base/utf8.h"

namespace plumbline::sqlite {

int BindText(sqlite3_stmt* statement, int at, std::string_view text) {
  if (!IsUtf8(text)) {
    const std::string clean = ReplaceInvalidUtf8(text);
    return sqlite3_bind_text64(statement, at, clean.data(), clean.size(), SQLITE_TRANSIENT,
                               SQLITE_UTF8);
  }
  // A null pointer would be NULL instead of an empty text.
  const char* data = text.data() == nullptr ? "" : text.data();
  return sqlite3_bind_text64(statement, at, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

Result<NewDatabase> NewDatabase::Create(const std::string& path) {
  // Creates the temporary with the right mode; SQLite reopens it under its name.
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  NewDatabase result(std::move(file), path);
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(result.file_.temporary_path().c_str(), &opened,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  result.database_.reset(opened);
  PL_TRY(result.Check(code));
  PL_TRY(result.Execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"));
  return result;
}

Status NewDatabase::Check(int code) const {
  if (code == SQLITE_OK || code == SQLITE_DONE) return {};
  const char* reason = sqlite3_errstr(code);
  const std::string_view detail = database_ ? sqlite3_errmsg(database_.get()) : reason;
  const std::string more = detail == reason ? "" : fmt::format(" ({})", detail);
  return Error(ErrorCode::kIo,
               fmt::format("{}: cannot write the database: {}{}", path_, reason, more));
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
  PL_TRY_ASSIGN(AtomicFile file, Detach());
  return file.Commit(durable);
}

Result<AtomicFile> NewDatabase::Detach() {
  const int code = sqlite3_close(database_.get());
  PL_TRY(Check(code));  // a statement is open; the destructor tries again
  (void)database_.release();
  return std::move(file_);
}

}  // namespace plumbline::sqlite
