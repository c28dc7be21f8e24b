#include "report/result_database.h"

#include <array>
#include <string_view>
#include <vector>

#include "formats/sqlite_table.h"
#include "report/json_object.h"
#include "report/result_json.h"
#include "report/row_cells.h"
#include "report/stack_texts.h"

namespace plumbline::report {
namespace {

using sqlite_table::Cell;

// The first columns are declared in full; the rest are values, each of which keeps its own type.
constexpr std::string_view kRowsHead =
    "CREATE TABLE rows (row INTEGER PRIMARY KEY, call INTEGER NOT NULL REFERENCES calls(call), "
    "name TEXT NOT NULL, role TEXT NOT NULL, verdict TEXT NOT NULL, reason TEXT NOT NULL, "
    "error REAL, explained_error REAL, result TEXT NOT NULL, target_dtype TEXT, golden_dtype TEXT, "
    "target_shape TEXT, golden_shape TEXT";
constexpr size_t kDeclaredColumns = 13;

std::string Schema(const std::vector<CellColumn>& columns) {
  std::string rows(kRowsHead);
  for (size_t i = kDeclaredColumns; i < columns.size(); ++i) rows += ", " + columns[i].name;
  return "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);"
         "CREATE TABLE calls (call INTEGER PRIMARY KEY, target_name TEXT, golden_name TEXT, "
         "verdict TEXT NOT NULL, unmatched_reason TEXT, unmatched_detail TEXT, stack TEXT);" +
         rows +
         ");CREATE VIEW wrong AS SELECT * FROM rows WHERE verdict IN ('suspicious', 'broken');";
}

Cell TextOrNull(std::string_view text) { return text.empty() ? Cell() : Cell(text); }

Status AddFacts(const Comparison& comparison, sqlite_table::Writer& writer) {
  PL_TRY(writer.Begin("facts", 2));
  const std::string answer = SummaryText(comparison);
  std::string summary = SummaryJson(comparison);
  summary.pop_back();
  const std::array<std::pair<std::string_view, std::string_view>, 7> facts = {{
      {"format", "plumbline compare"},
      {"version", "1"},
      {"mode", CompareModeName(comparison.mode)},
      {"target", comparison.target_path},
      {"golden", comparison.golden_path},
      {"answer", std::string_view(answer).substr(0, answer.find('\n'))},
      {"summary", summary},
  }};
  for (const auto& [name, value] : facts) {
    PL_TRY(writer.Add(std::array<Cell, 2>{name, value}));
  }
  return {};
}

Status AddCalls(const Comparison& comparison, sqlite_table::Writer& writer) {
  const StackTexts stacks(comparison, [](const StackTexts::Frames& frames) {
    std::string text;
    AppendTexts(frames, text);
    return text;
  });
  const auto pack = [&](size_t begin, size_t end, sqlite_table::PackedRows& rows) {
    for (size_t i = begin; i < end; ++i) {
      const ComparedCall& call = comparison.calls[i];
      const std::string stack = stacks.Of(i);
      rows.Add(std::to_array<Cell>({static_cast<int64_t>(i), TextOrNull(call.target_name),
                                    TextOrNull(call.golden_name), VerdictName(call.verdict),
                                    TextOrNull(call.unmatched_reason),
                                    TextOrNull(call.unmatched_detail), TextOrNull(stack)}));
    }
  };
  return writer.AddLong("calls", comparison.calls.size(), pack);
}

Status AddRows(const Comparison& comparison, sqlite_table::Writer& writer) {
  const auto pack = [&](size_t begin, size_t end, sqlite_table::PackedRows& rows) {
    RowCells cells(comparison);
    for (size_t i = begin; i < end; ++i) rows.Add(cells.Of(i));
  };
  return writer.AddLong("rows", comparison.rows.size(), pack);
}

}  // namespace

Status WriteDatabase(const Comparison& comparison, const std::string& path) {
  const std::vector<CellColumn> columns = CellColumnsOf(comparison.mode);
  PL_TRY_ASSIGN(sqlite_table::Writer writer, sqlite_table::Writer::Create(path, Schema(columns)));
  PL_TRY(AddFacts(comparison, writer));
  PL_TRY(AddCalls(comparison, writer));
  PL_TRY(AddRows(comparison, writer));
  return writer.Finish();
}

}  // namespace plumbline::report
