#include "formats/sqlite/trend_db.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "base/text/text_parts.h"
#include "formats/sqlite/sqlite_table.h"

namespace plumbline::trend_db {
namespace {

constexpr const char* kSchema = R"(
CREATE TABLE monitoring_targets (target_id INTEGER PRIMARY KEY AUTOINCREMENT,
  target_name TEXT NOT NULL, vpp_stage INTEGER NOT NULL, micro_step INTEGER NOT NULL DEFAULT 0,
  UNIQUE(target_name, vpp_stage, micro_step));
CREATE TABLE monitoring_metrics (metric_id INTEGER PRIMARY KEY AUTOINCREMENT,
  metric_name TEXT UNIQUE NOT NULL);
CREATE TABLE monitoring_tags (tag_id INTEGER PRIMARY KEY AUTOINCREMENT, tag_name TEXT NOT NULL,
  category TEXT NOT NULL, metric_id INTEGER NOT NULL, UNIQUE(tag_name, category, metric_id),
  FOREIGN KEY (metric_id) REFERENCES monitoring_metrics(metric_id));
CREATE TABLE tag_target_mapping (tag_id INTEGER NOT NULL, target_id INTEGER NOT NULL,
  PRIMARY KEY (tag_id, target_id), FOREIGN KEY (tag_id) REFERENCES monitoring_tags(tag_id),
  FOREIGN KEY (target_id) REFERENCES monitoring_targets(target_id));
)";

std::string Listed(const std::vector<std::string>& words, std::string_view behind) {
  std::string text;
  for (const std::string& word : words) text += fmt::format(", {}{}", word, behind);
  return text;
}

// The tables whose columns depend on what the database holds.
std::string SchemaOf(const Form& form) {
  constexpr std::string_view kSteps = "min_step INTEGER DEFAULT 0, max_step INTEGER DEFAULT 0";
  constexpr std::string_view kRank = "max_rank INTEGER DEFAULT 0";
  std::string text = fmt::format(
      R"(
CREATE TABLE trend_data (rank INTEGER NOT NULL, step INTEGER NOT NULL, target_id INTEGER NOT NULL,
  metric_id INTEGER NOT NULL{}, PRIMARY KEY (rank, step, target_id, metric_id),
  FOREIGN KEY (target_id) REFERENCES monitoring_targets(target_id),
  FOREIGN KEY (metric_id) REFERENCES monitoring_metrics(metric_id)) WITHOUT ROWID;
CREATE TABLE global_stats ({}, {}{});
)",
      Listed(form.statistics, " REAL DEFAULT NULL"), form.has_rank_first ? kRank : kSteps,
      form.has_rank_first ? kSteps : kRank, Listed(form.metrics, " TEXT DEFAULT NULL"));
  for (const std::string& metric : form.metrics) {
    text += fmt::format("INSERT INTO monitoring_metrics (metric_name) VALUES ('{}');\n", metric);
  }
  return text;
}

// A prepared statement. Parameters are bound in order, then Run() executes it once.
class Statement {
 public:
  Status Prepare(sqlite::Database& database, const std::string& sql) {
    PL_TRY_ASSIGN(statement_, database.Prepare(sql));
    return {};
  }
  Statement& Bind(int64_t value) {
    Note(sqlite3_bind_int64(statement_.get(), ++bound_, value));
    return *this;
  }
  Statement& Bind(std::optional<double> value) {
    Note(value ? sqlite3_bind_double(statement_.get(), ++bound_, *value)
               : sqlite3_bind_null(statement_.get(), ++bound_));
    return *this;
  }
  // `text` must live until Run().
  Statement& Bind(std::string_view text) {
    Note(sqlite::BindText(statement_.get(), ++bound_, text));
    return *this;
  }
  // SQLITE_OK or an error code.
  int Run() {
    if (code_ == SQLITE_OK) sqlite3_step(statement_.get());
    Note(sqlite3_reset(statement_.get()));
    bound_ = 0;
    return std::exchange(code_, SQLITE_OK);
  }
  // The number that it selects; there must be one.
  Result<int64_t> Number(const sqlite::Database& database) {
    int64_t number = 0;
    const int stepped = code_ == SQLITE_OK ? sqlite3_step(statement_.get()) : code_;
    if (stepped == SQLITE_ROW) number = sqlite3_column_int64(statement_.get(), 0);
    const Status found = database.Check(stepped == SQLITE_DONE ? SQLITE_NOTFOUND : stepped);
    sqlite3_reset(statement_.get());
    bound_ = 0;
    code_ = SQLITE_OK;
    if (!found) return found.error();
    return number;
  }

 private:
  void Note(int code) {
    if (code_ == SQLITE_OK) code_ = code;
  }

  sqlite::Statement statement_;
  int bound_ = 0;
  int code_ = SQLITE_OK;
};

struct Target {
  int64_t id = 0;
  uint16_t tagged_metrics = 0;  // a bit per metric
};

constexpr double kLargest = 1e9, kInfinite = kLargest + 1;

// Adds rows, and what they refer to, through a database that outlives it.
class RowWriter {
 public:
  RowWriter(sqlite::Database& database, const Form& form, TagsOf tags_of)
      : database_(database), form_(form), tags_of_(tags_of) {}

  // `conflict`: what becomes of a row whose key is there, "IGNORE" or "REPLACE".
  Status Prepare(std::string_view conflict) {
    PL_TRY(add_target_.Prepare(database_,
                               "INSERT OR IGNORE INTO monitoring_targets (target_name, vpp_stage, "
                               "micro_step) VALUES (?,?,?)"));
    PL_TRY(find_target_.Prepare(database_,
                                "SELECT target_id FROM monitoring_targets WHERE target_name = ? "
                                "AND vpp_stage = ? AND micro_step = ?"));
    PL_TRY(add_tag_.Prepare(database_,
                            "INSERT OR IGNORE INTO monitoring_tags (tag_name, category, "
                            "metric_id) VALUES (?,?,?)"));
    PL_TRY(find_tag_.Prepare(database_,
                             "SELECT tag_id FROM monitoring_tags WHERE tag_name = ? AND category = "
                             "? AND metric_id = ?"));
    PL_TRY(add_mapping_.Prepare(
        database_, "INSERT OR IGNORE INTO tag_target_mapping (tag_id, target_id) VALUES (?,?)"));
    PL_TRY(FindMetrics());
    return add_row_.Prepare(
        database_,
        fmt::format("INSERT OR {} INTO trend_data (rank, step, target_id, metric_id{}) VALUES "
                    "(?,?,?,?{})",
                    conflict, Listed(form_.statistics, ""),
                    Listed(std::vector<std::string>(form_.statistics.size(), "?"), "")));
  }

  Result<bool> Add(const Row& row) {
    PL_TRY_ASSIGN(const int64_t target, TargetId(row));
    add_row_.Bind(row.rank).Bind(row.step).Bind(target).Bind(metric_ids_[row.metric]);
    for (const std::optional<double>& value : row.values) add_row_.Bind(value);
    PL_TRY(database_.Check(add_row_.Run()));
    return sqlite3_changes(database_.handle()) == 1;
  }

  [[nodiscard]] size_t target_count() const { return targets_.size(); }

  // What it knows of the database holds no longer.
  void Forget() {
    targets_.clear();
    tags_.clear();
  }

 private:
  Status FindMetrics() {
    Statement find;
    PL_TRY(
        find.Prepare(database_, "SELECT metric_id FROM monitoring_metrics WHERE metric_name = ?"));
    for (const std::string& metric : form_.metrics) {
      PL_TRY_ASSIGN(const int64_t id, find.Bind(std::string_view(metric)).Number(database_));
      metric_ids_.push_back(id);
    }
    return {};
  }

  // The number of a row that was added by `add`, or stood there already as `find` tells.
  template <class Bind>
  Result<int64_t> AddOrFind(Statement& add, Statement& find, const Bind& bind) {
    bind(add);
    PL_TRY(database_.Check(add.Run()));
    if (sqlite3_changes(database_.handle()) == 1) {
      return sqlite3_last_insert_rowid(database_.handle());
    }
    bind(find);
    return find.Number(database_);
  }

  Result<int64_t> TagId(const Tag& tag, size_t metric) {
    const auto [at, is_new] =
        tags_.try_emplace(fmt::format("{}\n{}\n{}", tag.name, tag.category, metric), 0);
    if (is_new) {
      PL_TRY_ASSIGN(
          at->second, AddOrFind(add_tag_, find_tag_, [&](Statement& statement) {
            statement.Bind(std::string_view(tag.name)).Bind(tag.category).Bind(metric_ids_[metric]);
          }));
    }
    return at->second;
  }

  Result<int64_t> TargetId(const Row& row) {
    const auto [at, is_new] =
        targets_.try_emplace(fmt::format("{}\n{}\n{}", row.target, row.vpp_stage, row.micro_step));
    Target& target = at->second;
    if (is_new) {
      PL_TRY_ASSIGN(
          target.id, AddOrFind(add_target_, find_target_, [&](Statement& statement) {
            statement.Bind(std::string_view(row.target)).Bind(row.vpp_stage).Bind(row.micro_step);
          }));
    }
    const auto bit = static_cast<uint16_t>(1U << row.metric);
    if ((target.tagged_metrics & bit) != 0) return target.id;
    target.tagged_metrics = static_cast<uint16_t>(target.tagged_metrics | bit);
    for (const Tag& tag : tags_of_(row)) {
      PL_TRY_ASSIGN(const int64_t tag_id, TagId(tag, row.metric));
      PL_TRY(database_.Check(add_mapping_.Bind(tag_id).Bind(target.id).Run()));
    }
    return target.id;
  }

  sqlite::Database& database_;
  const Form& form_;
  TagsOf tags_of_;
  Statement add_target_, find_target_, add_tag_, find_tag_, add_mapping_, add_row_;
  std::vector<int64_t> metric_ids_;  // of Form::metrics
  std::unordered_map<std::string, Target> targets_;
  std::unordered_map<std::string, int64_t> tags_;
};

}  // namespace

std::optional<double> ValueOf(double value) {
  if (std::isnan(value)) return std::nullopt;
  if (std::isinf(value)) return value > 0 ? kInfinite : -kInfinite;
  return std::clamp(value, -kLargest, kLargest);
}

double NumberOf(std::optional<double> value) {
  if (!value) return std::numeric_limits<double>::quiet_NaN();
  if (std::abs(*value) < kInfinite) return *value;
  return std::copysign(std::numeric_limits<double>::infinity(), *value);
}

struct Writer::Impl {
  sqlite::NewDatabase database;  // before the statements: they are finalised first
  Form form;
  std::optional<RowWriter> rows;
  size_t targets_at_end = 0;

  Impl(sqlite::NewDatabase created, Form contents)
      : database(std::move(created)), form(std::move(contents)) {}

  Status Open(TagsOf tags_of) {
    PL_TRY(database.Execute(kSchema));
    PL_TRY(database.Execute(SchemaOf(form)));
    return rows.emplace(database, form, tags_of).Prepare("IGNORE");
  }

  Status AddGlobalStats(const GlobalStats& stats) {
    Statement statement;
    PL_TRY(statement.Prepare(
        database,
        fmt::format("INSERT INTO global_stats (max_rank, min_step, max_step{}) VALUES (?,?,?{})",
                    Listed(form.metrics, ""),
                    Listed(std::vector<std::string>(form.metrics.size(), "?"), ""))));
    statement.Bind(stats.max_rank).Bind(stats.min_step).Bind(stats.max_step);
    for (const std::string& text : form.statistics_of) statement.Bind(std::string_view(text));
    return database.Check(statement.Run());
  }
};

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer::~Writer() = default;

Result<Writer> Writer::Create(const std::string& path, Form form, TagsOf tags_of) {
  PL_TRY_ASSIGN(sqlite::NewDatabase database, sqlite::NewDatabase::Create(path));
  auto impl = std::make_unique<Impl>(std::move(database), std::move(form));
  PL_TRY(impl->Open(tags_of));
  return Writer(std::move(impl));
}

Status Writer::Begin() { return impl_->database.Execute("BEGIN"); }

Status Writer::Commit() { return impl_->database.Execute("COMMIT"); }

Result<bool> Writer::Add(const Row& row) { return impl_->rows->Add(row); }

Status Writer::Finish(const GlobalStats& stats) {
  PL_TRY(impl_->AddGlobalStats(stats));
  impl_->targets_at_end = impl_->rows->target_count();
  impl_->rows.reset();  // an open statement keeps the database open
  return impl_->database.Close(/*durable=*/true);
}

size_t Writer::target_count() const {
  return impl_->rows ? impl_->rows->target_count() : impl_->targets_at_end;
}

struct LiveWriter::Impl {
  sqlite::Database database;  // before the statements: they are finalised first
  Form form;
  std::optional<RowWriter> rows;

  Impl(sqlite::Database opened, Form contents)
      : database(std::move(opened)), form(std::move(contents)) {}

  Status Open(TagsOf tags_of) {
    const Status made = Whole([this] { return MakeTables(); });
    if (!made) return made;
    return rows.emplace(database, form, tags_of).Prepare("REPLACE");
  }

  Status MakeTables() {
    PL_TRY_ASSIGN(const auto tables, Texts("SELECT name FROM sqlite_master"));
    if (std::ranges::find(tables, "global_stats") != tables.end()) return Extend();
    PL_TRY(database.Execute(kSchema));
    PL_TRY(database.Execute(SchemaOf(form)));
    PL_TRY(database.Execute("INSERT INTO global_stats DEFAULT VALUES"));
    return TellStatistics();
  }

  // Runs `action` in a transaction, of which nothing stays if it fails.
  template <class Action>
  Status Whole(const Action& action) {
    PL_TRY(database.Execute("BEGIN IMMEDIATE"));
    Status done = action();
    if (done) done = database.Execute("COMMIT");
    if (!done) {
      (void)database.Execute("ROLLBACK");
      if (rows) rows->Forget();
    }
    return done;
  }

  Result<std::vector<std::string>> Texts(const std::string& sql) {
    PL_TRY_ASSIGN(const sqlite::Statement statement, database.Prepare(sql));
    std::vector<std::string> texts;
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(statement.get())) == SQLITE_ROW) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), 0));
      texts.emplace_back(text == nullptr ? "" : text);
    }
    PL_TRY(database.Check(code));
    return texts;
  }

  Status AddColumns(std::string_view table, const std::vector<std::string>& names,
                    std::string_view type) {
    PL_TRY_ASSIGN(const auto known,
                  Texts(fmt::format("SELECT name FROM pragma_table_info('{}')", table)));
    for (const std::string& name : names) {
      if (std::ranges::find(known, name) != known.end()) continue;
      PL_TRY(database.Execute(
          fmt::format("ALTER TABLE {} ADD COLUMN {} {} DEFAULT NULL", table, name, type)));
    }
    return {};
  }

  // Gives a database that is there what this one's form has besides.
  Status Extend() {
    PL_TRY(AddColumns("trend_data", form.statistics, "REAL"));
    PL_TRY(AddColumns("global_stats", form.metrics, "TEXT"));
    for (const std::string& metric : form.metrics) {
      PL_TRY(database.Execute(fmt::format(
          "INSERT OR IGNORE INTO monitoring_metrics (metric_name) VALUES ('{}')", metric)));
    }
    return TellStatistics();
  }

  // Of each metric: what the database says already, and what this form has besides.
  Status TellStatistics() {
    for (size_t i = 0; i < form.metrics.size(); ++i) {
      const std::string& metric = form.metrics[i];
      PL_TRY_ASSIGN(const auto known, Texts(fmt::format("SELECT {} FROM global_stats", metric)));
      std::string all = known.empty() ? "" : known.front();
      const std::string before = all;
      const std::vector<std::string_view> names = SplitAt(before, ',');
      for (const std::string_view name : SplitAt(form.statistics_of[i], ',')) {
        if (std::ranges::find(names, name) != names.end()) continue;
        all += fmt::format("{}{}", all.empty() ? "" : ",", name);
      }
      PL_TRY(database.Execute(fmt::format("UPDATE global_stats SET {} = '{}'", metric, all)));
    }
    return {};
  }

  Status TellSteps(int64_t rank) {
    return database.Execute(
        fmt::format("UPDATE global_stats SET max_rank = MAX(max_rank, {0}), "
                    "min_step = (SELECT COALESCE(MIN(step), 0) FROM trend_data WHERE rank = {0}), "
                    "max_step = (SELECT COALESCE(MAX(step), 0) FROM trend_data WHERE rank = {0})",
                    rank));
  }
};

LiveWriter::LiveWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LiveWriter::LiveWriter(LiveWriter&&) noexcept = default;
LiveWriter::~LiveWriter() = default;

Result<LiveWriter> LiveWriter::Open(const std::string& path, Form form, TagsOf tags_of) {
  PL_TRY_ASSIGN(sqlite::Database database, sqlite::Database::OpenShared(path));
  auto impl = std::make_unique<Impl>(std::move(database), std::move(form));
  PL_TRY(impl->Open(tags_of));
  return LiveWriter(std::move(impl));
}

Status LiveWriter::Write(int64_t rank, const std::vector<Row>& rows) {
  return impl_->Whole([&]() -> Status {
    for (const Row& row : rows) {
      PL_TRY_ASSIGN(const bool is_new, impl_->rows->Add(row));
      (void)is_new;
    }
    return impl_->TellSteps(rank);
  });
}

Status LiveWriter::Trim(int64_t rank, int64_t step) {
  return impl_->Whole([&]() -> Status {
    PL_TRY(impl_->database.Execute(
        fmt::format("DELETE FROM trend_data WHERE rank = {} AND step >= {}", rank, step)));
    return impl_->TellSteps(rank);
  });
}

Status LiveWriter::Close() {
  impl_->rows.reset();
  // While another has it open it stays as it is.
  (void)impl_->database.Execute("PRAGMA busy_timeout=0; PRAGMA journal_mode=DELETE;");
  return {};
}

}  // namespace plumbline::trend_db
