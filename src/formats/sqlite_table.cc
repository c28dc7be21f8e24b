#include "formats/sqlite_table.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <utility>

#include "base/file.h"

namespace plumbline::sqlite_table {
namespace {

// The file is new and thrown away on failure, so nothing needs to be undone or safe before the end.
constexpr const char* kFast = "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;";

struct Closer {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

}  // namespace

struct Writer::Impl {
  AtomicFile file;
  std::string path;
  std::unique_ptr<sqlite3, Closer> database;  // before the statement, which is finalised first
  std::unique_ptr<sqlite3_stmt, Closer> insert;

  explicit Impl(AtomicFile temporary) : file(std::move(temporary)) {}

  Status Check(int code) const {
    if (code == SQLITE_OK || code == SQLITE_DONE) return {};
    const char* reason = sqlite3_errstr(code);
    const char* detail = database ? sqlite3_errmsg(database.get()) : reason;
    return Error(ErrorCode::kIo,
                 fmt::format("{}: cannot write the database: {} ({})", path, reason, detail));
  }

  Status Execute(const std::string& sql) {
    return Check(sqlite3_exec(database.get(), sql.c_str(), nullptr, nullptr, nullptr));
  }

  int Bind(int at, const Cell& cell) {
    if (const auto* text = std::get_if<std::string_view>(&cell)) {
      // A null pointer would be NULL instead of an empty text.
      const char* data = text->data() == nullptr ? "" : text->data();
      return sqlite3_bind_text64(insert.get(), at, data, text->size(), SQLITE_STATIC, SQLITE_UTF8);
    }
    if (const auto* real = std::get_if<double>(&cell)) {
      return sqlite3_bind_double(insert.get(), at, *real);
    }
    if (const auto* integer = std::get_if<int64_t>(&cell)) {
      return sqlite3_bind_int64(insert.get(), at, *integer);
    }
    return sqlite3_bind_null(insert.get(), at);
  }
};

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer::~Writer() = default;

Result<Writer> Writer::Create(const std::string& path, const std::string& schema) {
  // Creates the temporary with the right mode; SQLite reopens it under its name.
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  auto impl = std::make_unique<Impl>(std::move(file));
  impl->path = path;
  const std::string temporary = JoinPath(DirectoryOf(path), fmt::format(".{}.tmp", BaseName(path)));
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(temporary.c_str(), &opened,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  impl->database.reset(opened);
  PL_TRY(impl->Check(code));
  PL_TRY(impl->Execute(kFast));
  PL_TRY(impl->Execute(schema));
  return Writer(std::move(impl));
}

Status Writer::Begin(std::string_view table, size_t columns) {
  std::string sql = fmt::format("INSERT INTO {} VALUES (", table);
  for (size_t i = 0; i < columns; ++i) sql += i == 0 ? "?" : ",?";
  sql += ')';
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(impl_->database.get(), sql.c_str(), -1, &statement, nullptr);
  impl_->insert.reset(statement);
  return impl_->Check(code);
}

Status Writer::Add(std::span<const Cell> cells) {
  int at = 0;
  for (const Cell& cell : cells) {
    const int code = impl_->Bind(++at, cell);
    if (code != SQLITE_OK) return impl_->Check(code);
  }
  const int stepped = sqlite3_step(impl_->insert.get());
  const int code = sqlite3_reset(impl_->insert.get());
  return impl_->Check(stepped == SQLITE_DONE ? code : stepped);
}

Status Writer::Finish() {
  impl_->insert.reset();  // an open statement keeps the database open
  PL_TRY(impl_->Execute("COMMIT"));
  const int code = sqlite3_close(impl_->database.release());
  PL_TRY(impl_->Check(code));
  return impl_->file.Commit(/*durable=*/false);
}

}  // namespace plumbline::sqlite_table
