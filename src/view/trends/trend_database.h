// A database of trends (docs/formats/trend_db.md), opened to be looked at.

#ifndef PLUMBLINE_VIEW_TRENDS_TREND_DATABASE_H_
#define PLUMBLINE_VIEW_TRENDS_TREND_DATABASE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/sqlite/sqlite_table.h"
#include "plumbline/result.h"

namespace plumbline::view {

struct TrendMetric {
  int64_t id = 0;
  std::string name;
  std::vector<std::string> statistics;
};

// What a series is of: a tensor of a call, or what a monitor watches.
struct TrendTarget {
  int64_t id = 0;
  std::string name;
  int64_t vpp_stage = 0, micro_step = 0;
};

struct TrendTag {
  std::string name, category;
};

// What a whole database holds.
struct TrendContents {
  std::vector<TrendMetric> metrics;
  int64_t first_step = 0, last_step = 0;
  std::vector<int64_t> ranks;  // ascending
  // Ascending, those that any rank has; where to find them would take too long, all from the first
  // to the last.
  std::vector<int64_t> steps;
  bool has_exact_steps = true;
};

// Which targets: those of a metric, with all of these tags, whose name has this text in it.
struct TargetFilter {
  int64_t metric = 0;  // id
  std::vector<std::string> tags;
  std::string text;
};
struct TargetPage {
  uint64_t total = 0;
  std::vector<TrendTarget> targets;  // by id, which follows the recording
};

// A number, +-Inf where the importer marked it so; NaN; or nothing, where there is no row or the
// statistic was not recorded of it.
using TrendNumber = std::optional<double>;

// One statistic of one metric.
struct TrendColumn {
  int64_t metric = 0;  // id
  std::string statistic;
};

// A database of upstream's or ours, opened read-only: no file is changed or made beside it, unless
// another program writes it just now. One that changes is opened again. Not thread-safe; movable.
class TrendReader {
 public:
  // kNotFound; kCorrupt: no SQLite database, a cut one, or one without the tables of trends; kIo:
  // another program has locked it, or was killed while it wrote.
  static Result<TrendReader> Open(const std::string& path);

  // Opens it again if it changed; what was learned of it before holds no longer then: true.
  Result<bool> Refresh();

  [[nodiscard]] const TrendContents& contents() const { return contents_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  // kInvalidArgument, which lists what there is, for unknown names.
  Result<TrendColumn> Column(std::string_view metric, std::string_view statistic) const;
  Result<TargetPage> Targets(const TargetFilter& filter, uint64_t offset, uint64_t limit);
  Result<std::optional<TrendTarget>> Target(int64_t id);
  // That of another database.
  Result<std::optional<TrendTarget>> SameTarget(const TrendTarget& target);
  Result<std::vector<TrendTag>> Tags(int64_t metric);

  // values[i]: that of targets[i], ids ascending, at a rank and a step.
  Result<std::vector<TrendNumber>> Values(const TrendColumn& column, int64_t rank, int64_t step,
                                          std::span<const int64_t> targets);

  // One row after the other by rank, step and target, until `visit` says false.
  struct Row {
    int64_t rank, step, target;
    TrendNumber value;
  };
  Status VisitRows(const TrendColumn& column, const std::function<bool(const Row& row)>& visit);

 private:
  explicit TrendReader(std::string path) : path_(std::move(path)) {}
  Status OpenDatabase();
  Status ReadMetrics();
  Status ReadExtent();
  Status FindSteps();
  Result<std::vector<std::string>> Texts(const std::string& sql);
  Result<std::vector<std::string>> ColumnsOf(std::string_view table);
  Result<std::string> ValueSql(const TrendColumn& column) const;

  std::string path_, state_;  // `state_`: what the contents of the file are known by
  std::optional<sqlite::Database> database_;
  std::vector<std::string> statistics_;  // columns of trend_data
  TrendContents contents_;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_TRENDS_TREND_DATABASE_H_
