#include "formats/sqlite/vis_db_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/file/file.h"
#include "base/text/text_parts.h"
#include "formats/sqlite/sqlite_table.h"

namespace plumbline::vis_db {
namespace {

constexpr std::string_view kAdvice = "Make one with plumb graph, or msprobe graph_visualize";

// One row while it is read. Views last until the next step.
class Columns {
 public:
  explicit Columns(const sqlite::Statement& statement) : statement_(statement.get()) {}

  [[nodiscard]] std::string_view Text(int at) const {
    const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, at));
    if (text == nullptr) return {};
    return {text, static_cast<size_t>(sqlite3_column_bytes(statement_, at))};
  }
  [[nodiscard]] int64_t Integer(int at) const { return sqlite3_column_int64(statement_, at); }
  [[nodiscard]] std::optional<double> Real(int at) const {
    const int type = sqlite3_column_type(statement_, at);
    if (type == SQLITE_TEXT) return ParseReal(Text(at));
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return std::nullopt;
    return sqlite3_column_double(statement_, at);
  }

 private:
  sqlite3_stmt* statement_;
};

// The texts of a JSON list; empty for anything else.
std::vector<std::string> ListOf(std::string_view text) {
  std::vector<std::string> texts;
  json::Reader in(text);
  if (in.Peek() != json::Kind::kArray || !in.EnterArray()) return texts;
  while (in.NextElement()) {
    std::string_view item;
    if (in.Peek() != json::Kind::kString) {
      in.SkipValue();
    } else if (in.ReadString(item)) {
      texts.emplace_back(vis::WithoutSide(item));
    }
  }
  return in.failed() ? std::vector<std::string>() : texts;
}

// The last text of a JSON list.
std::string LastOf(std::string_view text) {
  std::vector<std::string> texts = ListOf(text);
  return texts.empty() ? std::string() : std::move(texts.back());
}

constexpr std::string_view kNodeColumns[] = {
    "node_name",       "up_node",        "node_type",     "sub_nodes",          "matched_node_link",
    "precision_index", "overflow_level", "micro_step_id", "matched_distributed"};
constexpr std::string_view kNeeded[] = {"node_name",   "up_node",     "node_order", "input_data",
                                        "output_data", "data_source", "step",       "rank"};

class DbSource : public vis::Source {
 public:
  static Result<std::unique_ptr<vis::Source>> Open(const std::string& path) {
    PL_TRY(CheckFinished(path));
    PL_TRY_ASSIGN(sqlite::Database database, sqlite::Database::OpenImmutable(path));
    auto source = std::make_unique<DbSource>(path, std::move(database));
    PL_TRY(source->CheckTables());
    PL_TRY(source->ReadConfig());
    PL_TRY(source->ReadFacts());
    PL_TRY(source->ListGraphs());
    return source;
  }

  DbSource(std::string path, sqlite::Database database)
      : path_(std::move(path)), database_(std::move(database)) {}

  Result<std::vector<vis::NodeRow>> ReadNodes(const vis::GraphPlace& graph) override {
    std::string columns = "rowid";
    for (const std::string_view name : kNodeColumns) columns += ", " + Column(name);
    PL_TRY_ASSIGN(const sqlite::Statement select, Select(columns, graph, " ORDER BY node_order"));
    std::vector<vis::NodeRow> nodes;
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(select.get())) == SQLITE_ROW) nodes.push_back(RowOf(select));
    PL_TRY(Check(code));
    return nodes;
  }

  Result<vis::NodeTexts> ReadTexts(const vis::NodeRow& node) override {
    if (!texts_) {
      const bool has_stacks = columns_.contains("stack_id") && has_stacks_;
      const std::string stack =
          has_stacks ? "(SELECT stack_info FROM tb_stack WHERE tb_stack.id = stack_id)" : "NULL";
      const std::string query =
          fmt::format("SELECT {}, input_data, output_data, {} FROM tb_nodes WHERE rowid = ?", stack,
                      Column("parallel_merge_info"));
      PL_TRY_ASSIGN(texts_, database_.Prepare(query));
    }
    sqlite3_reset(texts_.get());
    PL_TRY(Check(sqlite3_bind_int64(texts_.get(), 1, node.place)));
    PL_TRY(Check(sqlite3_step(texts_.get())));
    const Columns row(texts_);
    return vis::NodeTexts{.stack = std::string(row.Text(0)),
                          .inputs = std::string(row.Text(1)),
                          .outputs = std::string(row.Text(2)),
                          .merged = std::string(row.Text(3))};
  }

  Result<std::string> TensorDirectory(const vis::GraphPlace& graph) override {
    PL_TRY_ASSIGN(const sqlite::Statement select,
                  Select(Column("dump_data_dir"), graph, " LIMIT 1"));
    const int code = sqlite3_step(select.get());
    PL_TRY(Check(code));
    if (code != SQLITE_ROW) return std::string();
    return std::string(Columns(select).Text(0));
  }

 private:
  // What lies beside a file means that rows are missing in it, or may change.
  static Status CheckFinished(const std::string& path) {
    if (KindOf(path) == PathKind::kMissing) {
      return Error(ErrorCode::kNotFound, fmt::format("{}: no such file. {}.", path, kAdvice));
    }
    for (const std::string_view ending : {"-wal", "-journal"}) {
      const std::string beside = path + std::string(ending);
      const auto size = FileSize(beside);
      if (!size || *size == 0) continue;
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: is being written, or its writer was stopped ({} bytes in {}; "
                               "expected none). Wait for it, or make the file again.",
                               path, *size, BaseName(beside)));
    }
    return {};
  }

  // SQLite's words, and the code of a file that is none.
  [[nodiscard]] Status Check(int code) const {
    Status status = database_.Check(code);
    if (status) return status;
    const int primary = code & 0xFF;
    const bool is_damaged = primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB;
    return Error(is_damaged ? ErrorCode::kCorrupt : ErrorCode::kIo, status.error().message());
  }

  // The columns of a table; none: there is no such table.
  Result<std::set<std::string, std::less<>>> ColumnsOf(const std::string& table) {
    std::set<std::string, std::less<>> names;
    sqlite3_stmt* prepared = nullptr;
    const std::string query = fmt::format("PRAGMA table_info({})", table);
    const int made = sqlite3_prepare_v2(database_.handle(), query.c_str(), -1, &prepared, nullptr);
    const sqlite::Statement info(prepared);
    if ((made & 0xFF) == SQLITE_NOTADB) {
      return Error(ErrorCode::kUnsupported,
                   fmt::format("{}: no SQLite database (expected a .vis.db). {}.", path_, kAdvice));
    }
    PL_TRY(Check(made));
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(info.get())) == SQLITE_ROW) {
      names.emplace(Columns(info).Text(1));
    }
    PL_TRY(Check(code));
    return names;
  }

  Status CheckTables() {
    PL_TRY_ASSIGN(columns_, ColumnsOf("tb_nodes"));
    PL_TRY_ASSIGN(const auto config, ColumnsOf("tb_config"));
    PL_TRY_ASSIGN(const auto stacks, ColumnsOf("tb_stack"));
    PL_TRY_ASSIGN(const auto facts, ColumnsOf("mp_meta"));
    has_stacks_ = stacks.contains("id") && stacks.contains("stack_info");
    has_facts_ = facts.contains("key") && facts.contains("value");
    config_ = config;
    if (columns_.empty()) {
      return Error(ErrorCode::kUnsupported,
                   fmt::format("{}: a database of something else (expected the tables tb_nodes and "
                               "tb_config). {}.",
                               path_, kAdvice));
    }
    std::vector<std::string_view> missing;
    std::ranges::copy_if(kNeeded, std::back_inserter(missing),
                         [&](std::string_view name) { return !columns_.contains(name); });
    if (missing.empty()) return {};
    return Error(ErrorCode::kUnsupported, fmt::format("{}: tb_nodes has no column {}. {}.", path_,
                                                      fmt::join(missing, ", "), kAdvice));
  }

  // The column, or null where this release has none.
  [[nodiscard]] std::string Column(std::string_view name) const {
    return columns_.contains(name) ? std::string(name) : "NULL";
  }

  Status ReadConfig() {
    std::string names;
    for (const std::string_view name :
         {"graph_type", "task", "micro_steps", "overflow_check", "node_colors"}) {
      names += names.empty() ? "" : ", ";
      names += config_.contains(name) ? name : std::string_view("NULL");
    }
    int code = SQLITE_DONE;
    sqlite::Statement select = nullptr;
    if (!config_.empty()) {
      PL_TRY_ASSIGN(select, database_.Prepare("SELECT " + names + " FROM tb_config LIMIT 1"));
      code = sqlite3_step(select.get());
      PL_TRY(Check(code));
    }
    if (code != SQLITE_ROW) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: no row in tb_config: its writer has not finished. Wait for it, "
                               "or make the file again.",
                               path_));
    }
    const Columns row(select);
    head_.is_pair = row.Text(0) == "compare";
    head_.task = row.Text(1);
    head_.micro_steps = std::max<int64_t>(row.Integer(2), 1);
    head_.has_overflow_levels = row.Integer(3) != 0;
    const auto colors = json::Value::Parse(row.Text(4));
    if (colors) head_.scale = vis::LevelScale::Of(*colors);
    if (!colors && head_.is_pair) {
      head_.notes.push_back("node_colors is no JSON; levels are not known");
    }
    return {};
  }

  Status ReadFacts() {
    if (!has_facts_) return {};
    PL_TRY_ASSIGN(const sqlite::Statement select,
                  database_.Prepare("SELECT key, value FROM mp_meta ORDER BY key"));
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(select.get())) == SQLITE_ROW) {
      const Columns row(select);
      head_.facts.emplace_back(row.Text(0), row.Text(1));
    }
    return Check(code);
  }

  Status ListGraphs() {
    PL_TRY_ASSIGN(const sqlite::Statement select,
                  database_.Prepare("SELECT DISTINCT step, rank, data_source FROM tb_nodes "
                                    "ORDER BY step, rank, data_source DESC"));
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(select.get())) == SQLITE_ROW) {
      const Columns row(select);
      const std::string_view source = row.Text(2);
      if (source != "NPU" && source != "Bench") {
        head_.notes.push_back(
            fmt::format("rows of data_source \"{}\" are not shown (expected NPU "
                        "or Bench)",
                        source));
        continue;
      }
      graphs_.push_back({source == "Bench", row.Integer(0), row.Integer(1)});
    }
    PL_TRY(Check(code));
    if (!graphs_.empty()) return {};
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: no rows in tb_nodes. Make the file again.", path_));
  }

  Result<sqlite::Statement> Select(const std::string& columns, const vis::GraphPlace& graph,
                                   std::string_view tail) {
    return database_.Prepare(fmt::format(
        "SELECT {} FROM tb_nodes WHERE step = {} AND rank = {} AND data_source = '{}'{}", columns,
        graph.step, graph.rank, graph.source(), tail));
  }

  static vis::NodeRow RowOf(const sqlite::Statement& select) {
    const Columns row(select);
    vis::NodeRow node{.name = std::string(row.Text(1)), .parent = std::string(row.Text(2))};
    node.place = row.Integer(0);
    node.type = vis::NodeTypeOf(ParseInteger(row.Text(3)).value_or(0));
    node.children = ListOf(row.Text(4));
    node.partner = LastOf(row.Text(5));
    node.index = row.Real(6);
    node.overflow_level = row.Text(7);
    node.micro_step = row.Integer(8);
    const std::string_view transfers = row.Text(9);
    if (transfers != "{}" && transfers != "null") node.transfers = transfers;
    if (node.parent == "None") node.parent.clear();
    return node;
  }

  const std::string path_;
  sqlite::Database database_;
  sqlite::Statement texts_ = nullptr;
  std::set<std::string, std::less<>> columns_, config_;  // of tb_nodes and tb_config
  bool has_stacks_ = false, has_facts_ = false;
};

}  // namespace

Result<std::unique_ptr<vis::Source>> Open(const std::string& path) { return DbSource::Open(path); }

}  // namespace plumbline::vis_db
