// The trend viewer's database (.trend.db): schema and writer, over SQLite.
//
// Tables, columns and their order are those of upstream 26.x (docs/formats/trend_db.md). Repaired:
// the foreign key of tag_target_mapping names a table that exists.

#ifndef PLUMBLINE_FORMATS_SQLITE_TREND_DB_H_
#define PLUMBLINE_FORMATS_SQLITE_TREND_DB_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::trend_db {

// What one database holds. Names are plain words.
struct Form {
  std::vector<std::string> metrics;     // in order of their numbers, which count from 1; at most 16
  std::vector<std::string> statistics;  // columns of trend_data
  // Of each metric: its statistics as global_stats has them, "norm,max".
  std::vector<std::string> statistics_of;
  bool has_rank_first = true;  // of the columns of global_stats: max_rank before the steps
};

// What rows can be filtered by.
struct Tag {
  std::string name;
  std::string_view category;  // "index", "default", "function", "layer" or "module"
  friend bool operator==(const Tag&, const Tag&) = default;
};

// One tensor in one step: of a call, or what a monitor watches.
struct Row {
  int64_t rank = 0;
  int64_t step = 0;
  size_t metric = 0;       // of Form::metrics
  std::string target;      // "Module.layers.3.mlp.fc.Linear.input.0"
  size_t tail_parts = 2;   // how many last components say which tensor of the call it is
  int64_t vpp_stage = 0;   // stage of a virtual pipeline
  int64_t micro_step = 0;  // number of the call
  // One for each of Form::statistics; nothing is null. No NaN.
  std::vector<std::optional<double>> values;
};

// The number that the database holds: NaN is nothing, +-Inf is +-1000000001, anything else beyond
// +-1e9 is +-1e9.
std::optional<double> ValueOf(double value);
// The number that ValueOf() made this one of, as far as it tells: nothing was NaN.
double NumberOf(std::optional<double> value);

using TagsOf = std::vector<Tag> (*)(const Row& row);

struct GlobalStats {
  int64_t max_rank = 0;
  int64_t min_step = 0;
  int64_t max_step = 0;
};

// Builds a database beside its final name; without Finish() nothing is left. Memory: one entry per
// target. Errors are kIo and name the path. Single-threaded; move-only.
class Writer {
 public:
  // `tags_of` is asked once for every target of a metric.
  static Result<Writer> Create(const std::string& path, Form form, TagsOf tags_of);
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) = delete;
  ~Writer();

  // Rows stand between Begin() and Commit(), one transaction.
  Status Begin();
  Status Commit();
  // False if there is a row of the same rank, step, target and metric; the first one stays.
  Result<bool> Add(const Row& row);
  // Closes the database and gives it its name, replacing what stands there.
  Status Finish(const GlobalStats& stats);

  [[nodiscard]] size_t target_count() const;

 private:
  struct Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Writes into a database that readers may open meanwhile: what is committed is there whenever the
// process ends. Metrics and columns that a database lacks which is there already are added to it.
// Errors are kIo and name the path; after one, what was not committed is forgotten. Memory: one
// entry per target. Single-threaded; move-only.
class LiveWriter {
 public:
  static Result<LiveWriter> Open(const std::string& path, Form form, TagsOf tags_of);
  LiveWriter(LiveWriter&&) noexcept;
  LiveWriter& operator=(LiveWriter&&) = delete;
  ~LiveWriter();

  // Rows of `rank` alone, which stand there together or not at all. A row that is there is
  // replaced.
  Status Write(int64_t rank, const std::vector<Row>& rows);
  // Removes the rows of a rank of steps from `step` on.
  Status Trim(int64_t rank, int64_t step);
  // Leaves one file, without those that writing needs beside it, if nobody else has it open.
  Status Close();

 private:
  struct Impl;
  explicit LiveWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace plumbline::trend_db

#endif  // PLUMBLINE_FORMATS_SQLITE_TREND_DB_H_
