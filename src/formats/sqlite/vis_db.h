// .vis.db: the graphs of all ranks and steps in one SQLite database (upstream 26.x; vis_record.h).

#ifndef PLUMBLINE_FORMATS_SQLITE_VIS_DB_H_
#define PLUMBLINE_FORMATS_SQLITE_VIS_DB_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/json/vis_record.h"
#include "formats/sqlite/sqlite_table.h"
#include "plumbline/result.h"

namespace plumbline::vis_db {

// Built beside its final name; without Finish() nothing is left. Upstream's tables and indices are
// exactly its own (docs/formats/vis_db.md). Errors are kIo and name the path. Single-threaded;
// move-only.
class Writer {
 public:
  static Result<Writer> Create(const std::string& path);
  // `dump_data_dir` may be nothing. `stacks`: JSON lists of frames.
  Status BeginGraph(const vis::GraphPlace& place, const std::optional<std::string>& dump_data_dir,
                    const std::vector<std::string>& stacks);
  Status Add(const vis::Node& node);
  // Both graphs of a rank as they stand in another file of this writer, without their links.
  Status Copy(const std::string& from, int64_t step, int64_t rank);
  // The links of a node that was added or copied; JSON.
  Status SetTransfers(const vis::GraphPlace& place, std::string_view name, std::string_view links);
  Status Finish(const vis::Summary& summary, const vis::Facts& facts);

 private:
  explicit Writer(sqlite::NewDatabase database) : database_(std::move(database)) {}
  Status Step(const sqlite::Statement& statement);
  Status CopyRows(sqlite::Database& from, const std::string& query, sqlite::Statement& insert);
  Status AddConfig(const vis::Summary& summary);
  Status AddFacts(const vis::Facts& facts);

  sqlite::NewDatabase database_;
  sqlite::Statement node_ = nullptr, stack_ = nullptr;  // inserts
  sqlite::Statement transfers_ = nullptr;               // update
  vis::GraphPlace place_;
  std::string graph_id_;
  std::optional<std::string> dump_data_dir_;
};

}  // namespace plumbline::vis_db

#endif  // PLUMBLINE_FORMATS_SQLITE_VIS_DB_H_
