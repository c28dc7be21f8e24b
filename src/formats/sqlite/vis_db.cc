#include "formats/sqlite/vis_db.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plumbline::vis_db {
namespace {

// The texts of upstream, line breaks included: SQLite keeps them as they are.
constexpr const char* kSchema = R"sql(
CREATE TABLE tb_nodes (
    id TEXT PRIMARY KEY,
    graph_id TEXT NOT NULL,
    node_order INTEGER NOT NULL,
    node_name TEXT NOT NULL,
    node_type TEXT NOT NULL,
    up_node TEXT,
    sub_nodes TEXT,
    precision_index INTEGER,
    overflow_level TEXT,
    micro_step_id INTEGER NOT NULL,
    matched_node_link TEXT,
    stack_id TEXT,
    parallel_merge_info TEXT,
    matched_distributed TEXT,
    modified INTEGER NOT NULL,
    input_data TEXT,
    output_data TEXT,
    data_source TEXT,
    dump_data_dir TEXT,
    step INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    is_distributed INTEGER
);
CREATE TABLE tb_stack (
    id TEXT PRIMARY KEY,
    stack_info TEXT
);
CREATE TABLE tb_config (
    id TEXT PRIMARY KEY,
    graph_type TEXT NOT NULL,
    task TEXT,
    tool_tip TEXT,
    micro_steps INTEGER,
    overflow_check INTEGER,
    node_colors TEXT NOT NULL,
    rank_list TEXT NOT NULL,
    step_list TEXT NOT NULL
);
CREATE TABLE mp_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
)sql";

constexpr const char* kIndices = R"sql(
CREATE INDEX index1 ON tb_nodes (step, rank, data_source, up_node, node_order);
CREATE INDEX index2 ON tb_nodes (step, rank, data_source, node_name);
CREATE INDEX index3 ON tb_nodes (step, rank, data_source, node_order);
CREATE INDEX index4 ON tb_nodes (step, rank, node_order);
CREATE INDEX index5 ON tb_nodes (step, rank, micro_step_id, node_order);
CREATE INDEX index6 ON tb_nodes (step, rank, modified, matched_node_link);
CREATE INDEX index7 ON tb_nodes (is_distributed);
)sql";

// Binds the columns of one row in their order. The first failure stays.
class Row {
 public:
  explicit Row(const sqlite::Statement& statement) : statement_(statement.get()) {}

  Row& Text(std::string_view text) { return Took(sqlite::BindText(statement_, ++column_, text)); }
  Row& Number(int64_t number) { return Took(sqlite3_bind_int64(statement_, ++column_, number)); }
  Row& Real(double number) { return Took(sqlite3_bind_double(statement_, ++column_, number)); }
  Row& Null() { return Took(sqlite3_bind_null(statement_, ++column_)); }
  Row& TextOrNull(std::string_view text) { return text.empty() ? Null() : Text(text); }
  [[nodiscard]] int code() const { return code_; }

 private:
  Row& Took(int code) {
    if (code_ == SQLITE_OK) code_ = code;
    return *this;
  }
  sqlite3_stmt* statement_;
  int column_ = 0;
  int code_ = SQLITE_OK;
};

std::string NumbersJson(const std::vector<int64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

}  // namespace

Result<Writer> Writer::Create(const std::string& path) {
  PL_TRY_ASSIGN(sqlite::NewDatabase database, sqlite::NewDatabase::Create(path));
  // Rows are some kilobytes, of which smaller pages would hold one. Indices read the table again.
  PL_TRY(database.Execute(
      "PRAGMA page_size=16384; PRAGMA mmap_size=1073741824; PRAGMA locking_mode=EXCLUSIVE;"));
  PL_TRY(database.Execute("BEGIN"));
  PL_TRY(database.Execute(kSchema));
  Writer writer(std::move(database));
  constexpr const char* kNode =
      "INSERT INTO tb_nodes VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
  PL_TRY_ASSIGN(writer.node_, writer.database_.Prepare(kNode));
  PL_TRY_ASSIGN(writer.stack_, writer.database_.Prepare("INSERT INTO tb_stack VALUES (?,?)"));
  return writer;
}

Status Writer::Step(const sqlite::Statement& statement) {
  PL_TRY(database_.Check(sqlite3_step(statement.get())));
  return database_.Check(sqlite3_reset(statement.get()));
}

Status Writer::BeginGraph(const vis::GraphPlace& place,
                          const std::optional<std::string>& dump_data_dir,
                          const std::vector<std::string>& stacks) {
  place_ = place;
  dump_data_dir_ = dump_data_dir;
  graph_id_ = fmt::format("{}_{}_{}", place.source(), place.step, place.rank);
  for (size_t i = 0; i < stacks.size(); ++i) {
    const std::string id = fmt::format("{}_{}", graph_id_, i);
    PL_TRY(database_.Check(Row(stack_).Text(id).Text(stacks[i]).code()));
    PL_TRY(Step(stack_));
  }
  return {};
}

Status Writer::Add(const vis::Node& node) {
  const std::string id = fmt::format("{}_{}", graph_id_, node.name);
  const std::string type = std::to_string(static_cast<int>(node.type));
  const std::string children = node.children.empty() ? "" : vis::ListJson(node.children);
  const std::string link = vis::ListJson(node.link);
  const std::string stack = fmt::format("{}_{}", graph_id_, node.stack);
  Row row(node_);
  row.Text(id).Text(graph_id_).Number(static_cast<int64_t>(node.order)).Text(node.name);
  row.Text(type).Text(node.parent).Text(children);
  // The column has integer affinity, which keeps 0.5 as it is.
  if (node.level) {
    row.Real(vis::IndexOf(*node.level));
  } else {
    row.Null();
  }
  row.TextOrNull(node.overflow_level).Number(node.micro_step).Text(link).Text(stack);
  row.Text(node.merge).Text(node.transfers.empty() ? "{}" : node.transfers).Number(0);
  row.Text(node.inputs).Text(node.outputs).Text(place_.source());
  if (dump_data_dir_) {
    row.Text(*dump_data_dir_);
  } else {
    row.Null();
  }
  row.Number(place_.step).Number(place_.rank);
  row.Number(node.name.starts_with("Distributed") ? 1 : 0);
  PL_TRY(database_.Check(row.code()));
  return Step(node_);
}

Status Writer::CopyRows(sqlite::Database& from, const std::string& query,
                        sqlite::Statement& insert) {
  PL_TRY_ASSIGN(const sqlite::Statement select, from.Prepare(query));
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(select.get())) == SQLITE_ROW) {
    for (int i = 0; i < sqlite3_column_count(select.get()); ++i) {
      const sqlite3_value* const value = sqlite3_column_value(select.get(), i);
      PL_TRY(database_.Check(sqlite3_bind_value(insert.get(), i + 1, value)));
    }
    PL_TRY(Step(insert));
  }
  return from.Check(code);
}

Status Writer::Copy(const std::string& from, int64_t step, int64_t rank) {
  PL_TRY_ASSIGN(sqlite::Database source, sqlite::Database::OpenImmutable(from));
  const std::string where = fmt::format("WHERE step = {} AND rank = {}", step, rank);
  PL_TRY(
      CopyRows(source,
               fmt::format("SELECT * FROM tb_stack WHERE id IN (SELECT stack_id FROM tb_nodes {}) "
                           "ORDER BY rowid",
                           where),
               stack_));
  PL_TRY(CopyRows(source, fmt::format("SELECT * FROM tb_nodes {} ORDER BY rowid", where), node_));
  return database_.Execute(fmt::format(
      "UPDATE tb_nodes SET matched_distributed = '{{}}' {} AND matched_distributed != '{{}}'",
      where));
}

Status Writer::SetTransfers(const vis::GraphPlace& place, std::string_view name,
                            std::string_view links) {
  if (!transfers_) {
    PL_TRY_ASSIGN(transfers_,
                  database_.Prepare("UPDATE tb_nodes SET matched_distributed = ? WHERE id = ?"));
  }
  const std::string id = fmt::format("{}_{}_{}_{}", place.source(), place.step, place.rank, name);
  PL_TRY(database_.Check(Row(transfers_).Text(links).Text(id).code()));
  return Step(transfers_);
}

Status Writer::AddConfig(const vis::Summary& summary) {
  PL_TRY_ASSIGN(const sqlite::Statement insert,
                database_.Prepare("INSERT INTO tb_config VALUES (?,?,?,?,?,?,?,?,?)"));
  const std::string tips = vis::ToolTipJson(summary.task);
  const std::string colors = vis::ColorsJson(summary.task);
  const std::string ranks = NumbersJson(summary.ranks), steps = NumbersJson(summary.steps);
  Row row(insert);
  row.Text("1").Text(summary.task.empty() ? "build" : "compare").Text(summary.task);
  row.TextOrNull(tips).Number(summary.micro_steps).Number(summary.has_overflow_levels ? 1 : 0);
  row.Text(colors).Text(ranks).Text(steps);
  PL_TRY(database_.Check(row.code()));
  return Step(insert);
}

Status Writer::AddFacts(const vis::Facts& facts) {
  PL_TRY_ASSIGN(const sqlite::Statement insert,
                database_.Prepare("INSERT INTO mp_meta VALUES (?,?)"));
  for (const auto& [key, value] : facts) {
    PL_TRY(database_.Check(Row(insert).Text(key).Text(value).code()));
    PL_TRY(Step(insert));
  }
  return {};
}

Status Writer::Finish(const vis::Summary& summary, const vis::Facts& facts) {
  PL_TRY(AddConfig(summary));
  PL_TRY(AddFacts(facts));
  node_.reset();
  stack_.reset();
  transfers_.reset();
  PL_TRY(database_.Execute(kIndices));
  PL_TRY(database_.Execute("COMMIT"));
  return database_.Close(/*durable=*/false);
}

}  // namespace plumbline::vis_db
