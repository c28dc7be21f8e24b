#include "formats/sqlite_table.h"

#include <fmt/format.h>

#include <utility>

#include "formats/sqlite_file.h"

namespace plumbline::sqlite_table {

struct Writer::Impl {
  sqlite::NewDatabase database;  // before the statement, which is finalised first
  sqlite::Statement insert = nullptr;

  int Bind(int at, const Cell& cell) {
    if (const auto* text = std::get_if<std::string_view>(&cell)) {
      return sqlite::BindText(insert.get(), at, *text);
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
  PL_TRY_ASSIGN(sqlite::NewDatabase database, sqlite::NewDatabase::Create(path));
  // Large pages: the rows of a long step are half a gigabyte, written front to back.
  PL_TRY(database.Execute("PRAGMA page_size=16384; PRAGMA locking_mode=EXCLUSIVE; BEGIN;"));
  PL_TRY(database.Execute(schema));
  return Writer(std::make_unique<Impl>(Impl{std::move(database)}));
}

Status Writer::Begin(std::string_view table, size_t columns) {
  std::string sql = fmt::format("INSERT INTO {} VALUES (", table);
  for (size_t i = 0; i < columns; ++i) sql += i == 0 ? "?" : ",?";
  sql += ')';
  PL_TRY_ASSIGN(impl_->insert, impl_->database.Prepare(sql));
  return {};
}

Status Writer::Add(std::span<const Cell> cells) {
  int at = 0;
  for (const Cell& cell : cells) {
    const int code = impl_->Bind(++at, cell);
    if (code != SQLITE_OK) return impl_->database.Check(code);
  }
  const int stepped = sqlite3_step(impl_->insert.get());
  const int code = sqlite3_reset(impl_->insert.get());
  return impl_->database.Check(stepped == SQLITE_DONE ? code : stepped);
}

Status Writer::Finish() {
  impl_->insert.reset();  // an open statement keeps the database open
  PL_TRY(impl_->database.Execute("COMMIT"));
  return impl_->database.Close(/*durable=*/false);
}

}  // namespace plumbline::sqlite_table
