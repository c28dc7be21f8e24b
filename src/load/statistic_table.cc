#include "load/statistic_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <compare>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/memory/digest.h"
#include "base/text/csv.h"
#include "base/text/text_parts.h"
#include "formats/table/statistic_csv.h"
#include "record/run_files.h"

namespace plumbline::load {

namespace {

using statistic_csv::FixedColumns;

// Nothing for a text that is no number; an empty cell is a statistic that was not taken.
std::optional<Statistic> StatisticIn(std::string_view text) {
  if (text.empty() || text == "null" || text == "None") return Statistic(std::monostate());
  if (text == "True") return true;
  if (text == "False") return false;
  if (text == "nan" || text == "-nan") return std::numeric_limits<double>::quiet_NaN();
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec == std::errc::result_out_of_range) {
    const double huge = std::numeric_limits<double>::infinity();
    return text.find("e-") != std::string_view::npos ? 0.0 : text[0] == '-' ? -huge : huge;
  }
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// "(2,3)", "(3)", "(3,)", "()" or the same in square brackets.
std::optional<Shape> ShapeIn(std::string_view text) {
  if (text.size() < 2) return std::nullopt;
  const bool round = text.front() == '(' && text.back() == ')';
  if (!round && !(text.front() == '[' && text.back() == ']')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  Shape shape;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view part = text.substr(0, comma);
    while (part.starts_with(' ')) part.remove_prefix(1);
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (part.empty() && text.empty()) break;
    const std::optional<int64_t> size = ParseNatural(part);
    if (!size) return std::nullopt;
    shape.push_back(*size);
  }
  if (!ElementCount(shape)) return std::nullopt;
  return shape;
}

class Table {
 public:
  explicit Table(const std::string& path) : path_(path) {}

  Status Visit(const std::function<void(StatisticRow row)>& visit) {
    size_t line = 0;
    PL_TRY(csv::VisitRows(path_, [&](csv::Row& cells) -> Status {
      if (++line == 1) return ReadHeader(cells);
      if (cells.empty()) return {};
      Result<StatisticRow> row = RowOf(cells);
      if (!row) return Bad(fmt::format("line {}: {}", line, row.error().message()));
      visit(*std::move(row));
      return {};
    }));
    if (line > 0) return {};
    return Bad(std::string(kNoHeader)).In(path_);
  }

 private:
  static constexpr std::string_view kNoHeader = "no header (expected Op Type,Op Name,Task ID,...)";
  static constexpr size_t kNone = static_cast<size_t>(-1);
  struct Columns {
    size_t dtype = kNone, shape = kNone, max = kNone, min = kNone, mean = kNone, norm = kNone,
           digest = kNone;
    size_t count = kNone, nan = kNone, negative_inf = kNone, positive_inf = kNone, zero = kNone,
           negative = kNone, positive = kNone;
  };

  static Error Bad(std::string problem) { return Error(ErrorCode::kCorrupt, std::move(problem)); }

  Status ReadHeader(const csv::Row& cells) {
    const bool is_header = cells.size() >= statistic_csv::kKeyCount &&
                           cells[statistic_csv::kOpType] == FixedColumns().front();
    return is_header ? FindColumns(cells) : Status(Bad(std::string(kNoHeader)));
  }

  Status FindColumns(const csv::Row& header) {
    width_ = header.size();
    const std::pair<std::string_view, size_t Columns::*> names[] = {
        {FixedColumns()[statistic_csv::kDataType], &Columns::dtype},
        {FixedColumns()[statistic_csv::kShape], &Columns::shape},
        {statistic_csv::kMax, &Columns::max},
        {statistic_csv::kMin, &Columns::min},
        {statistic_csv::kMean, &Columns::mean},
        {statistic_csv::kNorm, &Columns::norm},
        {statistic_csv::kMd5, &Columns::digest},
        {statistic_csv::kSha1, &Columns::digest},
        {"Count", &Columns::count},
        {"NaN Count", &Columns::nan},
        {"Nan Count", &Columns::nan},
        {"Negative Inf Count", &Columns::negative_inf},
        {"Positive Inf Count", &Columns::positive_inf},
        {"Zero Count", &Columns::zero},
        {"Negative Zero Count", &Columns::negative},
        {"Positive Zero Count", &Columns::positive},
    };
    for (size_t i = 0; i < header.size(); ++i) {
      for (const auto& [name, column] : names) {
        if (header[i] == name) columns_.*column = i;
      }
    }
    if (columns_.dtype != kNone && columns_.shape != kNone) return {};
    return Bad("its header has no Data Type or no Shape");
  }

  // The error says what is wrong with the row.
  [[nodiscard]] Result<StatisticRow> RowOf(const csv::Row& row) const {
    const auto bad = [](std::string text) { return Error(ErrorCode::kCorrupt, std::move(text)); };
    const auto cell = [&](size_t column) {
      return column < row.size() ? std::string_view(row[column]) : std::string_view();
    };
    const bool is_whole = row.size() == width_ || (row.size() == width_ + 1 && row.back().empty());
    if (!is_whole) {
      return bad(fmt::format("{} cells; the file may be cut (expected {})", row.size(), width_));
    }
    const std::optional<int64_t> time = ParseNatural(cell(statistic_csv::kTimestamp)),
                                 slot = ParseNatural(cell(statistic_csv::kSlot));
    const std::string_view io = cell(statistic_csv::kIo);
    if (!time || !slot || (io != "input" && io != "output")) {
      return bad("no time, slot or direction (expected input or output)");
    }
    const std::optional<Shape> shape = ShapeIn(cell(columns_.shape));
    if (!shape) return bad(fmt::format("{} is no shape", cell(columns_.shape)));
    StatisticRow out;
    out.op_type = cell(statistic_csv::kOpType);
    out.op_name = cell(statistic_csv::kOpName);
    out.task = cell(statistic_csv::kTask);
    out.stream = cell(statistic_csv::kStream);
    out.timestamp = *time;
    out.is_output = io == "output";
    out.slot = *slot;
    TensorRecord& tensor = out.tensor;
    tensor.dtype_text = LowerCase(cell(columns_.dtype));
    tensor.shape = *shape;
    const std::pair<size_t, Statistic*> statistics[] = {{columns_.max, &tensor.max},
                                                        {columns_.min, &tensor.min},
                                                        {columns_.mean, &tensor.mean},
                                                        {columns_.norm, &tensor.norm}};
    for (const auto& [column, statistic] : statistics) {
      const std::optional<Statistic> value = StatisticIn(cell(column));
      if (!value) return bad(fmt::format("{} is no number", cell(column)));
      *statistic = *value;
    }
    const bool has_statistics = columns_.max != kNone || columns_.norm != kNone;
    const std::string_view digest = cell(columns_.digest);
    if (!has_statistics && !digest.empty()) tensor.digest = digest;
    if (digest != "null") out.digest = digest;
    out.counts = CountsIn(row);
    return out;
  }

  [[nodiscard]] StatisticRow::Counts CountsIn(const csv::Row& row) const {
    const auto count = [&](size_t column) {
      return column < row.size() ? ParseNatural(row[column]) : std::nullopt;
    };
    StatisticRow::Counts counts{count(columns_.count), count(columns_.nan), std::nullopt,
                                count(columns_.zero), count(columns_.negative),
                                count(columns_.positive)};
    const auto below = count(columns_.negative_inf), above = count(columns_.positive_inf);
    if (below && above) counts.inf = *below + *above;
    return counts;
  }

  const std::string& path_;
  Columns columns_;
  size_t width_ = 0;
};

}  // namespace

Status VisitStatisticTable(const std::string& path,
                           const std::function<void(StatisticRow row)>& visit) {
  return Table(path).Visit(visit);
}

namespace {

// Whose value a row is. Kernels are told by the digests of their names.
struct Owner {
  Digest128 kernel;
  int64_t place = 0;  // inputs from 0 on, outputs from -1 down
  friend auto operator<=>(const Owner&, const Owner&) = default;
};

// The k-th value of one place of a kernel belongs to its k-th run: it ran as often as the place
// that has the most values.
uint64_t RunsOf(const std::deque<Owner>& sorted) {
  uint64_t runs = 0;
  for (auto at = sorted.begin(); at != sorted.end();) {
    const auto kernel = at;
    uint64_t most = 0;
    while (at != sorted.end() && at->kernel == kernel->kernel) {
      const auto place = at;
      at = std::upper_bound(at, sorted.end(), *place);
      most = std::max(most, static_cast<uint64_t>(at - place));
    }
    runs += most;
  }
  return runs;
}

}  // namespace

Result<StatisticCounts> CountStatistics(const std::vector<std::string>& directories) {
  std::deque<Owner> owners;  // grows without a copy of all
  for (const std::string& directory : directories) {
    PL_TRY(
        VisitStatisticTable(JoinPath(directory, run_files::kStatisticCsv), [&](StatisticRow row) {
          std::ranges::replace(row.op_name, '/', '_');
          owners.push_back({Xxh3Of(std::as_bytes(std::span(row.op_name))),
                            row.is_output ? -1 - row.slot : row.slot});
        }));
  }
  std::ranges::sort(owners);
  return StatisticCounts{RunsOf(owners), owners.size()};
}

}  // namespace plumbline::load
