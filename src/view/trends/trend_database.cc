#include "view/trends/trend_database.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "base/file/file.h"
#include "base/text/text_parts.h"
#include "formats/sqlite/trend_db.h"

namespace plumbline::view {
namespace {

constexpr std::array<std::string_view, 4> kKeys = {"rank", "step", "target_id", "metric_id"};
// Statistics that are NaN together where a tensor holds NaN.
constexpr std::array<std::string_view, 4> kOfValues = {"norm", "max", "min", "mean"};

uint64_t BigEndian(std::string_view bytes) {
  uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

// The head of the file, which SQLite itself looks at only as far as it reads.
// https://www.sqlite.org/fileformat.html, 1.3.
Status CheckHead(const std::string& path) {
  if (KindOf(path) == PathKind::kMissing) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: no such file", path));
  }
  constexpr size_t kHeadBytes = 100;
  PL_TRY_ASSIGN(const std::string head, ReadStart(path, kHeadBytes));
  PL_TRY_ASSIGN(const uint64_t bytes, FileSize(path));
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  if (head.size() < kHeadBytes || !head.starts_with(kMagic)) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: is no SQLite database (expected a .trend.db of data2db)", path));
  }
  const std::string_view view = head;
  const uint64_t page_size =
      BigEndian(view.substr(16, 2)) == 1 ? 65536 : BigEndian(view.substr(16, 2));
  const uint64_t pages = BigEndian(view.substr(28, 4));
  const bool counts_pages = view.substr(24, 4) == view.substr(92, 4);
  if (counts_pages && bytes < page_size * pages) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: is cut: {} bytes, expected {}. Import again",
                                                  path, bytes, page_size * pages));
  }
  return {};
}

bool HasContents(const std::string& path) {
  const Result<uint64_t> bytes = FileSize(path);
  return bytes && *bytes > 0;
}

Error BusyError(const std::string& path, const Error& reason) {
  return Error(
      ErrorCode::kIo,
      fmt::format("{}: another program is writing it, or was ended while it did. Try again "
                  "when it is done ({})",
                  path, reason.message()));
}

std::string Quoted(std::string_view name) {
  std::string text = "\"";
  for (const char letter : name)
    text += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return text + '"';
}

int64_t IntegerAt(const sqlite::Statement& statement, int column) {
  return sqlite3_column_int64(statement.get(), column);
}

std::string TextAt(const sqlite::Statement& statement, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), column));
  if (text == nullptr) return {};
  return {text, static_cast<size_t>(sqlite3_column_bytes(statement.get(), column))};
}

// Of ValueSql(): a number, a text for NaN, or null.
TrendNumber NumberAt(const sqlite::Statement& statement, int column) {
  switch (sqlite3_column_type(statement.get(), column)) {
    case SQLITE_NULL:
      return std::nullopt;
    case SQLITE_INTEGER:
    case SQLITE_FLOAT:
      return trend_db::NumberOf(sqlite3_column_double(statement.get(), column));
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

TrendTarget TargetAt(const sqlite::Statement& statement) {
  return {IntegerAt(statement, 0), TextAt(statement, 1), IntegerAt(statement, 2),
          IntegerAt(statement, 3)};
}

// Calls visit(statement) for each row until it says false.
template <class Visit>
Status ForRows(const sqlite::Database& database, const sqlite::Statement& statement,
               const Visit& visit) {
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement.get())) == SQLITE_ROW) {
    if (!visit(statement)) return {};
  }
  return database.Check(code);
}

constexpr std::string_view kTargetColumns = "target_id, target_name, vpp_stage, micro_step";

}  // namespace

Result<TrendReader> TrendReader::Open(const std::string& path) {
  TrendReader reader(path);
  PL_TRY(reader.Refresh());
  return reader;
}

Result<bool> TrendReader::Refresh() {
  PL_TRY(CheckHead(path_));
  PL_TRY_ASSIGN(const uint64_t bytes, FileSize(path_));
  PL_TRY_ASSIGN(const int64_t changed, ModifiedAt(path_));
  const Result<int64_t> log_changed = ModifiedAt(path_ + "-wal");
  std::string state = fmt::format("{}:{}:{}", bytes, changed, log_changed.value_or(0));
  if (state == state_) return false;
  database_.reset();
  state_.clear();  // what fails now is tried again
  contents_ = {};
  PL_TRY(OpenDatabase());
  PL_TRY(ReadMetrics());
  PL_TRY(ReadExtent());
  state_ = std::move(state);
  return true;
}

Status TrendReader::OpenDatabase() {
  // Of a database in this mode that nobody has open nothing stands beside it.
  PL_TRY_ASSIGN(const std::string head, ReadStart(path_, 20));
  const bool has_log_mode = head[18] == 2;
  const bool is_written = HasContents(path_ + "-wal") || HasContents(path_ + "-journal");
  if (is_written || !has_log_mode) {
    PL_TRY_ASSIGN(sqlite::Database shared, sqlite::Database::OpenToRead(path_));
    sqlite3_busy_timeout(shared.handle(), 0);
    const Status readable = shared.Execute("SELECT 1 FROM sqlite_master");
    if (!readable) return BusyError(path_, readable.error());
    if (is_written) {
      database_ = std::move(shared);
      return {};
    }
  }
  PL_TRY_ASSIGN(database_, sqlite::Database::OpenImmutable(path_));
  return {};
}

Result<std::vector<std::string>> TrendReader::Texts(const std::string& sql) {
  PL_TRY_ASSIGN(const sqlite::Statement statement, database_->Prepare(sql));
  std::vector<std::string> texts;
  PL_TRY(ForRows(*database_, statement, [&](const sqlite::Statement& row) {
    texts.push_back(TextAt(row, 0));
    return true;
  }));
  return texts;
}

Result<std::vector<std::string>> TrendReader::ColumnsOf(std::string_view table) {
  return Texts(fmt::format("SELECT name FROM pragma_table_info('{}')", table));
}

Status TrendReader::ReadMetrics() {
  for (const std::string_view table : {"trend_data", "monitoring_targets", "monitoring_metrics",
                                       "monitoring_tags", "tag_target_mapping", "global_stats"}) {
    PL_TRY_ASSIGN(const std::vector<std::string> columns, ColumnsOf(table));
    if (columns.empty()) {
      return Error(ErrorCode::kUnsupported,
                   fmt::format("{}: is no database of trends: it has no table {} (expected a "
                               ".trend.db of data2db or of the monitor)",
                               path_, table));
    }
  }
  PL_TRY_ASSIGN(statistics_, ColumnsOf("trend_data"));
  std::erase_if(statistics_, [](const std::string& name) {
    return std::ranges::find(kKeys, name) != kKeys.end();
  });
  PL_TRY_ASSIGN(const std::vector<std::string> told, ColumnsOf("global_stats"));
  PL_TRY_ASSIGN(
      const sqlite::Statement statement,
      database_->Prepare("SELECT metric_id, metric_name FROM monitoring_metrics ORDER BY 1"));
  PL_TRY(ForRows(*database_, statement, [&](const sqlite::Statement& row) {
    contents_.metrics.push_back({IntegerAt(row, 0), TextAt(row, 1), {}});
    return true;
  }));
  for (TrendMetric& metric : contents_.metrics) {
    metric.statistics = statistics_;
    if (std::ranges::find(told, metric.name) == told.end()) continue;
    PL_TRY_ASSIGN(const std::vector<std::string> texts,
                  Texts(fmt::format("SELECT {} FROM global_stats ORDER BY rowid DESC LIMIT 1",
                                    Quoted(metric.name))));
    if (texts.empty()) continue;
    const std::vector<std::string_view> names = SplitAt(texts.front(), ',');
    std::erase_if(metric.statistics, [&](const std::string& name) {
      return std::ranges::find(names, name) == names.end();
    });
  }
  return {};
}

// Ranks and steps, by the key of the table: the next larger one is found without reading rows.
Status TrendReader::ReadExtent() {
  PL_TRY_ASSIGN(const sqlite::Statement next,
                database_->Prepare("SELECT min(rank) FROM trend_data WHERE rank > ?"));
  int64_t rank = std::numeric_limits<int64_t>::min();
  for (;;) {
    sqlite3_reset(next.get());
    sqlite3_bind_int64(next.get(), 1, rank);
    PL_TRY(database_->Check(sqlite3_step(next.get())));
    if (sqlite3_column_type(next.get(), 0) == SQLITE_NULL) break;
    rank = IntegerAt(next, 0);
    contents_.ranks.push_back(rank);
  }
  return FindSteps();
}

Status TrendReader::FindSteps() {
  constexpr size_t kMostLooks = 200'000;
  std::set<int64_t> steps;
  PL_TRY_ASSIGN(const sqlite::Statement next,
                database_->Prepare("SELECT min(step) FROM trend_data WHERE rank = ? AND step > ?"));
  PL_TRY_ASSIGN(const sqlite::Statement last,
                database_->Prepare("SELECT max(step) FROM trend_data WHERE rank = ?"));
  size_t looks = 0;
  for (const int64_t rank : contents_.ranks) {
    int64_t step = std::numeric_limits<int64_t>::min();
    while (looks++ < kMostLooks) {
      sqlite3_reset(next.get());
      sqlite3_bind_int64(next.get(), 1, rank);
      sqlite3_bind_int64(next.get(), 2, step);
      PL_TRY(database_->Check(sqlite3_step(next.get())));
      if (sqlite3_column_type(next.get(), 0) == SQLITE_NULL) break;
      step = IntegerAt(next, 0);
      steps.insert(step);
    }
    sqlite3_reset(last.get());
    sqlite3_bind_int64(last.get(), 1, rank);
    PL_TRY(database_->Check(sqlite3_step(last.get())));
    steps.insert(IntegerAt(last, 0));
  }
  if (steps.empty()) return {};
  contents_.first_step = *steps.begin();
  contents_.last_step = *steps.rbegin();
  contents_.has_exact_steps = looks <= kMostLooks;
  if (contents_.has_exact_steps) {
    contents_.steps.assign(steps.begin(), steps.end());
    return {};
  }
  constexpr int64_t kMostSteps = 1'000'000;
  const int64_t end = std::min(contents_.last_step, contents_.first_step + kMostSteps - 1);
  for (int64_t step = contents_.first_step; step <= end; ++step) contents_.steps.push_back(step);
  return {};
}

Result<TrendColumn> TrendReader::Column(std::string_view metric, std::string_view statistic) const {
  std::vector<std::string> names;
  for (const TrendMetric& each : contents_.metrics) {
    names.push_back(each.name);
    if (each.name != metric) continue;
    if (std::ranges::find(each.statistics, statistic) != each.statistics.end()) {
      return TrendColumn{each.id, std::string(statistic)};
    }
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("stat: {} has {}, got '{}'", metric, fmt::join(each.statistics, ", "),
                             statistic.substr(0, 40)));
  }
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("metric: {} has {}, got '{}'", path_, fmt::join(names, ", "),
                           metric.substr(0, 40)));
}

Result<TargetPage> TrendReader::Targets(const TargetFilter& filter, uint64_t offset,
                                        uint64_t limit) {
  // A target is one of the metric if it has a tag there; short names have no tags at all.
  std::string where =
      "WHERE (target_id IN (SELECT m.target_id FROM tag_target_mapping m JOIN monitoring_tags t "
      "ON t.tag_id = m.tag_id WHERE t.metric_id = ?1) OR target_id NOT IN (SELECT target_id FROM "
      "tag_target_mapping))";
  if (!filter.text.empty()) where += " AND instr(lower(target_name), lower(?2)) > 0";
  for (size_t i = 0; i < filter.tags.size(); ++i) {
    where += fmt::format(
        " AND target_id IN (SELECT m.target_id FROM tag_target_mapping m JOIN monitoring_tags t ON "
        "t.tag_id = m.tag_id WHERE t.tag_name = ?{} AND t.metric_id = ?1)",
        i + 3);
  }
  const auto bind = [&](const sqlite::Statement& statement) {
    sqlite3_bind_int64(statement.get(), 1, filter.metric);
    if (!filter.text.empty()) sqlite::BindText(statement.get(), 2, filter.text);
    for (size_t i = 0; i < filter.tags.size(); ++i) {
      sqlite::BindText(statement.get(), static_cast<int>(i + 3), filter.tags[i]);
    }
  };
  TargetPage page;
  PL_TRY_ASSIGN(const sqlite::Statement count,
                database_->Prepare("SELECT count(*) FROM monitoring_targets " + where));
  bind(count);
  PL_TRY(database_->Check(sqlite3_step(count.get())));
  page.total = static_cast<uint64_t>(IntegerAt(count, 0));
  PL_TRY_ASSIGN(const sqlite::Statement select,
                database_->Prepare(fmt::format("SELECT {} FROM monitoring_targets {} ORDER BY "
                                               "target_id LIMIT {} OFFSET {}",
                                               kTargetColumns, where, limit, offset)));
  bind(select);
  PL_TRY(ForRows(*database_, select, [&](const sqlite::Statement& row) {
    page.targets.push_back(TargetAt(row));
    return true;
  }));
  return page;
}

Result<std::optional<TrendTarget>> TrendReader::Target(int64_t id) {
  PL_TRY_ASSIGN(const sqlite::Statement select,
                database_->Prepare(fmt::format(
                    "SELECT {} FROM monitoring_targets WHERE target_id = ?", kTargetColumns)));
  sqlite3_bind_int64(select.get(), 1, id);
  std::optional<TrendTarget> found;
  PL_TRY(ForRows(*database_, select, [&](const sqlite::Statement& row) {
    found = TargetAt(row);
    return false;
  }));
  return found;
}

Result<std::optional<TrendTarget>> TrendReader::SameTarget(const TrendTarget& target) {
  PL_TRY_ASSIGN(
      const sqlite::Statement select,
      database_->Prepare(fmt::format("SELECT {} FROM monitoring_targets WHERE target_name = ? AND "
                                     "vpp_stage = ? AND micro_step = ?",
                                     kTargetColumns)));
  sqlite::BindText(select.get(), 1, target.name);
  sqlite3_bind_int64(select.get(), 2, target.vpp_stage);
  sqlite3_bind_int64(select.get(), 3, target.micro_step);
  std::optional<TrendTarget> found;
  PL_TRY(ForRows(*database_, select, [&](const sqlite::Statement& row) {
    found = TargetAt(row);
    return false;
  }));
  return found;
}

Result<std::vector<TrendTag>> TrendReader::Tags(int64_t metric) {
  PL_TRY_ASSIGN(const sqlite::Statement select,
                database_->Prepare("SELECT tag_name, category FROM monitoring_tags WHERE metric_id "
                                   "= ? ORDER BY category, tag_id"));
  sqlite3_bind_int64(select.get(), 1, metric);
  std::vector<TrendTag> tags;
  PL_TRY(ForRows(*database_, select, [&](const sqlite::Statement& row) {
    tags.push_back({TextAt(row, 0), TextAt(row, 1)});
    return true;
  }));
  return tags;
}

// Null in a row is NaN, unless other statistics of the values are there: then this one was not
// recorded.
Result<std::string> TrendReader::ValueSql(const TrendColumn& column) const {
  if (std::ranges::find(statistics_, column.statistic) == statistics_.end()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("stat: {} has no {}", path_, column.statistic));
  }
  const std::string name = Quoted(column.statistic);
  std::vector<std::string> others;
  if (std::ranges::find(kOfValues, column.statistic) != kOfValues.end()) {
    for (const std::string_view other : kOfValues) {
      if (std::ranges::find(statistics_, other) != statistics_.end())
        others.push_back(Quoted(other));
    }
  }
  others.emplace_back("NULL");
  others.emplace_back("NULL");  // coalesce() takes two at least
  return fmt::format("CASE WHEN {0} IS NOT NULL THEN {0} WHEN coalesce({1}) IS NULL THEN 'nan' END",
                     name, fmt::join(others, ", "));
}

Result<std::vector<TrendNumber>> TrendReader::Values(const TrendColumn& column, int64_t rank,
                                                     int64_t step,
                                                     std::span<const int64_t> targets) {
  std::vector<TrendNumber> values(targets.size());
  if (targets.empty()) return values;
  PL_TRY_ASSIGN(const std::string value, ValueSql(column));
  PL_TRY_ASSIGN(const sqlite::Statement select,
                database_->Prepare(fmt::format(
                    "SELECT target_id, {} FROM trend_data WHERE rank = ?1 AND step = ?2 AND "
                    "target_id BETWEEN ?3 AND ?4 AND metric_id = ?5",
                    value)));
  sqlite3_bind_int64(select.get(), 1, rank);
  sqlite3_bind_int64(select.get(), 2, step);
  sqlite3_bind_int64(select.get(), 5, column.metric);
  size_t at = 0;
  const auto take = [&](const sqlite::Statement& row) {
    const int64_t target = IntegerAt(row, 0);
    while (at < targets.size() && targets[at] < target) ++at;
    if (at < targets.size() && targets[at] == target) values[at] = NumberAt(row, 1);
    return at < targets.size();
  };
  const auto read = [&](int64_t first, int64_t last) -> Status {
    sqlite3_reset(select.get());
    sqlite3_bind_int64(select.get(), 3, first);
    sqlite3_bind_int64(select.get(), 4, last);
    return ForRows(*database_, select, take);
  };
  // Ids that lie close together are read in one go.
  constexpr int64_t kDense = 8;
  if (targets.back() - targets.front() < kDense * static_cast<int64_t>(targets.size())) {
    PL_TRY(read(targets.front(), targets.back()));
    return values;
  }
  for (const int64_t target : targets) PL_TRY(read(target, target));
  return values;
}

Status TrendReader::VisitRows(const TrendColumn& column,
                              const std::function<bool(const Row& row)>& visit) {
  PL_TRY_ASSIGN(const std::string value, ValueSql(column));
  PL_TRY_ASSIGN(const sqlite::Statement select,
                database_->Prepare(fmt::format("SELECT rank, step, target_id, {} FROM trend_data "
                                               "WHERE metric_id = ? ORDER BY rank, step, target_id",
                                               value)));
  sqlite3_bind_int64(select.get(), 1, column.metric);
  return ForRows(*database_, select, [&](const sqlite::Statement& row) {
    return visit({IntegerAt(row, 0), IntegerAt(row, 1), IntegerAt(row, 2), NumberAt(row, 3)});
  });
}

}  // namespace plumbline::view
