#include "formats/sqlite/sqlite_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/file/object_store.h"
#include "base/process/parallel.h"
#include "base/text/text_parts.h"
#include "formats/sqlite/sqlite_tree.h"

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

Status Database::Open(const std::string& file, int flags) {
  const object_store::LocalPath local(file);
  PL_TRY(object_store::Fetch(local));
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(local.c_str(), &opened, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(opened);
  return Check(code);
}

Result<Database> Database::OpenShared(const std::string& path) {
  Database result(path, "write");
  {
    PL_TRY_ASSIGN(File file, File::OpenAppend(path));  // with the right mode
    PL_TRY(file.Close());
  }
  PL_TRY(result.Open(path, SQLITE_OPEN_READWRITE));
  constexpr int kMostWait = 10'000;  // milliseconds
  PL_TRY(result.Check(sqlite3_busy_timeout(result.handle(), kMostWait)));
  PL_TRY(result.Execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"));
  return result;
}

Result<Database> Database::OpenToRead(const std::string& path) {
  Database result(path, "read");
  PL_TRY(result.Open(path, SQLITE_OPEN_READONLY));
  constexpr int kMostWait = 10'000;
  PL_TRY(result.Check(sqlite3_busy_timeout(result.handle(), kMostWait)));
  return result;
}

Result<Database> Database::OpenImmutable(const std::string& path) {
  Database result(path, "read");
  PL_TRY_ASSIGN(const std::string absolute, AbsolutePath(path));
  const object_store::LocalPath local(absolute);
  PL_TRY(object_store::Fetch(local));
  std::string address = "file://";
  for (const char letter : local.text()) {
    const bool has_meaning = letter == '%' || letter == '?' || letter == '#';
    address += has_meaning ? fmt::format("%{:02X}", letter) : std::string(1, letter);
  }
  address += "?immutable=1";
  PL_TRY(result.Open(address, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI));
  return result;
}

Status Database::Check(int code) const {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return {};
  const char* reason = sqlite3_errstr(code);
  const std::string_view detail = database_ ? sqlite3_errmsg(database_.get()) : reason;
  const std::string more = detail == reason ? "" : fmt::format(" ({})", detail);
  return Error(ErrorCode::kIo,
               fmt::format("{}: cannot {} the database: {}{}", path_, action_, reason, more));
}

Status Database::Execute(const std::string& sql) {
  return Check(sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr));
}

Result<Statement> Database::Prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &statement, nullptr);
  Statement result(statement);
  PL_TRY(Check(code));
  return result;
}

Result<NewDatabase> NewDatabase::Create(const std::string& path) {
  // Creates the temporary with the right mode; SQLite reopens it under its name.
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  NewDatabase result(std::move(file), path);
  PL_TRY(result.Open(result.file_.temporary_path(), SQLITE_OPEN_READWRITE));
  PL_TRY(result.Execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"));
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

namespace plumbline::sqlite_table {

namespace {

// Rows that one thread packs in one go, and how many such blocks are held at a time.
constexpr size_t kBlock = 512, kBlocksHeld = 16;

}  // namespace

struct Writer::Impl {
  std::optional<sqlite::NewDatabase> database;  // until the first long table
  sqlite::Statement insert = nullptr;
  std::map<std::string, uint32_t> roots;  // of the tables
  std::optional<AtomicFile> file;         // from then on
  std::optional<sqlite::PageFile> pages;

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

  Status FindRoots() {
    PL_TRY_ASSIGN(
        const sqlite::Statement select,
        database->Prepare("SELECT name, rootpage FROM sqlite_master WHERE type = 'table'"));
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(select.get())) == SQLITE_ROW) {
      const auto* name = reinterpret_cast<const char*>(sqlite3_column_text(select.get(), 0));
      roots[name] = static_cast<uint32_t>(sqlite3_column_int64(select.get(), 1));
    }
    return database->Check(code);
  }

  // Leaves the rest of the file to us.
  Status TakeOver() {
    insert.reset();  // an open statement keeps the database open
    PL_TRY(FindRoots());
    PL_TRY(database->Execute("COMMIT"));
    PL_TRY_ASSIGN(AtomicFile detached, database->Detach());
    database.reset();
    file.emplace(std::move(detached));
    PL_TRY_ASSIGN(const uint64_t bytes, FileSize(file->temporary_path()));
    const auto count = static_cast<uint32_t>(bytes / sqlite::kPageBytes);
    PL_TRY_ASSIGN(pages, sqlite::PageFile::Open(*file, count));
    return {};
  }
};

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer::~Writer() = default;

Result<Writer> Writer::Create(const std::string& path, const std::string& schema) {
  PL_TRY_ASSIGN(sqlite::NewDatabase database, sqlite::NewDatabase::Create(path));
  PL_TRY(database.Execute(fmt::format(
      "PRAGMA page_size={}; PRAGMA auto_vacuum=NONE; PRAGMA locking_mode=EXCLUSIVE; BEGIN;",
      sqlite::kPageBytes)));
  PL_TRY(database.Execute(schema));
  auto impl = std::make_unique<Impl>();
  impl->database.emplace(std::move(database));
  return Writer(std::move(impl));
}

Status Writer::Begin(std::string_view table, size_t columns) {
  std::string sql = fmt::format("INSERT INTO {} VALUES (", table);
  for (size_t i = 0; i < columns; ++i) sql += i == 0 ? "?" : ",?";
  sql += ')';
  PL_TRY_ASSIGN(impl_->insert, impl_->database->Prepare(sql));
  return {};
}

Status Writer::Add(std::span<const Cell> cells) {
  int at = 0;
  for (const Cell& cell : cells) {
    const int code = impl_->Bind(++at, cell);
    if (code != SQLITE_OK) return impl_->database->Check(code);
  }
  const int stepped = sqlite3_step(impl_->insert.get());
  const int code = sqlite3_reset(impl_->insert.get());
  return impl_->database->Check(stepped == SQLITE_DONE ? code : stepped);
}

Status Writer::AddLong(const std::string& table, size_t rows, const PackRows& pack) {
  if (impl_->database) PL_TRY(impl_->TakeOver());
  sqlite::TableTree tree(*impl_->pages, impl_->roots.at(table));
  std::array<PackedRows, kBlocksHeld> blocks;
  for (size_t begin = 0; begin < rows; begin += kBlock * kBlocksHeld) {
    const size_t count = std::min(rows - begin, kBlock * kBlocksHeld);
    ParallelBlocks(count, kBlock, [&](size_t from, size_t to) {
      PackedRows& block = blocks[from / kBlock];
      block.Clear();
      pack(begin + from, begin + to, block);
    });
    for (size_t i = 0; i < count; ++i) {
      PL_TRY(tree.Add(static_cast<int64_t>(begin + i), blocks[i / kBlock][i % kBlock]));
    }
  }
  return tree.Finish();
}

Status Writer::Finish() {
  if (impl_->database) PL_TRY(impl_->TakeOver());
  PL_TRY(impl_->pages->Finish());
  return impl_->file->Commit(/*durable=*/false);
}

}  // namespace plumbline::sqlite_table
