#include "ranks/merge_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/csv.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "base/text/yaml_file.h"
#include "formats/table/xlsx.h"
#include "ranks/rank_store.h"
#include "report/result_names.h"

namespace plumbline::ranks {

namespace {

Result<std::vector<std::string>> TextsOf(const YamlFile& file, const YAML::Node& node,
                                         std::string_view key) {
  if (!node.IsSequence()) {
    return file.Bad(fmt::format("{} is not a list (expected lines that begin with \"- \")", key));
  }
  std::vector<std::string> texts;
  for (const YAML::Node& element : node) {
    if (!element.IsScalar() || element.Scalar().empty()) {
      return file.Bad(fmt::format("{}: an entry is not a text", key));
    }
    texts.push_back(element.Scalar());
  }
  return texts;
}

}  // namespace

Result<MergeConfig> ReadMergeConfig(const std::string& path) {
  PL_TRY_ASSIGN(const YamlFile file, YamlFile::Read(path));
  const YAML::Node& root = file.root();
  if (!root.IsDefined() || root.IsNull()) return file.Bad("is empty (expected the key api)");
  if (!root.IsMap()) return file.Bad("holds no keys (expected api and compare_index)");
  MergeConfig config;
  const YAML::Node apis = root["api"];
  if (!apis.IsDefined() || apis.IsNull()) {
    return file.Bad("key api is missing or empty (expected a list of calls)");
  }
  PL_TRY_ASSIGN(config.apis, TextsOf(file, apis, "api"));
  if (config.apis.empty()) return file.Bad("key api is an empty list (expected a list of calls)");
  const YAML::Node metrics = root["compare_index"];
  if (metrics.IsDefined() && !metrics.IsNull()) {
    PL_TRY_ASSIGN(config.metrics, TextsOf(file, metrics, "compare_index"));
  }
  return config;
}

namespace {

constexpr std::string_view kResultPrefix = "compare_result_rank";
constexpr std::string_view kMergedPrefix = "multi_ranks_compare_merge_";
constexpr size_t kStampDigits = 14;

// A name of the form compare_result_rank{n}[-rank{m}]_{14 digits}[_{k}][_part_{i}].{extension}.
struct ResultName {
  std::optional<int64_t> rank;  // none: "rank", a run of one process
  std::string stamp;            // what orders results of one rank in time
  uint64_t repeat = 0;          // k
  uint64_t part = 0;            // i
};

// Takes a number off the front of `text`.
std::optional<uint64_t> TakeNumber(std::string_view& text) {
  uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
  return number;
}

bool TakeText(std::string_view prefix, std::string_view& text) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<ResultName> ParseName(std::string_view stem) {
  if (!TakeText(kResultPrefix, stem)) return std::nullopt;
  ResultName name;
  if (const auto rank = TakeNumber(stem)) name.rank = static_cast<int64_t>(*rank);
  if (TakeText("-rank", stem)) {
    // Of the golden side; tables are labelled by the target's rank.
    const bool numbered = TakeNumber(stem).has_value();
    if (numbered != name.rank.has_value()) return std::nullopt;
  }
  if (!TakeText("_", stem) || stem.size() < kStampDigits) return std::nullopt;
  name.stamp = stem.substr(0, kStampDigits);
  if (name.stamp.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  stem.remove_prefix(kStampDigits);
  if (TakeText("_part_", stem)) {
    const auto part = TakeNumber(stem);
    if (!part) return std::nullopt;
    name.part = *part;
  } else if (TakeText("_", stem)) {
    const auto repeat = TakeNumber(stem);
    if (!repeat) return std::nullopt;
    name.repeat = *repeat;
    if (TakeText("_part_", stem)) name.part = TakeNumber(stem).value_or(0);
  }
  if (!stem.empty()) return std::nullopt;
  return name;
}

// One result of one rank: a point in time and a kind of file.
struct SetKey {
  std::string stamp;
  uint64_t repeat = 0;
  bool is_workbook = false;  // the workbook counts as later than the CSV of the same time
  friend auto operator<=>(const SetKey&, const SetKey&) = default;
};
using Parts = std::map<uint64_t, std::string>;

Status AddCsvRows(const std::string& path, const TableVisitor& visit) {
  PL_TRY_ASSIGN(std::vector<csv::Row> rows, csv::ReadRows(path));
  if (rows.empty()) return {};
  std::vector<xlsx::Cell> cells;
  for (size_t i = 1; i < rows.size(); ++i) {
    cells.clear();
    for (std::string& cell : rows[i]) {
      const bool is_number = cell.find_first_not_of("0123456789.eE+-") == std::string::npos &&
                             ParseReal(cell).has_value();
      cells.push_back({std::move(cell), is_number});
    }
    PL_TRY(visit(rows.front(), cells));
  }
  return {};
}

Status AddWorkbookRows(const std::string& path, const TableVisitor& visit) {
  std::vector<std::string> header;
  std::optional<size_t> current;
  Status status;
  PL_TRY(xlsx::ReadRows(path, [&](size_t sheet, std::span<const xlsx::Cell> cells) {
    if (current != sheet) {
      current = sheet;
      header.clear();
      for (const xlsx::Cell& cell : cells) header.push_back(cell.text);
      return true;
    }
    status = visit(header, cells);
    return status.has_value();
  }));
  return status;
}

}  // namespace

Result<RankTables> FindRankTables(const std::string& directory) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
  RankTables out;
  std::map<int64_t, std::map<SetKey, Parts>> by_rank;
  for (const std::string& file : names) {
    const bool is_workbook = file.ends_with(".xlsx");
    if (!is_workbook && !file.ends_with(".csv")) continue;
    if (file.starts_with(kMergedPrefix) || file.starts_with('.')) continue;  // our own output
    const std::string path = JoinPath(directory, file);
    const auto name = ParseName(std::string_view(file).substr(0, file.rfind('.')));
    if (!name) {
      if (!is_workbook) continue;
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: not the result of a rank (expected a name such as "
                               "compare_result_rank0-rank0_20260131120000.xlsx). Move it away.",
                               path));
    }
    if (!name->rank) {
      out.left_out.push_back(fmt::format("{}: of a run without ranks; left out", path));
      continue;
    }
    by_rank[*name->rank][{name->stamp, name->repeat, is_workbook}][name->part] = path;
  }
  for (auto& [rank, sets] : by_rank) {
    RankTable table;
    table.rank = rank;
    const auto& [key, parts] = *sets.rbegin();
    for (const auto& [part, path] : parts) table.files.push_back(path);
    for (const auto& [other, files] : sets) {
      if (std::tie(other.stamp, other.repeat) == std::tie(key.stamp, key.repeat)) continue;
      out.warnings.push_back(
          fmt::format("{}: an older result of rank {}; left out", files.begin()->second, rank));
    }
    out.tables.push_back(std::move(table));
  }
  return out;
}

Status ReadTable(const std::string& path, const TableVisitor& visit) {
  return path.ends_with(".csv") ? AddCsvRows(path, visit) : AddWorkbookRows(path, visit);
}

namespace {

using xlsx::Cell;
using Header = std::vector<std::string>;

constexpr std::string_view kName = "NPU Name", kMax = "NPU max", kGoldenMax = "Bench max";
constexpr std::array<std::string_view, 7> kTensorMetrics = {"Cosine",
                                                            "EucDist",
                                                            "MaxAbsErr",
                                                            "MaxRelativeErr",
                                                            "One Thousandth Err Ratio",
                                                            "Five Thousandths Err Ratio",
                                                            "Requires_grad Consistent"};
constexpr std::array<std::string_view, 9> kStatisticMetrics = {
    "Max diff",        "Min diff",        "Mean diff",
    "L2norm diff",     "MaxRelativeErr",  "MinRelativeErr",
    "MeanRelativeErr", "NormRelativeErr", "Requires_grad Consistent"};

bool Has(const Header& header, std::string_view name) {
  return std::find(header.begin(), header.end(), name) != header.end();
}

// The metrics of a table by its header; none when they cannot be merged, and why.
struct TableKind {
  std::vector<std::string> metrics;
  std::string problem;
};

TableKind KindOfTable(const Header& header) {
  TableKind kind;
  const bool named = Has(header, kName) && Has(header, kMax) && Has(header, kGoldenMax);
  const auto take = [&](const auto& metrics) {
    for (const std::string_view metric : metrics) {
      if (Has(header, metric)) kind.metrics.emplace_back(metric);
    }
  };
  if (Has(header, "NPU MD5")) {
    kind.problem = "holds checksums, which have no metrics";
  } else if (named && Has(header, kTensorMetrics[0])) {
    take(kTensorMetrics);
  } else if (named && Has(header, kStatisticMetrics[0])) {
    take(kStatisticMetrics);
  } else {
    kind.problem = "has an unknown header";
  }
  return kind;
}

// What is kept of one rank: the wanted rows, their names in order of the config.
struct RankRows {
  std::vector<std::string> metrics;
  std::string problem;  // why the rank is left out
  std::vector<std::vector<std::pair<std::string, std::vector<Cell>>>> by_api;  // name, metrics
  bool has_rows = false;
};

bool IsOf(std::string_view name, std::string_view api) {
  return name.starts_with(api) && name.size() > api.size() && name[api.size()] == '.';
}

// As Python spells the number it reads from the cell.
std::string PythonText(const Cell& cell) {
  if (!cell.is_number || cell.text.find_first_of(".eE") == std::string::npos) return cell.text;
  const std::optional<double> value = ParseReal(cell.text);
  return value ? PythonFloat(*value) : cell.text;
}

// Without what keeps a spreadsheet or a CSV reader from taking it for something else.
std::string_view Bare(std::string_view text) {
  if (text.ends_with('\t')) text.remove_suffix(1);
  if (text.starts_with(' ')) text.remove_prefix(1);
  return text;
}

// Columns of one table that are looked at.
class TableColumns {
 public:
  TableColumns(const Header& header, const std::vector<std::string>& metrics) {
    const auto index = [&](std::string_view name) {
      return static_cast<size_t>(std::find(header.begin(), header.end(), name) - header.begin());
    };
    name_ = index(kName);
    max_ = index(kMax);
    golden_max_ = index(kGoldenMax);
    for (const std::string& metric : metrics) metrics_.push_back(index(metric));
  }

  static Cell At(std::span<const Cell> row, size_t column) {
    return column < row.size() ? row[column] : Cell();
  }
  [[nodiscard]] std::string Name(std::span<const Cell> row) const { return At(row, name_).text; }
  [[nodiscard]] std::vector<Cell> Metrics(std::span<const Cell> row) const {
    std::vector<Cell> cells;
    for (const size_t column : metrics_) {
      Cell cell = At(row, column);
      const std::string_view text = Bare(cell.text);
      if (text == "N/A" || text == "unsupported" || text == "Nan") {
        cell.is_number = false;
        cell.text = fmt::format("NPU:{}  Bench:{}", PythonText(At(row, max_)),
                                PythonText(At(row, golden_max_)));
      }
      cells.push_back(std::move(cell));
    }
    return cells;
  }

 private:
  size_t name_ = 0, max_ = 0, golden_max_ = 0;
  std::vector<size_t> metrics_;
};

class RankReader {
 public:
  explicit RankReader(const MergeConfig& config) : config_(config) {}

  Result<RankRows> Read(const RankTable& table) {
    rows_.by_api.resize(config_.apis.size());
    for (const std::string& file : table.files) {
      PL_TRY(ReadTable(file, [this](const Header& header, std::span<const Cell> row) -> Status {
        if (header != header_) Begin(header);
        if (rows_.problem.empty()) Add(row);
        return {};
      }));
      if (!rows_.problem.empty()) break;
    }
    return std::move(rows_);
  }

 private:
  void Begin(const Header& header) {
    header_ = header;
    TableKind kind = KindOfTable(header);
    rows_.problem = std::move(kind.problem);
    rows_.metrics = config_.metrics.empty() ? std::move(kind.metrics) : config_.metrics;
    if (!rows_.problem.empty()) return;
    for (const std::string& metric : config_.metrics) {
      const bool known =
          std::find(kind.metrics.begin(), kind.metrics.end(), metric) != kind.metrics.end();
      if (!known) rows_.problem = fmt::format("has no metric {}", metric);
    }
    columns_.emplace(header, rows_.metrics);
  }

  void Add(std::span<const Cell> row) {
    rows_.has_rows = true;
    const std::string name = columns_->Name(row);
    for (size_t i = 0; i < config_.apis.size(); ++i) {
      if (IsOf(name, config_.apis[i])) rows_.by_api[i].emplace_back(name, columns_->Metrics(row));
    }
  }

  const MergeConfig& config_;
  Header header_;
  std::optional<TableColumns> columns_;
  RankRows rows_;
};

// The ranks joined by name: order of the lowest rank, then what only others have.
class Joined {
 public:
  explicit Joined(std::vector<std::string> metrics) : metrics_(std::move(metrics)) {}

  void AddRank(int64_t rank, const RankRows& rows) {
    const size_t column = ranks_.size();
    ranks_.push_back(rank);
    for (const auto& of_api : rows.by_api) {
      for (const auto& [name, cells] : of_api) {
        const auto [slot, is_new] = places_.try_emplace(name, names_.size());
        if (is_new) {
          names_.push_back(name);
          cells_.emplace_back();
        }
        auto& row = cells_[slot->second];
        row.resize(column + 1);
        if (row[column].empty()) row[column] = cells;  // the first row of a name counts
      }
    }
  }

  Status Write(const std::string& path) const {
    std::vector<std::string> labels;
    for (const int64_t rank : ranks_) labels.push_back(fmt::format("rank{}", rank));
    std::vector<std::string_view> header{kName};
    header.insert(header.end(), labels.begin(), labels.end());
    PL_TRY_ASSIGN(xlsx::Writer writer, xlsx::Writer::CreateEmpty(path));
    for (size_t metric = 0; metric < metrics_.size(); ++metric) {
      PL_TRY(writer.BeginSheet(metrics_[metric], header));
      for (size_t i = 0; i < names_.size(); ++i) {
        PL_TRY(writer.BeginRow(xlsx::Fill::kNone));
        PL_TRY(writer.Text(names_[i]));
        for (size_t rank = 0; rank < ranks_.size(); ++rank) {
          const auto& row = cells_[i];
          const bool known = rank < row.size() && !row[rank].empty();
          PL_TRY(WriteCell(known ? row[rank][metric] : Cell(), writer));
        }
      }
    }
    return writer.Close();
  }

  [[nodiscard]] const std::vector<int64_t>& ranks() const { return ranks_; }
  [[nodiscard]] const std::vector<std::string>& metrics() const { return metrics_; }
  [[nodiscard]] size_t row_count() const { return names_.size(); }

 private:
  static Status WriteCell(const Cell& cell, xlsx::Writer& writer) {
    if (!cell.is_number) return writer.Text(cell.text);
    return writer.Number(ParseReal(cell.text).value_or(0));
  }

  std::vector<std::string> metrics_;
  std::vector<int64_t> ranks_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, size_t> places_;
  std::vector<std::vector<std::vector<Cell>>> cells_;  // by name, rank, metric; empty: not there
};

void WarnAboutApis(const RankTable& table, const RankRows& rows, const MergeConfig& config,
                   std::vector<std::string>& warnings) {
  for (size_t i = 0; i < config.apis.size(); ++i) {
    if (!rows.by_api[i].empty()) continue;
    warnings.push_back(fmt::format("{}: no call {}", table.files.front(), config.apis[i]));
  }
}

}  // namespace

Result<MergeReport> MergeResults(const std::string& input_directory,
                                 const std::string& output_directory, const MergeConfig& config,
                                 int threads) {
  PL_TRY_ASSIGN(RankTables found, FindRankTables(input_directory));
  if (found.tables.size() < 2) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: results of {} ranks (expected two or more named "
                             "compare_result_rank0-rank0_<time>.xlsx or .csv)",
                             input_directory, found.tables.size()));
  }
  std::vector<std::optional<Result<RankRows>>> read(found.tables.size());
  RunWithThreads(threads, [&] {
    ParallelFor(read.size(), [&](size_t i) { read[i] = RankReader(config).Read(found.tables[i]); });
  });
  MergeReport report;
  report.warnings = std::move(found.warnings);
  report.left_out = std::move(found.left_out);
  const LostRanks lost = FindLostRanks(input_directory, found.tables);
  std::ranges::copy(lost.outdated, std::back_inserter(report.warnings));
  std::ranges::copy(lost.without_one, std::back_inserter(report.left_out));
  std::optional<Joined> joined;
  for (size_t i = 0; i < read.size(); ++i) {
    const RankTable& table = found.tables[i];
    if (!*read[i]) return read[i]->error();
    const RankRows& rows = **read[i];
    std::string problem = rows.problem;
    if (problem.empty() && !rows.has_rows) problem = "has no rows";
    if (problem.empty() && joined && joined->metrics() != rows.metrics) {
      problem = "has other metrics than the ranks before it";
    }
    if (!problem.empty()) {
      report.left_out.push_back(fmt::format("{}: {}; left out", table.files.front(), problem));
      continue;
    }
    WarnAboutApis(table, rows, config, report.warnings);
    if (!joined) joined.emplace(rows.metrics);
    joined->AddRank(table.rank, rows);
  }
  if (!joined || joined->row_count() == 0) {
    const auto& reasons = report.left_out.empty() ? report.warnings : report.left_out;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: nothing to merge{}{}", input_directory,
                             reasons.empty() ? "" : ": ", reasons.empty() ? "" : reasons.front()));
  }
  PL_TRY(MakeDirectories(output_directory));
  const report::FreeName name =
      report::FreePath(output_directory, "multi_ranks_compare_merge", ".xlsx");
  report.file = name.text;
  PL_TRY(joined->Write(report.file));
  report.ranks = joined->ranks();
  report.metrics = joined->metrics();
  report.rows = joined->row_count();
  return report;
}

}  // namespace plumbline::ranks
