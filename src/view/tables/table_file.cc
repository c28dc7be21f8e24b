#include "view/tables/table_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/text/csv.h"
#include "base/text/json.h"
#include "base/text/text_parts.h"
#include "formats/table/xlsx.h"
#include "plumbline/compare.h"
#include "record/run_files.h"
#include "tree/compare_trees.h"
#include "view/store/place_data.h"

namespace plumbline::view {
namespace {

constexpr std::string_view kRanksStart = "compare_ranks_", kResultStart = "compare_result_";
// JSON whose form is known (docs/reference/overflow.md, compare-ranks.md).
constexpr std::array<std::string_view, 4> kJsonStarts = {"anomaly_analyze_", "overflow_trace_",
                                                         "overflow_levels_", kRanksStart};
constexpr size_t kMostTables = 2000;
// What stands in front of the rows in the machine form of a comparison.
constexpr size_t kHeadOfResult = size_t{1} << 20;
// Columns that say how a row came out, the product's own first; of a row the first one that says
// anything counts, of the two directions of a pre-check the worse one.
constexpr std::array<std::string_view, 5> kResultColumns = {"Verdict", "Accuracy Reached or Not",
                                                            "Result", "Status", "state"};
constexpr std::array<std::string_view, 2> kDirectionColumns = {"Forward Test Success",
                                                               "Backward Test Success"};
constexpr std::array<std::string_view, 4> kNameColumns = {"NPU Name", "Target Name", "op_name",
                                                          "API Name"};

// The level that a word of a result stands for, whoever wrote it; kNone for all others.
NodeLevel LevelOfWord(std::string_view cell) {
  static constexpr std::pair<std::string_view, NodeLevel> kWords[] = {
      {"pass", NodeLevel::kPass},           {"yes", NodeLevel::kPass},
      {"same", NodeLevel::kPass},           {"normal", NodeLevel::kPass},
      {"warning", NodeLevel::kWarning},     {"medium", NodeLevel::kWarning},
      {"error", NodeLevel::kError},         {"no", NodeLevel::kError},
      {"different", NodeLevel::kError},     {"abnormal", NodeLevel::kError},
      {"high", NodeLevel::kError},          {"critical", NodeLevel::kError},
      {"failed", NodeLevel::kError},        {"overflow", NodeLevel::kError},
      {"unmatched", NodeLevel::kUnmatched}, {"missing", NodeLevel::kUnmatched}};
  const std::string word = LowerCase(Trimmed(cell));
  if (const auto verdict = VerdictNamed(word)) return NodeLevelOf(tree::LevelOf(*verdict));
  const auto known = std::ranges::find(kWords, word, [](const auto& pair) { return pair.first; });
  return known == std::end(kWords) ? NodeLevel::kNone : known->second;
}

bool IsUnderJsonName(std::string_view name) {
  return name.ends_with(".json") &&
         std::ranges::any_of(kJsonStarts, [&](auto start) { return name.starts_with(start); });
}

// The JSON of one comparison, whose rows stand in the table beside it.
bool IsResultJsonName(std::string_view name) {
  return name.ends_with(".json") && name.find(kResultStart) != name.npos;
}

std::string WithoutEnding(const std::string& path) { return path.substr(0, path.rfind('.')); }

// Numbers in names count as numbers: rank2 stands before rank10.
bool NameStandsBefore(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const size_t of_a = a.find_first_not_of("0123456789"), of_b = b.find_first_not_of("0123456789");
    const std::string_view number_a = a.substr(0, of_a), number_b = b.substr(0, of_b);
    if (!number_a.empty() && !number_b.empty()) {
      if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
      if (number_a != number_b) return number_a < number_b;
      a.remove_prefix(number_a.size());
      b.remove_prefix(number_b.size());
    } else if (a.front() != b.front()) {
      return a.front() < b.front();
    } else {
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

void AddTablesIn(const std::string& directory, std::string_view below, int depth,
                 std::vector<TableFile>& tables) {
  const auto entries = ListEntries(directory);
  if (!entries) return;
  for (const DirectoryEntry& entry : *entries) {
    if (entry.name.starts_with('.') || tables.size() >= kMostTables) continue;
    const std::string path = JoinPath(directory, entry.name);
    std::string name = std::string(below) + entry.name;
    if (entry.kind == PathKind::kDirectory && depth > 0) {
      AddTablesIn(path, name + "/", depth - 1, tables);
    } else if (entry.kind == PathKind::kFile && IsTableName(entry.name)) {
      const std::string csv = WithoutEnding(path) + ".csv";
      if (IsResultJsonName(entry.name)) continue;
      if (path.ends_with(".xlsx") && KindOf(csv) == PathKind::kFile) continue;
      tables.push_back({path, std::move(name)});
    }
  }
}

// Members of a JSON object, those of objects in it as "evidence.path"; lists as they stand.
using JsonRow = std::vector<std::pair<std::string, std::string>>;

bool ReadJsonRow(std::string_view text, const std::string& start, json::Reader& in, JsonRow& row) {
  std::string_view key, value;
  if (!in.EnterObject()) return false;
  while (in.NextMember(key)) {
    std::string name = start + std::string(key);
    const json::Kind kind = in.Peek();
    if (kind == json::Kind::kObject && start.empty() && key != "data_info") {
      if (!ReadJsonRow(text, name + ".", in, row)) return false;
    } else if (kind == json::Kind::kString) {
      if (!in.ReadString(value)) return false;
      row.emplace_back(std::move(name), value);
    } else {
      const size_t begin = in.offset();
      if (!in.SkipValue()) return false;
      const std::string_view spelled =
          Trimmed(text.substr(begin, in.offset() - begin), " ,:\n\r\t");
      row.emplace_back(std::move(name), kind == json::Kind::kNull ? std::string_view() : spelled);
    }
  }
  return !in.failed();
}

}  // namespace

// Puts rows into a table.
class TableReader {
 public:
  explicit TableReader(Table& table) : table_(table) {}

  Status ReadCsv(const std::string& path) {
    PL_TRY(csv::VisitRows(path, [&](csv::Row& row) -> Status {
      if (row.empty()) return {};
      const auto is_binary = [](const std::string& cell) { return cell.find('\0') != cell.npos; };
      if (std::ranges::any_of(row, is_binary)) {
        return Error(
            ErrorCode::kUnsupported,
            fmt::format("{}: is no table (it holds bytes that are no text; expected UTF-8)", path));
      }
      if (table_.columns_.empty()) {
        SetHeader(row);
      } else {
        while (row.size() > table_.columns_.size() && row.back().empty()) row.pop_back();
        AddNamelessColumns(row.size());
        AddRow(row);
      }
      return {};
    }));
    return {};
  }

  Status ReadWorkbook(const std::string& path) {
    std::optional<size_t> current;
    std::vector<size_t> places;
    size_t sheet_column = SIZE_MAX;
    return xlsx::ReadRows(path, [&](size_t sheet, std::span<const xlsx::Cell> cells) {
      if (current != sheet) {
        current = sheet;
        places.clear();
        const size_t before = table_.columns_.size();
        for (const xlsx::Cell& cell : cells) places.push_back(PlaceOf(cell.text));
        if (before > 0 && table_.columns_.size() > before) sheet_column = PlaceOf("sheet");
        return true;
      }
      while (cells.size() > places.size() && cells.back().text.empty()) {
        cells = cells.first(cells.size() - 1);
      }
      while (places.size() < cells.size()) {
        places.push_back(table_.columns_.size());
        AddNamelessColumns(table_.columns_.size() + 1);
      }
      std::vector<std::string> row(table_.columns_.size());
      for (size_t i = 0; i < cells.size(); ++i) {
        row[places[i]] = cells[i].text;
      }
      if (sheet_column != SIZE_MAX) row[sheet_column] = std::to_string(sheet + 1);
      AddRow(row);
      return true;
    });
  }

  Status ReadJson(const std::string& path) {
    PL_TRY_ASSIGN(const std::string text, ReadFile(path));
    rows_member_ = BaseName(path).starts_with(kRanksStart) ? "ranks" : "origins";
    json::Reader in(text);
    std::string_view member;
    if (in.EnterObject()) {
      while (in.NextMember(member)) {
        const std::string key(member);
        if (!ReadMember(text, key, in)) break;
      }
    }
    if (in.failed()) return in.error().In(path);
    return {};
  }

  Status Finish(const std::string& path) {
    if (table_.columns_.empty()) {
      return Error(ErrorCode::kUnsupported, fmt::format("{}: is no table (no header)", path));
    }
    for (const std::string_view name : kNameColumns) {
      const size_t column = ColumnOf(name);
      if (column != SIZE_MAX && table_.name_column_ == SIZE_MAX) table_.name_column_ = column;
    }
    const std::vector<size_t> directions = ColumnsOf(kDirectionColumns);
    const std::vector<size_t> results = ColumnsOf(kResultColumns);
    for (size_t row = 0; row < table_.rows(); ++row) {
      if (table_.levels_[row] != NodeLevel::kNone) continue;
      table_.levels_[row] = LevelOfRow(row, directions, results);
    }
    return {};
  }

 private:
  [[nodiscard]] size_t ColumnOf(std::string_view name) const {
    const auto found = std::ranges::find(table_.columns_, name);
    return found == table_.columns_.end() ? SIZE_MAX
                                          : static_cast<size_t>(found - table_.columns_.begin());
  }
  size_t PlaceOf(const std::string& name) {
    const size_t known = ColumnOf(name);
    if (known != SIZE_MAX) return known;
    table_.columns_.push_back(name);
    return table_.columns_.size() - 1;
  }

  // For cells beyond the header.
  void AddNamelessColumns(size_t columns) {
    table_.columns_.resize(std::max(columns, table_.columns_.size()));
  }

  void SetHeader(const csv::Row& header) {
    table_.columns_.assign(header.begin(), header.end());
    for (std::string& name : table_.columns_) name = Trimmed(name);
  }

  void AddRow(std::span<const std::string> cells, NodeLevel level = NodeLevel::kNone) {
    for (const std::string& cell : cells) table_.cells_.push_back(table_.texts_.Add(cell));
    table_.first_cell_.push_back(table_.cells_.size());
    table_.levels_.push_back(level);
  }

  void AddJsonRow(const JsonRow& members, NodeLevel level) {
    std::vector<std::string> row(table_.columns_.size());
    for (const auto& [name, value] : members) {
      const size_t place = PlaceOf(name);
      if (row.size() <= place) row.resize(place + 1);
      row[place] = value;
    }
    AddRow(row, level);
  }

  // Lists of origins by rank, or of all; ranks of a comparison; calls with a level of overflow.
  bool ReadMember(std::string_view text, const std::string& key, json::Reader& in) {
    const bool is_list = in.Peek() == json::Kind::kArray;
    const bool is_of_rank = key.starts_with("rank_");
    if (is_list && (is_of_rank || key == rows_member_)) {
      return ReadRows(text, is_of_rank ? key : "", in);
    }
    if (is_list && key == "steps") return ReadSteps(in);
    return in.SkipValue();
  }

  bool ReadRows(std::string_view text, const std::string& rank, json::Reader& in) {
    if (!in.EnterArray()) return false;
    while (in.NextElement()) {
      JsonRow row;
      if (!rank.empty()) row.emplace_back("rank", rank);
      if (!ReadJsonRow(text, "", in, row)) return false;
      AddJsonRow(row, LevelOfMembers(row));
    }
    return !in.failed();
  }

  // An origin of NaN or infinities is an error unless it is a mask or without effect; a rank that
  // was compared is as bad as its calls.
  static NodeLevel LevelOfMembers(const JsonRow& row) {
    const auto is = [&](std::string_view name, std::string_view value) {
      return std::ranges::any_of(
          row, [&](const auto& member) { return member.first == name && member.second == value; });
    };
    const auto has = [&](std::string_view name) {
      return std::ranges::any_of(row, [&](const auto& member) { return member.first == name; });
    };
    if (has("op_name")) return is("minor", "true") ? NodeLevel::kWarning : NodeLevel::kError;
    if (!has("wrong_calls")) return NodeLevel::kNone;
    if (!is("wrong_calls", "0")) return NodeLevel::kError;
    return is("complete", "true") ? NodeLevel::kPass : NodeLevel::kNone;
  }

  // overflow_levels: steps -> ranks -> calls and their levels.
  bool ReadSteps(json::Reader& in) {
    std::string_view key, value;
    if (!in.EnterArray()) return false;
    while (in.NextElement()) {
      std::string step;
      if (!in.EnterObject()) return false;
      while (in.NextMember(key)) {
        if (key == "step" && in.Peek() == json::Kind::kString) {
          if (!in.ReadString(value)) return false;
          step = value;
        } else if (key != "ranks" || in.Peek() != json::Kind::kObject) {
          if (!in.SkipValue()) return false;
        } else if (!ReadRanks(step, in)) {
          return false;
        }
      }
    }
    return !in.failed();
  }

  bool ReadRanks(const std::string& step, json::Reader& in) {
    std::string_view key;
    if (!in.EnterObject()) return false;
    while (in.NextMember(key)) {
      const std::string rank(key);
      if (!in.EnterObject()) return false;
      while (in.NextMember(key)) {
        const bool is_levels = key == "overflow_level" && in.Peek() == json::Kind::kObject;
        if (is_levels ? !ReadLevels(step, rank, in) : !in.SkipValue()) return false;
      }
    }
    return !in.failed();
  }

  bool ReadLevels(const std::string& step, const std::string& rank, json::Reader& in) {
    std::string_view key, level;
    if (!in.EnterObject()) return false;
    while (in.NextMember(key)) {
      JsonRow row = {{"step", step}, {"rank", rank}, {"op_name", std::string(key)}};
      if (!in.ReadString(level)) return false;
      row.emplace_back("level", level);
      AddJsonRow(row, LevelOfWord(level));
    }
    return !in.failed();
  }

  [[nodiscard]] std::vector<size_t> ColumnsOf(std::span<const std::string_view> names) const {
    std::vector<size_t> columns;
    for (const std::string_view name : names) {
      if (const size_t column = ColumnOf(name); column != SIZE_MAX) columns.push_back(column);
    }
    return columns;
  }

  [[nodiscard]] NodeLevel LevelOfRow(size_t row, std::span<const size_t> directions,
                                     std::span<const size_t> results) const {
    NodeLevel worst = NodeLevel::kNone;
    for (const size_t column : directions) {
      const NodeLevel level = LevelOfWord(table_.Cell(row, column));
      if (SeverityOf(level) > SeverityOf(worst)) worst = level;
    }
    for (const size_t column : results) {
      if (worst != NodeLevel::kNone) break;
      worst = LevelOfWord(table_.Cell(row, column));
    }
    return worst;
  }

  Table& table_;
  std::string_view rows_member_;  // of a JSON object: the list with the rows
};

bool IsTableName(std::string_view name) {
  return name.ends_with(".csv") || name.ends_with(".xlsx") || IsUnderJsonName(name) ||
         IsResultJsonName(name);
}

Result<std::vector<TableFile>> FindTables(const std::string& path) {
  if (KindOf(path) == PathKind::kFile) {
    if (!IsResultJsonName(BaseName(path))) {
      return std::vector<TableFile>{{path, std::string(BaseName(path))}};
    }
    for (const std::string_view ending : {".csv", ".xlsx"}) {
      const std::string table = WithoutEnding(path) + std::string(ending);
      if (KindOf(table) != PathKind::kFile) continue;
      return std::vector<TableFile>{{table, std::string(BaseName(table))}};
    }
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: the table of this comparison is not beside it (expected the same "
                             "name with .csv or .xlsx)",
                             path));
  }
  std::vector<TableFile> tables;
  AddTablesIn(path, "", 1, tables);
  std::ranges::stable_sort(tables, [](const TableFile& a, const TableFile& b) {
    const bool a_first = a.name.starts_with(kRanksStart), b_first = b.name.starts_with(kRanksStart);
    return a_first != b_first ? a_first : NameStandsBefore(a.name, b.name);
  });
  if (!tables.empty()) return tables;
  return Error(ErrorCode::kNotFound, fmt::format("{}: holds no table (.csv, .xlsx)", path));
}

namespace {

// What stands in front of the rows in a JSON object of ours.
struct ResultHead {
  std::map<std::string, std::string, std::less<>> texts;
  bool has_answer = false, is_complete = false;
  int64_t good_rows = 0;
  TableAnswer answer;
};

bool ReadFirstWrong(json::Reader& in, TableAnswer& answer) {
  std::string_view key, value;
  if (!in.EnterObject()) return false;
  while (in.NextMember(key)) {
    std::string* const text = key == "name" ? &answer.call : key == "item" ? &answer.item : nullptr;
    int64_t* const number = key == "step" ? &answer.step : key == "rank" ? &answer.rank : nullptr;
    if (text != nullptr && in.Peek() == json::Kind::kString) {
      if (!in.ReadString(value)) return false;
      *text = value;
    } else if (number != nullptr && in.Peek() == json::Kind::kNumber) {
      json::Number read;
      if (!in.ReadNumber(read)) return false;
      if (const auto* whole = std::get_if<int64_t>(&read)) *number = *whole;
    } else if (!in.SkipValue()) {
      return false;
    }
  }
  return !in.failed();
}

// Of the counts those of rows that agree.
bool ReadGoodRows(json::Reader& in, int64_t& rows) {
  std::string_view key;
  json::Number number;
  if (!in.EnterObject()) return false;
  while (in.NextMember(key)) {
    const bool is_good =
        key == VerdictName(Verdict::kSame) || key == VerdictName(Verdict::kWithinNoise);
    if (!is_good || in.Peek() != json::Kind::kNumber) {
      if (!in.SkipValue()) return false;
      continue;
    }
    if (!in.ReadNumber(number)) return false;
    if (const auto* whole = std::get_if<int64_t>(&number)) rows += *whole;
  }
  return !in.failed();
}

ResultHead ReadHead(const std::string& path) {
  ResultHead head;
  const Result<std::string> text = ReadStart(path, kHeadOfResult);
  if (!text) return head;
  json::Reader in(*text);
  std::string_view name, value;
  if (!in.EnterObject()) return head;
  while (in.NextMember(name)) {
    const std::string key(name);
    const json::Kind kind = in.Peek();
    if (key == "rows" || key == "ranks") break;
    if (key == "first_wrong_call") head.has_answer = true;
    if (key == "first_wrong_call" && kind == json::Kind::kObject) {
      if (!ReadFirstWrong(in, head.answer)) break;
    } else if (key == "counts" && kind == json::Kind::kObject) {
      if (!ReadGoodRows(in, head.good_rows)) break;
    } else if (kind == json::Kind::kString) {
      if (!in.ReadString(value)) break;
      head.texts[key] = value;
    } else if (key == "complete" && kind == json::Kind::kBool) {
      if (!in.ReadBool(head.is_complete)) break;
    } else if (!in.SkipValue()) {
      break;
    }
  }
  return head;
}

// The paths in the head of a JSON object of ours.
bool ReadPaths(const std::string& path, TableRecordings& found) {
  ResultHead head = ReadHead(path);
  found.target = std::move(head.texts["target"]);
  found.golden = std::move(head.texts["golden"]);
  return !found.target.empty() && !found.golden.empty();
}

// The newest compare_ranks_<time>.json of a directory; empty: none.
std::string NewestSummaryIn(const std::string& directory) {
  std::string newest;
  for (const std::string& name : ListDirectory(directory).value_or(std::vector<std::string>())) {
    if (name.starts_with(kRanksStart) && name.ends_with(".json")) newest = std::max(newest, name);
  }
  return newest.empty() ? newest : JoinPath(directory, newest);
}

}  // namespace

std::optional<TableRecordings> RecordingsOf(const std::string& path) {
  TableRecordings found;
  const std::string_view name = BaseName(path);
  const std::string directory(DirectoryOf(path));
  const bool is_summary = name.starts_with(kRanksStart);
  if (!is_summary && name.find(kResultStart) == name.npos) return std::nullopt;
  const std::string stem = WithoutEnding(path);
  found.step = NaturalAfter("step", BaseName(directory)).value_or(-1);
  std::string_view rank = name;
  if (rank.starts_with("compare_result_rank")) {
    rank.remove_prefix(std::string_view("compare_result_rank").size());
    found.rank = ParseNatural(rank.substr(0, rank.find_first_not_of("0123456789"))).value_or(-1);
  }
  const std::string sources[] = {NewestSummaryIn(directory),
                                 NewestSummaryIn(std::string(DirectoryOf(directory))),
                                 stem + ".json"};
  for (const std::string& source : sources) {
    // Without ranks the table is of the pair that its own JSON names.
    const bool is_own = source == sources[2];
    if (source.empty() || (!is_own && !is_summary && found.rank < 0)) continue;
    if (!ReadPaths(source, found)) continue;
    for (std::string* path_of_side : {&found.target, &found.golden}) {
      if (BaseName(*path_of_side) == run_files::kDumpJson) {
        *path_of_side = std::string(DirectoryOf(*path_of_side));
      }
    }
    const bool are_there =
        KindOf(found.target) != PathKind::kMissing && KindOf(found.golden) != PathKind::kMissing;
    return are_there ? std::optional(found) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<TableAnswer> AnswerBeside(const std::string& path) {
  const std::string_view name = BaseName(path);
  const bool is_summary = name.starts_with(kRanksStart) && name.ends_with(".json");
  if (!is_summary && name.find(kResultStart) == name.npos) return std::nullopt;
  ResultHead head = ReadHead(is_summary ? path : WithoutEnding(path) + ".json");
  if (!head.has_answer || !head.texts["format"].starts_with("plumbline compare")) {
    return std::nullopt;
  }
  std::string& text = head.answer.text = head.texts["answer"];
  if (!text.empty()) return std::move(head.answer);
  const std::string &narrowed = head.texts["narrowed"], &other_way = head.texts["other_way"];
  if (!head.answer.call.empty()) {
    text = "first wrong call: " + head.answer.call;
  } else if (head.good_rows == 0) {
    text = "not judged";
  } else {
    if (!narrowed.empty()) text = fmt::format("narrowed: {}; ", narrowed);
    if (head.is_complete && !other_way.empty()) {
      text += fmt::format("same results by another way: {}; ", other_way);
    }
    text += head.is_complete ? "no wrong call" : "not judged completely";
  }
  return std::move(head.answer);
}

std::string_view Table::NameOf(size_t row) const {
  return name_column_ == SIZE_MAX ? std::string_view() : Trimmed(Cell(row, name_column_));
}

std::string_view Table::CallOf(size_t row) const {
  const std::string_view name = NameOf(row);
  for (const std::string_view word : {".forward", ".backward", ".parameters_grad"}) {
    const size_t at = name.rfind(word);
    if (at == name.npos) continue;
    // A module's call has its number behind the direction.
    size_t end = at + word.size();
    const std::string_view rest = name.substr(end);
    const size_t digits = rest.starts_with('.') ? rest.find_first_not_of("0123456789", 1) : 0;
    const size_t number = digits == rest.npos ? rest.size() : digits;
    if (number > 1 && (number == rest.size() || rest[number] == '.')) end += number;
    return name.substr(0, end);
  }
  return name;
}

Result<std::shared_ptr<const Table>> Table::Read(const std::string& path) {
  const auto table = std::make_shared<Table>();
  TableReader reader(*table);
  PL_TRY(path.ends_with(".xlsx")   ? reader.ReadWorkbook(path)
         : path.ends_with(".json") ? reader.ReadJson(path)
                                   : reader.ReadCsv(path));
  PL_TRY(reader.Finish(path));
  return std::shared_ptr<const Table>(table);
}

}  // namespace plumbline::view
