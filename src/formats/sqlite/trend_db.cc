#include "formats/sqlite/trend_db.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

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
  Status Prepare(sqlite::NewDatabase& database, const char* sql) {
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

 private:
  void Note(int code) {
    if (code_ == SQLITE_OK) code_ = code;
  }

  sqlite::Statement statement_;
  int bound_ = 0;
  int code_ = SQLITE_OK;
};

int64_t NumberOf(size_t metric) { return static_cast<int64_t>(metric) + 1; }

struct Target {
  int64_t id = 0;
  uint16_t tagged_metrics = 0;  // a bit per metric
};

}  // namespace

struct Writer::Impl {
  sqlite::NewDatabase database;  // before the statements: they are finalised first
  Form form;
  TagsOf tags_of;
  Statement add_target, add_tag, add_mapping, add_row;
  std::unordered_map<std::string, Target> targets;
  std::unordered_map<std::string, int64_t> tags;

  Impl(sqlite::NewDatabase created, Form contents, TagsOf asked)
      : database(std::move(created)), form(std::move(contents)), tags_of(asked) {}

  Status Check(int code) const { return database.Check(code); }

  Status Open() {
    PL_TRY(database.Execute(kSchema));
    PL_TRY(database.Execute(SchemaOf(form).c_str()));
    PL_TRY(add_target.Prepare(
        database,
        "INSERT INTO monitoring_targets (target_name, vpp_stage, micro_step) VALUES (?,?,?)"));
    PL_TRY(add_tag.Prepare(
        database, "INSERT INTO monitoring_tags (tag_name, category, metric_id) VALUES (?,?,?)"));
    PL_TRY(add_mapping.Prepare(
        database, "INSERT OR IGNORE INTO tag_target_mapping (tag_id, target_id) VALUES (?,?)"));
    const std::string sql = fmt::format(
        "INSERT OR IGNORE INTO trend_data (rank, step, target_id, metric_id{}) VALUES (?,?,?,?{})",
        Listed(form.statistics, ""),
        Listed(std::vector<std::string>(form.statistics.size(), "?"), ""));
    return add_row.Prepare(database, sql.c_str());
  }

  Result<int64_t> TagId(const Tag& tag, size_t metric) {
    const auto [at, is_new] =
        tags.try_emplace(fmt::format("{}\n{}\n{}", tag.name, tag.category, NumberOf(metric)), 0);
    if (is_new) {
      PL_TRY(Check(add_tag.Bind(tag.name).Bind(tag.category).Bind(NumberOf(metric)).Run()));
      at->second = sqlite3_last_insert_rowid(database.handle());
    }
    return at->second;
  }

  Result<int64_t> TargetId(const Row& row) {
    const auto [at, is_new] =
        targets.try_emplace(fmt::format("{}\n{}\n{}", row.target, row.vpp_stage, row.micro_step));
    Target& target = at->second;
    if (is_new) {
      PL_TRY(Check(add_target.Bind(row.target).Bind(row.vpp_stage).Bind(row.micro_step).Run()));
      target.id = sqlite3_last_insert_rowid(database.handle());
    }
    const auto bit = static_cast<uint16_t>(1U << row.metric);
    if ((target.tagged_metrics & bit) != 0) return target.id;
    target.tagged_metrics = static_cast<uint16_t>(target.tagged_metrics | bit);
    for (const Tag& tag : tags_of(row)) {
      PL_TRY_ASSIGN(const int64_t tag_id, TagId(tag, row.metric));
      PL_TRY(Check(add_mapping.Bind(tag_id).Bind(target.id).Run()));
    }
    return target.id;
  }

  Status AddGlobalStats(const GlobalStats& stats) {
    Statement statement;
    const std::string sql = fmt::format(
        "INSERT INTO global_stats (max_rank, min_step, max_step{}) VALUES (?,?,?{})",
        Listed(form.metrics, ""), Listed(std::vector<std::string>(form.metrics.size(), "?"), ""));
    PL_TRY(statement.Prepare(database, sql.c_str()));
    statement.Bind(stats.max_rank).Bind(stats.min_step).Bind(stats.max_step);
    for (const std::string& text : form.statistics_of) statement.Bind(std::string_view(text));
    return Check(statement.Run());
  }
};

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer::~Writer() = default;

Result<Writer> Writer::Create(const std::string& path, Form form, TagsOf tags_of) {
  PL_TRY_ASSIGN(sqlite::NewDatabase database, sqlite::NewDatabase::Create(path));
  auto impl = std::make_unique<Impl>(std::move(database), std::move(form), tags_of);
  PL_TRY(impl->Open());
  return Writer(std::move(impl));
}

Status Writer::Begin() { return impl_->database.Execute("BEGIN"); }

Status Writer::Commit() { return impl_->database.Execute("COMMIT"); }

Result<bool> Writer::Add(const Row& row) {
  PL_TRY_ASSIGN(const int64_t target, impl_->TargetId(row));
  Statement& statement = impl_->add_row;
  statement.Bind(row.rank).Bind(row.step).Bind(target).Bind(NumberOf(row.metric));
  for (const std::optional<double>& value : row.values) statement.Bind(value);
  PL_TRY(impl_->Check(statement.Run()));
  return sqlite3_changes(impl_->database.handle()) == 1;
}

Status Writer::Finish(const GlobalStats& stats) {
  PL_TRY(impl_->AddGlobalStats(stats));
  for (Statement* statement :
       {&impl_->add_target, &impl_->add_tag, &impl_->add_mapping, &impl_->add_row}) {
    *statement = Statement();  // an open statement keeps the database open
  }
  return impl_->database.Close(/*durable=*/true);
}

size_t Writer::target_count() const { return impl_->targets.size(); }

}  // namespace plumbline::trend_db
