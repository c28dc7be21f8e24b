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
CREATE TABLE trend_data (rank INTEGER NOT NULL, step INTEGER NOT NULL, target_id INTEGER NOT NULL,
  metric_id INTEGER NOT NULL, norm REAL DEFAULT NULL, max REAL DEFAULT NULL, min REAL DEFAULT NULL,
  mean REAL DEFAULT NULL, PRIMARY KEY (rank, step, target_id, metric_id),
  FOREIGN KEY (target_id) REFERENCES monitoring_targets(target_id),
  FOREIGN KEY (metric_id) REFERENCES monitoring_metrics(metric_id)) WITHOUT ROWID;
CREATE TABLE global_stats (max_rank INTEGER DEFAULT 0, min_step INTEGER DEFAULT 0,
  max_step INTEGER DEFAULT 0, forward TEXT DEFAULT NULL, backward TEXT DEFAULT NULL,
  recompute TEXT DEFAULT NULL, parameters_grad TEXT DEFAULT NULL);
INSERT INTO monitoring_metrics (metric_name) VALUES ('forward'), ('backward'), ('recompute'),
  ('parameters_grad');
)";

constexpr std::string_view kStatsText = "norm,max,min,mean";

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

int64_t NumberOf(Metric metric) { return static_cast<int64_t>(metric) + 1; }

struct Target {
  int64_t id = 0;
  uint8_t tagged_metrics = 0;  // a bit per metric
};

}  // namespace

struct Writer::Impl {
  sqlite::NewDatabase database;  // before the statements: they are finalised first
  TagsOf tags_of;
  Statement add_target, add_tag, add_mapping, add_row;
  std::unordered_map<std::string, Target> targets;
  std::unordered_map<std::string, int64_t> tags;

  Impl(sqlite::NewDatabase created, TagsOf asked) : database(std::move(created)), tags_of(asked) {}

  Status Check(int code) const { return database.Check(code); }

  Status Open() {
    PL_TRY(database.Execute(kSchema));
    PL_TRY(add_target.Prepare(
        database,
        "INSERT INTO monitoring_targets (target_name, vpp_stage, micro_step) VALUES (?,0,?)"));
    PL_TRY(add_tag.Prepare(
        database, "INSERT INTO monitoring_tags (tag_name, category, metric_id) VALUES (?,?,?)"));
    PL_TRY(add_mapping.Prepare(
        database, "INSERT OR IGNORE INTO tag_target_mapping (tag_id, target_id) VALUES (?,?)"));
    return add_row.Prepare(
        database,
        "INSERT OR IGNORE INTO trend_data (rank, step, target_id, metric_id, norm, max, min, "
        "mean) VALUES (?,?,?,?,?,?,?,?)");
  }

  Result<int64_t> TagId(const Tag& tag, Metric metric) {
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
        targets.try_emplace(fmt::format("{}\n{}", row.target, row.micro_step));
    Target& target = at->second;
    if (is_new) {
      PL_TRY(Check(add_target.Bind(row.target).Bind(row.micro_step).Run()));
      target.id = sqlite3_last_insert_rowid(database.handle());
    }
    const auto bit = static_cast<uint8_t>(1U << static_cast<unsigned>(row.metric));
    if ((target.tagged_metrics & bit) != 0) return target.id;
    target.tagged_metrics = static_cast<uint8_t>(target.tagged_metrics | bit);
    for (const Tag& tag : tags_of(row)) {
      PL_TRY_ASSIGN(const int64_t tag_id, TagId(tag, row.metric));
      PL_TRY(Check(add_mapping.Bind(tag_id).Bind(target.id).Run()));
    }
    return target.id;
  }

  Status AddGlobalStats(const GlobalStats& stats) {
    Statement statement;
    PL_TRY(statement.Prepare(database, "INSERT INTO global_stats VALUES (?1,?2,?3,?4,?4,?4,?4)"));
    statement.Bind(stats.max_rank).Bind(stats.min_step).Bind(stats.max_step).Bind(kStatsText);
    return Check(statement.Run());
  }
};

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer::~Writer() = default;

Result<Writer> Writer::Create(const std::string& path, TagsOf tags_of) {
  PL_TRY_ASSIGN(sqlite::NewDatabase database, sqlite::NewDatabase::Create(path));
  auto impl = std::make_unique<Impl>(std::move(database), tags_of);
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
