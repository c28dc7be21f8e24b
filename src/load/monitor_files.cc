#include "load/monitor_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "base/file/file.h"
#include "base/text/csv.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/sqlite/sqlite_table.h"
#include "formats/table/monitor_kinds.h"
#include "formats/table/monitor_trend.h"

namespace plumbline::load {
namespace {

// ---- Rows of a file ----

// How the columns of a header are to be read.
struct Layout {
  size_t name = 0, step = 0;
  std::optional<size_t> vpp_stage, micro_step, scope;
  std::vector<std::string> statistics;
  std::vector<size_t> columns;  // where they stand; as many for each of `parts`
  // MindSpore of 1.2.2 has the input and the output of a module in one row: ".input", ".output".
  std::vector<std::string> parts;
};

std::optional<size_t> ColumnOf(const csv::Row& header, std::string_view name) {
  const auto found = std::ranges::find(header, name);
  if (found == header.end()) return std::nullopt;
  return static_cast<size_t>(found - header.begin());
}

// "input.norm" -> ".input", "norm"; of gradients, which other files name by the tensor, too.
std::optional<std::pair<std::string, std::string>> PartOf(std::string_view column) {
  const size_t dot = column.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view part = column.substr(0, dot);
  const bool is_input = part == "input" || part == "input_grad";
  if (!is_input && part != "output" && part != "output_grad") return std::nullopt;
  return std::pair(std::string(is_input ? ".input" : ".output"),
                   std::string(column.substr(dot + 1)));
}

void TakeStatistics(const csv::Row& header, const std::vector<bool>& is_key, Layout& layout) {
  for (size_t i = 0; i < header.size(); ++i) {
    if (is_key[i]) continue;
    const auto part = PartOf(header[i]);
    if (part && (layout.parts.empty() || layout.parts.back() != part->first)) {
      layout.parts.push_back(part->first);
    }
    if (!part || layout.parts.size() == 1) {
      layout.statistics.push_back(part ? part->second : header[i]);
    }
    layout.columns.push_back(i);
  }
}

Result<Layout> LayoutOf(const csv::Row& header) {
  Layout layout;
  std::vector<bool> is_key(header.size());
  std::optional<size_t> name, step = ColumnOf(header, "step");
  for (const std::string_view word : {"name", "module_name", "param_name"}) {
    if (!name) name = ColumnOf(header, word);
  }
  if (!name || !step) {
    return Error(ErrorCode::kCorrupt,
                 "the first line is no header of a monitor (expected columns name and step)");
  }
  layout.name = *name;
  layout.step = *step;
  layout.vpp_stage = ColumnOf(header, "vpp_stage");
  layout.micro_step = ColumnOf(header, "micro_step");
  layout.scope = ColumnOf(header, "scope");
  for (const auto& column : {name, step, layout.vpp_stage, layout.micro_step, layout.scope}) {
    if (column) is_key[*column] = true;
  }
  TakeStatistics(header, is_key, layout);
  const size_t parts = std::max<size_t>(1, layout.parts.size());
  if (layout.columns.size() != parts * layout.statistics.size()) {
    return Error(ErrorCode::kCorrupt, "the columns of its parts are not the same statistics");
  }
  return layout;
}

// "1" and "1.0", as tables write whole numbers.
std::optional<int64_t> WholeNumber(std::string_view text) {
  if (text.ends_with(".0")) text.remove_suffix(2);
  return ParseNatural(text);
}

// As Python reads it: with blanks around it, and infinite beyond the range of double.
std::optional<double> RealOf(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  const auto value = ParseReal(text);
  if (value || text.find_first_not_of("+-.eE0123456789") != std::string_view::npos) return value;
  const std::string number(text);
  char* end = nullptr;
  errno = 0;
  const double read = std::strtod(number.c_str(), &end);
  const bool is_whole = !number.empty() && end == number.c_str() + number.size();
  return is_whole && errno == ERANGE ? std::optional(read) : std::nullopt;
}

// Takes "0:" away, and ".exp_avg" of a row that is called so.
std::string NameWithoutParts(std::string_view name, std::string_view scope) {
  const size_t colon = name.find(':');
  if (colon != std::string_view::npos && ParseNatural(name.substr(0, colon))) {
    name.remove_prefix(colon + 1);
  }
  const bool ends_so = name.size() > scope.size() && name.ends_with(scope) &&
                       name[name.size() - scope.size() - 1] == '.';
  if (ends_so) name.remove_suffix(scope.size() + 1);
  return std::string(name);
}

class FileReader {
 public:
  FileReader(std::string_view kind, const VisitMonitorRow& visit) : visit_(visit) {
    const MonitorKindInfo* info = MonitorKindOfFile(kind);
    if (info != nullptr) scope_ = info->scope;
  }

  Status Take(csv::Row& row) {
    ++line_;
    if (line_ == 1) {
      PL_TRY_ASSIGN(layout_, LayoutOf(row));
      width_ = row.size();
      return {};
    }
    if (row.empty()) return {};
    if (IsOfCommunication(row)) return TakeCommunication(row);
    return TakeRow(row);
  }

  MonitorFileFacts facts;

 private:
  Status LeaveOut(std::string problem) {
    if (facts.left_out++ == 0) {
      facts.first_left_out = fmt::format("line {}: {}", line_, problem);
    }
    return {};
  }

  Status Visit(MonitorRow& row) {
    ++facts.rows;
    return visit_(layout_.statistics, row);
  }

  Status TakeRow(const csv::Row& row) {
    if (row.size() != width_) {
      return LeaveOut(fmt::format("has {} cells (expected {})", row.size(), width_));
    }
    if (layout_.scope && row[*layout_.scope] != scope_) return {};
    MonitorRow out;
    const auto step = WholeNumber(row[layout_.step]);
    const auto stage = StageOf(row);
    const auto micro = MicroStepOf(row);
    if (!step || !stage || !micro) {
      return LeaveOut("its step, stage or micro step is no whole number from 0 on");
    }
    out.step = *step;
    out.vpp_stage = *stage;
    out.micro_step = *micro;
    out.name = layout_.scope ? NameWithoutParts(row[layout_.name], scope_) : row[layout_.name];
    if (layout_.parts.empty()) {
      SetValues(row, layout_.columns, out);
      return Visit(out);
    }
    TakeMicroStep(out);
    const std::string module = out.name;
    const size_t count = layout_.statistics.size();
    for (size_t i = 0; i < layout_.parts.size(); ++i) {
      out.name = module + layout_.parts[i];
      SetValues(row, std::span(layout_.columns).subspan(i * count, count), out);
      PL_TRY(Visit(out));
    }
    return {};
  }

  [[nodiscard]] std::optional<int64_t> StageOf(const csv::Row& row) const {
    if (!layout_.vpp_stage) return 0;
    const std::string& cell = row[*layout_.vpp_stage];
    const bool has_none = layout_.scope && (cell.empty() || cell == "-1");
    return has_none ? 0 : WholeNumber(cell);
  }

  // The second form counts from 1 on, and gives a sum the last one.
  [[nodiscard]] std::optional<int64_t> MicroStepOf(const csv::Row& row) const {
    if (!layout_.micro_step) return 0;
    const auto number = WholeNumber(row[*layout_.micro_step]);
    if (!layout_.scope || !number) return number;
    const bool is_sum = scope_ == InfoOf(MonitorKind::kReducedGradient).scope;
    return is_sum ? 0 : std::max<int64_t>(*number - 1, 0);
  }

  // "fc1_1" -> "fc1", micro step 1.
  static void TakeMicroStep(MonitorRow& row) {
    const size_t mark = row.name.rfind('_');
    if (mark == std::string::npos) return;
    const auto number = ParseNatural(std::string_view(row.name).substr(mark + 1));
    if (!number) return;
    row.micro_step = *number;
    row.name.resize(mark);
  }

  // `columns`: one for each statistic.
  void SetValues(const csv::Row& row, std::span<const size_t> columns, MonitorRow& out) {
    out.values.clear();
    for (size_t i = 0; i < columns.size(); ++i) {
      const std::string& cell = row[columns[i]];
      out.values.push_back(RealOf(cell));
      const std::string& statistic = layout_.statistics[i];
      const bool is_number = out.values.back() || cell.empty();
      if (is_number || statistic == "shape" || statistic == "dtype") continue;
      if (facts.odd_cells++ == 0) {
        facts.first_odd_cell = fmt::format("line {}: {} \"{}\"", line_, statistic,
                                           std::string_view(cell).substr(0, 80));
      }
    }
  }

  // {call},{first statistic},{step},{the others},{statistics of further tensors}...
  [[nodiscard]] bool IsOfCommunication(const csv::Row& row) const {
    const size_t count = layout_.statistics.size();
    return layout_.vpp_stage && layout_.parts.empty() && !layout_.micro_step && !layout_.scope &&
           count > 0 && !WholeNumber(row[0]) && row.size() > 2 && (row.size() - 2) % count == 0 &&
           WholeNumber(row[2]);
  }

  Status TakeCommunication(const csv::Row& row) {
    MonitorRow out;
    out.step = *WholeNumber(row[2]);
    std::vector<size_t> columns = {1};
    for (size_t i = 3; i < row.size(); ++i) columns.push_back(i);
    const size_t count = layout_.statistics.size();
    for (size_t first = 0; first < columns.size(); first += count) {
      out.name = fmt::format("{}.{}", row[0], first / count);
      SetValues(row, std::span(columns).subspan(first, count), out);
      PL_TRY(Visit(out));
    }
    return {};
  }

  const VisitMonitorRow& visit_;
  std::string_view scope_;
  Layout layout_;
  size_t width_ = 0;
  uint64_t line_ = 0;
};

// ---- Metrics of a database ----

// Of "{directory}/monitor_data.trend.db/actv": where the database ends; nothing for a csv file.
std::optional<size_t> EndOfDatabase(std::string_view path) {
  const size_t mark = path.rfind('/');
  if (mark == std::string_view::npos) return std::nullopt;
  const bool is_metric = path.substr(0, mark).ends_with(monitor_trend::kDatabase);
  return is_metric ? std::optional(mark) : std::nullopt;
}

std::string_view TextAt(const sqlite::Statement& statement, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), column));
  return text == nullptr ? std::string_view() : text;
}

Status ListMetrics(const std::string& database_path, std::vector<MonitorFile>* files) {
  if (KindOf(database_path) != PathKind::kFile) return {};
  PL_TRY_ASSIGN(auto database, sqlite::Database::OpenToRead(database_path));
  PL_TRY_ASSIGN(const auto select,
                database.Prepare("SELECT metric_name FROM monitoring_metrics ORDER BY 1"));
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(select.get())) == SQLITE_ROW) {
    const std::string metric(TextAt(select, 0));
    files->push_back({JoinPath(database_path, metric), metric, 0});
  }
  return database.Check(code);
}

class MetricReader {
 public:
  MetricReader(sqlite::Database database, std::string metric)
      : database_(std::move(database)), metric_(std::move(metric)) {}

  Result<MonitorFileFacts> Visit(const VisitMonitorRow& visit) {
    PL_TRY(FindStatistics());
    std::string columns;
    for (const std::string& name : statistics_) columns += ", d." + name;
    PL_TRY_ASSIGN(const auto select,
                  database_.Prepare(fmt::format(
                      "SELECT target_name, vpp_stage, micro_step, step{} FROM trend_data AS d JOIN "
                      "monitoring_targets USING (target_id) JOIN monitoring_metrics USING "
                      "(metric_id) WHERE metric_name = ? ORDER BY rank, step, target_id",
                      columns)));
    PL_TRY(database_.Check(sqlite::BindText(select.get(), 1, metric_)));
    MonitorFileFacts facts;
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(select.get())) == SQLITE_ROW) {
      MonitorRow row = RowOf(select);
      ++facts.rows;
      PL_TRY(visit(statistics_, row));
    }
    PL_TRY(database_.Check(code));
    return facts;
  }

 private:
  // Those that the database tells of the metric.
  Status FindStatistics() {
    PL_TRY_ASSIGN(const auto select,
                  database_.Prepare(fmt::format("SELECT \"{}\" FROM global_stats", metric_)));
    const int code = sqlite3_step(select.get());
    PL_TRY(database_.Check(code));
    const std::string_view text = code == SQLITE_ROW ? TextAt(select, 0) : std::string_view();
    for (const std::string_view name : SplitAt(text, ',')) {
      if (monitor_trend::IsStatistic(name)) statistics_.emplace_back(name);
    }
    return {};
  }

  [[nodiscard]] MonitorRow RowOf(const sqlite::Statement& select) const {
    constexpr int kFirst = 4;  // column of a statistic
    MonitorRow row;
    row.name = TextAt(select, 0);
    row.vpp_stage = sqlite3_column_int64(select.get(), 1);
    row.micro_step = sqlite3_column_int64(select.get(), 2);
    row.step = sqlite3_column_int64(select.get(), 3);
    for (int i = 0; i < static_cast<int>(statistics_.size()); ++i) {
      const bool is_null = sqlite3_column_type(select.get(), kFirst + i) == SQLITE_NULL;
      row.values.push_back(trend_db::NumberOf(
          is_null ? std::nullopt : std::optional(sqlite3_column_double(select.get(), kFirst + i))));
    }
    return row;
  }

  sqlite::Database database_;
  std::string metric_;
  std::vector<std::string> statistics_;
};

}  // namespace

Result<std::vector<MonitorDirectory>> NeedMonitorDirectories(const std::string& path) {
  if (KindOf(path) != PathKind::kDirectory) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: no such directory", path));
  }
  PL_TRY_ASSIGN(std::vector<MonitorDirectory> directories, ListMonitorDirectories(path));
  if (!directories.empty()) return directories;
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: no directory of a monitor (expected names such as "
                           "Dec03_21-34-40-rank0-3f9c1a2b, or rank_0 with files such as "
                           "module_step0-0.csv). Name the directory that holds them.",
                           path));
}

bool HoldsMonitorDirectories(const std::string& path) {
  const auto directories = ListMonitorDirectories(path);
  return directories && !directories->empty();
}

Result<std::vector<MonitorFile>> ListMonitorFiles(const std::string& directory) {
  PL_TRY_ASSIGN(const auto names, ListDirectory(directory));
  std::vector<MonitorFile> files;
  for (const std::string_view name : names) {
    const auto parts = MonitorFileName(name);
    if (!parts) continue;
    const std::string path = JoinPath(directory, name);
    if (!parts->is_second_form) files.push_back({path, std::string(parts->word), parts->first});
    for (const MonitorKindInfo& info : kMonitorKinds) {
      const bool has_rows = parts->is_second_form && !info.scope.empty() &&
                            kMonitorPartNames[static_cast<size_t>(info.part)] == parts->word;
      if (has_rows) files.push_back({path, std::string(info.file), parts->first});
    }
  }
  if (files.empty()) PL_TRY(ListMetrics(JoinPath(directory, monitor_trend::kDatabase), &files));
  std::ranges::sort(files, {}, [](const MonitorFile& file) {
    return std::tie(file.kind, file.first_step, file.path);
  });
  return files;
}

void ResumedRows::Lower(Steps& steps, const Steps::key_type& key, int64_t step) {
  const auto [at, is_new] = steps.try_emplace(key, step);
  at->second = std::min(at->second, step);
}

void ResumedRows::Begin(size_t directory) {
  if (directory == directory_) return;
  directory_ = directory;
  for (const auto& [key, step] : of_this_) Lower(of_later_, key, step);
  of_this_.clear();
}

std::optional<int64_t> ResumedRows::EndOf(int64_t rank, const std::string& kind) const {
  const auto found = of_later_.find({rank, kind});
  return found == of_later_.end() ? std::nullopt : std::optional(found->second);
}

void ResumedRows::Take(int64_t rank, const std::string& kind, int64_t step) {
  Lower(of_this_, {rank, kind}, step);
}

std::vector<std::string> DamageOf(const std::string& path, const MonitorFileFacts& facts) {
  std::vector<std::string> damage;
  if (facts.is_cut) {
    damage.push_back(
        fmt::format("{}: ends within a row, which is left out (the training was killed?)", path));
  }
  if (facts.is_empty) damage.push_back(path + ": is empty (the training was killed?)");
  if (facts.odd_cells > 0) {
    damage.push_back(fmt::format(
        "{}: {} of statistics no number, and left out: {}", path,
        facts.odd_cells == 1 ? "1 cell is" : fmt::format("{} cells are", facts.odd_cells),
        facts.first_odd_cell));
  }
  if (facts.left_out > 0) {
    damage.push_back(fmt::format("{}: {} left out: {}", path, CountText(facts.left_out, "row"),
                                 facts.first_left_out));
  }
  return damage;
}

void MonitorDamage::Add(std::vector<std::string> of_place) {
  // A file of the second form is read once for each kind.
  std::erase_if(of_place, [&](const std::string& sentence) {
    return std::ranges::find(sentences, sentence) != sentences.end();
  });
  if (!of_place.empty()) ++places;
  for (std::string& sentence : of_place) sentences.push_back(std::move(sentence));
}

void MonitorDamage::Take(const Error& error) {
  if (!first_error) first_error = error;
  Add({error.message()});
}

void MonitorDamage::Take(const std::string& path, const Result<MonitorFileFacts>& read) {
  if (!read) return Take(read.error());
  Add(DamageOf(path, *read));
}

void MonitorDamage::Take(MonitorDamage other) {
  if (!first_error) first_error = std::move(other.first_error);
  const uint64_t before = places;
  for (std::string& sentence : other.sentences) Add({std::move(sentence)});
  places = std::min(places, before + other.places);
}

void MonitorDamage::TakeBrokenLinks(const std::string& path) {
  constexpr size_t kTimeLength = 14;
  constexpr std::string_view kRank = "rank_";
  const auto names = ListDirectory(path);
  if (!names) return Take(names.error());
  for (const std::string& name : *names) {
    const std::string entry = JoinPath(path, name);
    const bool is_numbered =
        name.starts_with(kRank) && ParseNatural(std::string_view(name).substr(kRank.size()));
    const bool is_named_so = is_numbered || MonitorTime(name.substr(0, kTimeLength));
    if (!is_named_so || KindOf(entry) != PathKind::kMissing) continue;
    Take(Error(ErrorCode::kNotFound, entry + ": a link to nothing, or not to be opened"));
  }
}

std::vector<MonitorFile> MonitorDamage::FilesOf(const MonitorDirectory& directory) {
  auto files = ListMonitorFiles(directory.path);
  if (files) return *std::move(files);
  Take(files.error());
  return {};
}

std::string MonitorDamage::text() const {
  if (places == 0) return {};
  return fmt::format(" in what could be read ({} damaged or missing)",
                     CountText(places, "file or directory", "files or directories"));
}

Result<MonitorFileFacts> VisitMonitorFile(const std::string& path, std::string_view kind,
                                          const VisitMonitorRow& visit) {
  if (const auto end = EndOfDatabase(path)) {
    PL_TRY_ASSIGN(auto database, sqlite::Database::OpenToRead(path.substr(0, *end)));
    return MetricReader(std::move(database), path.substr(*end + 1)).Visit(visit);
  }
  FileReader reader(kind, visit);
  PL_TRY_ASSIGN(const uint64_t end,
                csv::VisitWholeRows(path, [&](csv::Row& row, const csv::RowPlace&) -> Status {
                  return reader.Take(row);
                }));
  PL_TRY_ASSIGN(const uint64_t size, FileSize(path));
  reader.facts.is_cut = end < size;
  reader.facts.is_empty = size == 0;
  return reader.facts;
}

}  // namespace plumbline::load
