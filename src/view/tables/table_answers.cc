#include "view/tables/table_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "view/query/json_answer.h"
#include "view/store/place_data.h"

namespace plumbline::view {
namespace {

using Rows = std::vector<uint32_t>;

constexpr int64_t kUsualRows = 50, kMostRows = 1000;
// Of a cell in a page of rows: call stacks have kilobytes.
constexpr size_t kMostOfCell = 160;

// From good to bad; a column is sorted by it with numbers before texts, and nothing at the end.
struct SortKey {
  enum : uint8_t { kNumber, kNan, kText, kBlank } kind = kBlank;
  double number = 0;
  std::string_view text{};
};

SortKey KeyOfCell(std::string_view cell) {
  cell = Trimmed(cell);
  if (cell.empty() || cell == "N/A") return {};
  std::string_view digits = cell;
  if (digits.ends_with('%')) digits.remove_suffix(1);
  const std::optional<double> number = ParseReal(digits);
  if (!number) return {SortKey::kText, 0, cell};
  return {std::isnan(*number) ? SortKey::kNan : SortKey::kNumber, *number, {}};
}

// What stands first of two cells; those without a value come last either way.
bool StandsBefore(const SortKey& a, const SortKey& b, bool is_falling) {
  if (a.kind != b.kind) {
    const bool are_numbers = a.kind <= SortKey::kNan && b.kind <= SortKey::kNan;
    return are_numbers && is_falling ? a.kind > b.kind : a.kind < b.kind;
  }
  if (a.kind == SortKey::kNumber && a.number != b.number) {
    return is_falling ? a.number > b.number : a.number < b.number;
  }
  return is_falling ? b.text < a.text : a.text < b.text;
}

Status SortRows(const Table& table, std::string_view sort, Rows& rows) {
  if (sort.empty()) return {};
  if (sort == "level") {
    std::ranges::stable_sort(rows, std::greater<>(),
                             [&](uint32_t row) { return SeverityOf(table.Level(row)); });
    return {};
  }
  const bool is_falling = sort.starts_with('-');
  const auto column = ParseNatural(sort.substr(is_falling ? 1 : 0));
  if (!column || static_cast<size_t>(*column) >= table.columns().size()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("sort: expected level or a column from 0 to {}, got '{}'",
                             table.columns().size() - 1, sort.substr(0, 40)));
  }
  std::vector<SortKey> keys(table.rows());
  for (const uint32_t row : rows)
    keys[row] = KeyOfCell(table.Cell(row, static_cast<size_t>(*column)));
  std::ranges::stable_sort(
      rows, [&](uint32_t a, uint32_t b) { return StandsBefore(keys[a], keys[b], is_falling); });
  return {};
}

// One condition of the parameter `q`.
struct RowTerm {
  std::string word;  // without capital letters; empty: a level
  std::array<bool, kNodeLevels> levels{};
};

Result<std::vector<RowTerm>> TermsOf(std::string_view query) {
  constexpr std::string_view kLevel = "level:";
  std::vector<RowTerm> terms;
  for (const std::string_view part : SplitAt(query, ' ')) {
    if (part.empty()) continue;
    RowTerm& term = terms.emplace_back();
    if (!part.starts_with(kLevel)) {
      term.word = LowerCase(part);
      continue;
    }
    for (const std::string_view name : SplitAt(part.substr(kLevel.size()), ',')) {
      size_t level = 0;
      while (level < kNodeLevels && NodeLevelName(static_cast<NodeLevel>(level)) != name) ++level;
      if (level == kNodeLevels) {
        return Error(ErrorCode::kInvalidArgument,
                     fmt::format("q: '{}' is no level (expected error, warning, unmatched, pass or "
                                 "none)",
                                 name.substr(0, 40)));
      }
      term.levels[level] = true;
    }
  }
  return terms;
}

// By number of a text, whether the word is in it.
std::vector<bool> TextsWith(const std::string& word, const TextPool& texts) {
  std::vector<bool> has(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    has[i] = LowerCase(texts[i]).find(word) != std::string::npos;
  }
  return has;
}

void KeepRowsWith(const Table& table, const RowTerm& term, Rows& rows) {
  if (term.word.empty()) {
    std::erase_if(
        rows, [&](uint32_t row) { return !term.levels[static_cast<size_t>(table.Level(row))]; });
    return;
  }
  const std::vector<bool> has = TextsWith(term.word, table.texts());
  std::erase_if(rows, [&](uint32_t row) {
    return std::ranges::none_of(table.Cells(row), [&](uint32_t text) { return has[text]; });
  });
}

bool IsBad(NodeLevel level) { return level == NodeLevel::kError || level == NodeLevel::kWarning; }

// Position of the first error in the rows; of the first warning where there is none; -1.
int64_t FirstBad(const Table& table, const Rows& rows) {
  int64_t first = -1;
  for (size_t i = 0; i < rows.size(); ++i) {
    const NodeLevel level = table.Level(rows[i]);
    if (level == NodeLevel::kError) return static_cast<int64_t>(i);
    if (first < 0 && IsBad(level)) first = static_cast<int64_t>(i);
  }
  return first;
}

// Position of the row of what the comparison called first, or of its call; -1: it named none. Where
// these rows are left out, or nothing tells, the first bad one.
int64_t FirstOf(const Table& table, const Rows& rows, const std::optional<TableAnswer>& answer) {
  if (!answer) return FirstBad(table, rows);
  if (answer->call.empty()) return -1;
  const auto& columns = table.columns();
  const auto column_of = [&](std::string_view name) {
    return static_cast<size_t>(std::ranges::find(columns, name) - columns.begin());
  };
  const size_t step = column_of("step"), rank = column_of("rank");
  const bool is_of_ranks = answer->rank >= 0 && rank < columns.size();
  int64_t of_call = -1;
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint32_t row = rows[i];
    const bool is_rank =
        is_of_ranks && table.Cell(row, rank) == std::to_string(answer->rank) &&
        (step == columns.size() || table.Cell(row, step) == std::to_string(answer->step));
    if (is_rank || (!is_of_ranks && table.NameOf(row) == answer->item)) {
      return static_cast<int64_t>(i);
    }
    if (of_call < 0 && table.CallOf(row) == answer->call) of_call = static_cast<int64_t>(i);
  }
  return of_call < 0 ? FirstBad(table, rows) : of_call;
}

std::array<uint64_t, kNodeLevels> CountsOf(const Table& table) {
  std::array<uint64_t, kNodeLevels> counts{};
  for (size_t row = 0; row < table.rows(); ++row) ++counts[static_cast<size_t>(table.Level(row))];
  return counts;
}

std::string ShownCell(std::string_view cell) {
  if (cell.size() <= kMostOfCell) return std::string(cell);
  return std::string(Utf8Beginning(cell, kMostOfCell)) + "…";
}

// [number in the file, level, call, [cells]]
void AddRow(const Table& table, size_t row, bool is_whole, JsonAnswer& out) {
  out.Open('[').Integer(row).Text(NodeLevelName(table.Level(row))).Text(table.CallOf(row));
  out.Open('[');
  for (size_t column = 0; column < table.columns().size(); ++column) {
    const std::string_view cell = table.Cell(row, column);
    out.Text(is_whole ? std::string(cell) : ShownCell(cell));
  }
  out.Close(']').Close(']');
}

}  // namespace

struct TableSet::Shown {
  size_t part = 0;
  std::shared_ptr<const Table> table;
  std::shared_ptr<const Rows> rows;
};

Result<std::shared_ptr<const TableSet>> TableSet::Open(const std::string& path) {
  PL_TRY_ASSIGN(std::vector<TableFile> files, FindTables(path));
  auto set = std::make_shared<const TableSet>(std::move(files));
  PL_TRY(set->TableAt(0));
  return set;
}

Result<std::shared_ptr<const Table>> TableSet::TableAt(size_t part) const {
  const std::string& path = files_[part].path;
  if (auto kept = tables_.Find<Table>(path)) return kept;
  PL_TRY_ASSIGN(std::shared_ptr<const Table> table, Table::Read(path));
  tables_.Keep(path, table);
  return table;
}

Result<TableSet::Shown> TableSet::Find(const Parameters& parameters) const {
  Shown shown;
  const auto last = static_cast<int64_t>(files_.size()) - 1;
  PL_TRY_ASSIGN(const int64_t part, parameters.Number("part", 0, 0, last));
  shown.part = static_cast<size_t>(part);
  PL_TRY_ASSIGN(shown.table, TableAt(shown.part));
  const std::string_view query = parameters.Text("q"), sort = parameters.Text("sort");
  const std::string key = fmt::format("{}\n{}\n{}", part, sort, query);
  shown.rows = orders_.Find<Rows>(key);
  if (shown.rows) return shown;
  PL_TRY_ASSIGN(const std::vector<RowTerm> terms, TermsOf(query));
  Rows rows(shown.table->rows());
  std::iota(rows.begin(), rows.end(), 0U);
  for (const RowTerm& term : terms) KeepRowsWith(*shown.table, term, rows);
  PL_TRY(SortRows(*shown.table, sort, rows));
  shown.rows = std::make_shared<const Rows>(std::move(rows));
  orders_.Keep(key, shown.rows);
  return shown;
}

Result<std::string> TableSet::Answer(std::string_view question,
                                     const Parameters& parameters) const {
  const bool is_row = question == "table/row";
  if (question != "table" && !is_row) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: there is no such question about a table", question));
  }
  PL_TRY_ASSIGN(const Shown shown, Find(parameters));
  const Table& table = *shown.table;
  const auto all = static_cast<int64_t>(table.rows());
  PL_TRY_ASSIGN(const int64_t row, parameters.Number("row", 0, 0, std::max<int64_t>(0, all - 1)));
  PL_TRY_ASSIGN(const int64_t offset, parameters.Number("offset", 0, 0, INT32_MAX));
  PL_TRY_ASSIGN(const int64_t limit, parameters.Number("limit", kUsualRows, 1, kMostRows));
  JsonAnswer out;
  out.Open('{').Key("columns").Put(table.columns());
  if (!is_row) AddFacts(shown, out);
  out.Key("rows").Open('[');
  if (is_row) {
    if (all > 0) AddRow(table, static_cast<size_t>(row), true, out);
  } else {
    const auto end = std::min(static_cast<int64_t>(shown.rows->size()), offset + limit);
    for (int64_t i = offset; i < end; ++i) {
      AddRow(table, (*shown.rows)[static_cast<size_t>(i)], false, out);
    }
  }
  out.Close(']').Close('}');
  return out.Take();
}

void TableSet::AddFacts(const Shown& shown, JsonAnswer& out) const {
  out.Key("parts").Open('[');
  for (const TableFile& file : files_) out.Text(file.name);
  out.Close(']').Key("part").Integer(shown.part);
  out.Key("all").Integer(shown.table->rows()).Key("total").Integer(shown.rows->size());
  out.Key("counts").Open('{');
  const auto counts = CountsOf(*shown.table);
  for (size_t level = 0; level < kNodeLevels; ++level) {
    out.Key(NodeLevelName(static_cast<NodeLevel>(level))).Integer(counts[level]);
  }
  const auto answer = AnswerBeside(files_[shown.part].path);
  out.Close('}').Key("first").Integer(FirstOf(*shown.table, *shown.rows, answer));
  out.Key("recordings");
  const auto recordings = RecordingsOf(files_[shown.part].path);
  if (!recordings) {
    out.Null();
    return;
  }
  out.Open('{').Key("target").Text(recordings->target).Key("golden").Text(recordings->golden);
  out.Key("step").Integer(recordings->step).Key("rank").Integer(recordings->rank).Close('}');
}

Status TableSet::VisitRows(const Parameters& parameters, const TakeCells& take) const {
  PL_TRY_ASSIGN(const Shown shown, Find(parameters));
  const Table& table = *shown.table;
  std::vector<std::string_view> cells(table.columns().begin(), table.columns().end());
  PL_TRY(take(cells));
  for (const uint32_t row : *shown.rows) {
    for (size_t column = 0; column < cells.size(); ++column)
      cells[column] = table.Cell(row, column);
    PL_TRY(take(cells));
  }
  return {};
}

std::string TableSet::Summary() const {
  const auto table = TableAt(0);
  if (!table) return {};
  Rows rows((*table)->rows());
  std::iota(rows.begin(), rows.end(), 0);
  const auto counts = CountsOf(**table);
  std::string text = CountText(rows.size(), "row");
  const char* mark = ": ";
  for (const NodeLevel level : {NodeLevel::kError, NodeLevel::kWarning, NodeLevel::kUnmatched}) {
    if (counts[static_cast<size_t>(level)] == 0) continue;
    text += fmt::format("{}{} {}", mark, counts[static_cast<size_t>(level)], NodeLevelName(level));
    mark = ", ";
  }
  if (const auto answer = AnswerBeside(files_[0].path)) {
    text += "; " + answer->text;
  } else {
    const int64_t first = FirstBad(**table, rows);
    const std::string_view call = first < 0 ? "" : (*table)->CallOf(static_cast<size_t>(first));
    if (!call.empty()) text += fmt::format("; first row that is not good: {}", call);
  }
  if (files_.size() > 1)
    text += fmt::format(" (of {}, the first of {} tables)", files_[0].name, files_.size());
  return text;
}

}  // namespace plumbline::view
