#include "ranks/ranks_database.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/file/object_store.h"
#include "formats/sqlite/sqlite_table.h"

namespace plumbline::ranks {

namespace {

// Rows of a rank stand together, and are found by it without an index.
constexpr const char* kSchema =
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE ranks (rank_id INTEGER PRIMARY KEY, step INTEGER, rank INTEGER, "
    "state TEXT NOT NULL, target TEXT NOT NULL, golden TEXT NOT NULL, error TEXT, mode TEXT, "
    "answer TEXT, complete INTEGER, wrong_calls INTEGER, same INTEGER, within_noise INTEGER, "
    "suspicious INTEGER, broken INTEGER, not_comparable INTEGER);"
    "CREATE TABLE origins (origin INTEGER PRIMARY KEY, rank_id INTEGER NOT NULL REFERENCES "
    "ranks(rank_id), name TEXT NOT NULL, item TEXT NOT NULL, reason TEXT NOT NULL, error REAL, "
    "explained_error REAL, layer INTEGER NOT NULL);"
    "CREATE TABLE calls (rank_id INTEGER NOT NULL REFERENCES ranks(rank_id), call INTEGER NOT "
    "NULL, PRIMARY KEY (rank_id, call)) WITHOUT ROWID;"
    "CREATE TABLE rows (rank_id INTEGER NOT NULL REFERENCES ranks(rank_id), row INTEGER NOT NULL, "
    "PRIMARY KEY (rank_id, row)) WITHOUT ROWID;";
constexpr const char* kView =
    "CREATE VIEW wrong AS SELECT ranks.step, ranks.rank, rows.* FROM rows JOIN ranks USING "
    "(rank_id) WHERE verdict IN ('suspicious', 'broken');";

// From the summary, which is the parameter.
constexpr std::array<const char*, 3> kOfSummary = {
    "INSERT INTO facts SELECT key, value FROM json_each(?1) WHERE key IN "
    "('format', 'version', 'target', 'golden', 'unit', 'answer') "
    "UNION ALL SELECT 'summary', rtrim(?1, char(10))",
    "INSERT INTO ranks SELECT key, json_extract(value, '$.step'), json_extract(value, '$.rank'), "
    "json_extract(value, '$.state'), json_extract(value, '$.target'), "
    "json_extract(value, '$.golden'), json_extract(value, '$.error'), "
    "json_extract(value, '$.mode'), json_extract(value, '$.answer'), "
    "json_extract(value, '$.complete'), json_extract(value, '$.wrong_calls'), "
    "json_extract(value, '$.counts.same'), json_extract(value, '$.counts.\"within noise\"'), "
    "json_extract(value, '$.counts.suspicious'), json_extract(value, '$.counts.broken'), "
    "json_extract(value, '$.counts.\"not comparable\"') FROM json_each(?1, '$.ranks')",
    "INSERT INTO origins SELECT key, (SELECT rank_id FROM ranks WHERE target = "
    "json_extract(value, '$.directory')), json_extract(value, '$.name'), "
    "json_extract(value, '$.item'), json_extract(value, '$.reason'), "
    "json_extract(value, '$.error'), json_extract(value, '$.explained_error'), "
    "json_extract(value, '$.layer') FROM json_each(?1, '$.origins')"};

// Copies the tables of other databases into one.
class RankTablesCopy {
 public:
  explicit RankTablesCopy(sqlite::NewDatabase& database) : database_(database) {}

  // Errors about what is copied name its path.
  Status Add(size_t rank_id, const ComparedRank& rank, const std::string& path) {
    const object_store::LocalPath local(path);
    PL_TRY(object_store::Fetch(local));
    if (KindOf(path) != PathKind::kFile) return Unusable(rank, path, ErrorCode::kIo, "is gone");
    if (!RunWith("ATTACH ?1 AS part", local.text())) return Unreadable(rank, path);
    const Result<VerdictCounts> counts = CountsOfPart();
    if (!counts) return Unreadable(rank, path);
    if (*counts != rank.outcome->counts.rows) {
      return Unusable(rank, path, ErrorCode::kCorrupt,
                      fmt::format("has changed since it was written (expected {}, got {})",
                                  TextOf(rank.outcome->counts.rows), TextOf(*counts)));
    }
    for (const char* const table : {"calls", "rows"}) {
      const Status added = AddTable(rank_id, table);
      if (added) continue;
      const bool is_damaged = sqlite3_errcode(database_.handle()) == SQLITE_CORRUPT;
      return is_damaged ? Unreadable(rank, path) : added;
    }
    return database_.Execute("DETACH part");
  }

  // Runs a statement with one parameter that gives no rows.
  Status RunWith(const char* sql, std::string_view parameter) {
    PL_TRY_ASSIGN(const sqlite::Statement statement, database_.Prepare(sql));
    PL_TRY(database_.Check(sqlite::BindText(statement.get(), 1, parameter)));
    return database_.Check(sqlite3_step(statement.get()));
  }

 private:
  using VerdictCounts = decltype(CompareCounts::rows);
  struct PartColumn {
    std::string name, type;
  };

  static Error Unusable(const ComparedRank& rank, const std::string& path, ErrorCode code,
                        std::string_view what) {
    return {code, fmt::format("{}: {}. {}", path, what, HowToCompareAgain(rank))};
  }
  // After a statement that failed.
  Error Unreadable(const ComparedRank& rank, const std::string& path) {
    return Unusable(rank, path, ErrorCode::kCorrupt,
                    fmt::format("cannot be read as the database of {}: {}", rank.pair.label(),
                                sqlite3_errmsg(database_.handle())));
  }

  static std::string TextOf(const VerdictCounts& counts) {
    std::string text;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) continue;
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[i],
                          VerdictName(static_cast<Verdict>(i)));
    }
    return text.empty() ? "no rows" : text;
  }

  // Rows with what is no verdict are not counted.
  Result<VerdictCounts> CountsOfPart() {
    PL_TRY_ASSIGN(const sqlite::Statement select,
                  database_.Prepare("SELECT verdict, count(*) FROM part.rows GROUP BY verdict"));
    VerdictCounts counts{};
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(select.get())) == SQLITE_ROW) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(select.get(), 0));
      const auto verdict = VerdictNamed(text == nullptr ? "" : text);
      if (!verdict) continue;
      counts[static_cast<size_t>(*verdict)] =
          static_cast<uint64_t>(sqlite3_column_int64(select.get(), 1));
    }
    PL_TRY(database_.Check(code));
    return counts;
  }

  Result<std::vector<PartColumn>> ColumnsOfPart(const std::string& table) {
    PL_TRY_ASSIGN(const sqlite::Statement select,
                  database_.Prepare(fmt::format("PRAGMA part.table_info({})", table)));
    std::vector<PartColumn> columns;
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(select.get())) == SQLITE_ROW) {
      const auto text = [&](int column) {
        return std::string(
            reinterpret_cast<const char*>(sqlite3_column_text(select.get(), column)));
      };
      columns.push_back({text(1), text(2)});
    }
    PL_TRY(database_.Check(code));
    return columns;
  }

  // Ranks of another mode have other columns: the table gets those of all.
  Status AddTable(size_t rank_id, const std::string& table) {
    PL_TRY_ASSIGN(const std::vector<PartColumn> columns, ColumnsOfPart(table));
    std::set<std::string>& known = known_[table];
    std::vector<std::string> names;
    for (const PartColumn& column : columns) {
      names.push_back(column.name);
      if (!known.insert(column.name).second || &column == &columns.front()) continue;
      PL_TRY(database_.Execute(
          fmt::format("ALTER TABLE main.{} ADD COLUMN {} {}", table, column.name, column.type)));
    }
    return database_.Execute(
        fmt::format("INSERT INTO main.{0} (rank_id, {1}) SELECT {2}, {1} FROM "
                    "part.{0}",
                    table, fmt::join(names, ", "), rank_id));
  }

  sqlite::NewDatabase& database_;
  std::map<std::string, std::set<std::string>> known_;  // columns by table
};

}  // namespace

Status WriteRanksDatabase(const RanksReport& report, const std::string& summary,
                          const std::string& path) {
  PL_TRY_ASSIGN(sqlite::NewDatabase database, sqlite::NewDatabase::Create(path));
  PL_TRY(database.Execute(kSchema));
  RankTablesCopy copy(database);
  for (const char* const sql : kOfSummary) PL_TRY(copy.RunWith(sql, summary));
  const std::string extension = ".db";
  for (size_t i = 0; i < report.ranks.size(); ++i) {
    if (!report.ranks[i].outcome) continue;
    for (const std::string& file : report.ranks[i].outcome->files) {
      if (file.ends_with(extension)) PL_TRY(copy.Add(i, report.ranks[i], file));
    }
  }
  PL_TRY(database.Execute(kView));
  return database.Close(/*durable=*/false);
}

}  // namespace plumbline::ranks
