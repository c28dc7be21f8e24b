#include "watch/perturbation_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/file/file.h"
#include "base/text/csv.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "watch/perturb/result_files.h"

namespace plumbline {
namespace {

constexpr std::string_view kMergedName = "free_benchmark_merged.csv";

struct PerturbedRow {
  int64_t rank = 0, step = 0;
  size_t order = 0;                // of the call in its step
  std::vector<std::string> cells;  // by RowColumns()
};

// What the summaries of all ranks say of an API and mode that its condition does not explain.
struct Unexplained {
  uint64_t calls = 0;
  std::set<int64_t> ranks;
  double excess = 0;
};

struct MergedRows {
  std::vector<PerturbedRow> rows;
  std::set<int64_t> ranks;
  std::map<std::pair<int64_t, std::string>, size_t> order;  // of (step, call)
  std::map<std::string, Unexplained> unexplained;           // by "API (mode)"
  uint64_t compared = 0, files = 0;
  std::vector<std::string> warnings;
};

std::optional<int64_t> NumberAfter(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return ParseNatural(name.substr(prefix.size()));
}

// "rank3"; "rank" is 0.
std::optional<int64_t> RankOf(std::string_view name) {
  return name == "rank" ? std::optional<int64_t>(0) : NumberAfter(name, "rank");
}

// free_benchmark.csv, and free_benchmark_{pid}.csv of a process beside another one.
bool IsRowFile(std::string_view name) {
  constexpr std::string_view kBeside = "free_benchmark_";
  if (name == perturb::kRowsName) return true;
  return name.ends_with(".csv") && name.starts_with(kBeside) &&
         ParseNatural(name.substr(kBeside.size(), name.size() - kBeside.size() - 4));
}

// Where each wanted column stands in a table; `also` is another name of the second one.
Result<std::vector<std::optional<size_t>>> PlacesOf(const csv::Row& header,
                                                    std::span<const std::string_view> wanted,
                                                    size_t needed) {
  std::vector<std::optional<size_t>> places;
  for (const std::string_view column : wanted) {
    auto found = std::ranges::find(header, column);
    if (found == header.end() && column == "pert_mode") found = std::ranges::find(header, "pert_type");
    if (found == header.end() && places.size() < needed) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("no column {} (expected the table of a perturbation check)", column));
    }
    places.push_back(found == header.end()
                         ? std::nullopt
                         : std::optional<size_t>(static_cast<size_t>(found - header.begin())));
  }
  return places;
}

// Calls `visit` with the cells of each row in the wanted order.
Status VisitTable(const std::string& path, std::span<const std::string_view> wanted, size_t needed,
                  const std::function<void(std::vector<std::string>)>& visit) {
  std::optional<std::vector<std::optional<size_t>>> places;
  csv::Row header;
  const auto row_of = [&](csv::Row& row, const csv::RowPlace&) -> Status {
    if (!places) {
      PL_TRY_ASSIGN(places, PlacesOf(row, wanted, needed));
      header = row;
      return {};
    }
    if (row == header || row.empty()) return {};  // ranks of upstream race for one file
    std::vector<std::string> cells;
    for (const auto& place : *places) {
      cells.push_back(place && *place < row.size() ? row[*place] : "");
    }
    visit(std::move(cells));
    return {};
  };
  auto read = csv::VisitWholeRows(path, row_of);
  if (!read) return read.error().In(path);
  return {};
}

Status ReadRowFile(const std::string& path, std::optional<int64_t> rank, MergedRows* merged) {
  constexpr size_t kNeeded = 9;  // upstream's
  ++merged->files;
  return VisitTable(path, perturb::RowColumns(), kNeeded, [&](std::vector<std::string> cells) {
    PerturbedRow row;
    const auto step = ParseNatural(cells[3]);
    row.rank = rank ? *rank : ParseNatural(cells[0]).value_or(0);
    if (!step || cells[4].empty()) {
      merged->warnings.push_back(fmt::format("{}: a row without step or name is left out", path));
      return;
    }
    row.step = *step;
    row.order = merged->order.try_emplace({*step, cells[4]}, merged->order.size()).first->second;
    row.cells = std::move(cells);
    row.cells[0] = std::to_string(row.rank);
    merged->ranks.insert(row.rank);
    merged->rows.push_back(std::move(row));
  });
}

Status ReadSummary(const std::string& path, int64_t rank, MergedRows* merged) {
  ++merged->files;
  merged->ranks.insert(rank);
  const auto columns = perturb::SummaryColumns();
  return VisitTable(path, columns, columns.size(), [&](const std::vector<std::string>& cells) {
    merged->compared += static_cast<uint64_t>(ParseNatural(cells[3]).value_or(0));
    const int64_t calls = ParseNatural(cells[8]).value_or(0);
    if (calls == 0) return;
    Unexplained& one = merged->unexplained[fmt::format("{} ({})", cells[0], cells[1])];
    one.calls += static_cast<uint64_t>(calls);
    one.ranks.insert(rank);
    double excess = 0;
    std::from_chars(cells[10].data(), cells[10].data() + cells[10].size(), excess);
    one.excess = std::max(one.excess, excess);
  });
}

Status ReadStep(const std::string& path, MergedRows* merged) {
  PL_TRY_ASSIGN(const auto names, ListDirectory(path));
  std::vector<std::pair<int64_t, std::string>> ranks;
  for (const std::string& name : names) {
    if (const auto rank = RankOf(name)) ranks.emplace_back(*rank, JoinPath(path, name));
  }
  std::ranges::sort(ranks);
  for (const auto& [rank, directory] : ranks) {
    PL_TRY_ASSIGN(const auto files, ListDirectory(directory));
    for (const std::string& file : files) {
      if (IsRowFile(file)) PL_TRY(ReadRowFile(JoinPath(directory, file), rank, merged));
    }
  }
  return {};
}

Status ReadDumpPath(const std::string& data, MergedRows* merged) {
  PL_TRY_ASSIGN(const auto names, ListDirectory(data));
  std::vector<std::pair<int64_t, std::string>> steps;
  for (const std::string& name : names) {
    const std::string path = JoinPath(data, name);
    if (const auto step = NumberAfter(name, "step")) steps.emplace_back(*step, path);
    const auto rank = RankOf(name);
    const std::string summary = JoinPath(path, perturb::kSummaryName);
    if (rank && KindOf(summary) == PathKind::kFile) PL_TRY(ReadSummary(summary, *rank, merged));
    if (name == perturb::kRowsName) PL_TRY(ReadRowFile(path, std::nullopt, merged));
  }
  std::ranges::sort(steps);
  for (const auto& [step, path] : steps) {
    if (KindOf(path) == PathKind::kDirectory) PL_TRY(ReadStep(path, merged));
  }
  return {};
}

// Which output of which call a row is about.
auto OutputOf(const PerturbedRow& row) {
  return std::tuple(row.step, row.order, std::string_view(row.cells[1]),
                    std::string_view(row.cells[2]), std::string_view(row.cells[8]));
}

// The number of ranks that report the same output, by row.
std::vector<size_t> RanksByRow(const std::vector<PerturbedRow>& rows) {
  std::vector<size_t> counts(rows.size());
  for (size_t begin = 0; begin < rows.size();) {
    size_t end = begin;
    std::set<int64_t> ranks;
    for (; end < rows.size() && OutputOf(rows[end]) == OutputOf(rows[begin]); ++end) {
      ranks.insert(rows[end].rank);
    }
    for (; begin < end; ++begin) counts[begin] = ranks.size();
  }
  return counts;
}

std::string AnswerOf(const MergedRows& merged, const std::vector<size_t>& counts) {
  const size_t ranks = merged.ranks.size();
  const auto worst = std::ranges::max_element(merged.unexplained, {}, [](const auto& one) {
    return one.second.excess;
  });
  if (worst != merged.unexplained.end()) {
    return fmt::format("{}: {} on {} of {} moved more than its condition explains", worst->first,
                       CountText(worst->second.calls, "call"), worst->second.ranks.size(),
                       CountText(ranks, "rank"));
  }
  if (!merged.rows.empty()) {
    const PerturbedRow& row = merged.rows.front();
    return fmt::format("first: step {}, {} ({}): max_rel {} on {} of {}", row.step, row.cells[4],
                       row.cells[1], row.cells[5].empty() ? "not a number" : row.cells[5],
                       counts.front(), CountText(ranks, "rank"));
  }
  return merged.compared == 0
             ? fmt::format("no call was compared on {}", CountText(ranks, "rank"))
             : fmt::format("no output moved too far: {} on {}",
                           CountText(merged.compared, "compared call"), CountText(ranks, "rank"));
}

}  // namespace

Result<PerturbationReport> MergePerturbations(const std::string& data, const std::string& output) {
  if (KindOf(data) != PathKind::kDirectory) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: no such directory", data));
  }
  MergedRows merged;
  PL_TRY(ReadDumpPath(data, &merged));
  if (merged.files == 0) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no result of a perturbation check (expected {} in step{{N}}/"
                             "rank{{R}}, or {} in rank{{R}})",
                             data, perturb::kRowsName, perturb::kSummaryName));
  }
  std::ranges::stable_sort(merged.rows, {}, [](const PerturbedRow& row) {
    return std::tuple_cat(OutputOf(row), std::tuple(row.rank));
  });
  const std::vector<size_t> counts = RanksByRow(merged.rows);
  const auto columns = perturb::RowColumns();
  std::vector<std::string> header(columns.begin(), columns.end());
  header.emplace_back("ranks_reported");
  std::string text = perturb::CsvLine(std::span<const std::string>(header));
  for (size_t i = 0; i < merged.rows.size(); ++i) {
    std::vector<std::string> cells = merged.rows[i].cells;
    cells.push_back(std::to_string(counts[i]));
    text += perturb::CsvLine(std::span<const std::string>(cells));
  }
  const std::string directory = output.empty() ? data : output;
  PL_TRY(MakeDirectories(directory));
  PerturbationReport report{.path = JoinPath(directory, kMergedName),
                            .answer = AnswerOf(merged, counts),
                            .rows = merged.rows.size(),
                            .ranks = merged.ranks.size(),
                            .warnings = std::move(merged.warnings)};
  PL_TRY(WriteFileAtomically(report.path, text, /*durable=*/false));
  return report;
}

}  // namespace plumbline
