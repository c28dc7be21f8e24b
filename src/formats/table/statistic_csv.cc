#include "formats/table/statistic_csv.h"

#include <algorithm>
#include <utility>

#include "base/text/csv.h"

namespace plumbline::statistic_csv {
namespace {

constexpr std::string_view kFixed[] = {"Op Type", "Op Name", "Task ID",   "Stream ID", "Timestamp",
                                       "IO",      "Slot",    "Data Size", "Data Type", "Shape"};
static_assert(std::size(kFixed) == kFixedCount);

constexpr std::pair<std::string_view, std::string_view> kItems[] = {
    {"max", kMax},
    {"min", kMin},
    {"avg", kMean},
    {"count", "Count"},
    {"negative zero count", "Negative Zero Count"},
    {"positive zero count", "Positive Zero Count"},
    {"nan count", "NaN Count"},
    {"negative inf count", "Negative Inf Count"},
    {"positive inf count", "Positive Inf Count"},
    {"zero count", "Zero Count"},
    {"md5", kMd5},
    {"l2norm", kNorm},
    {"hash", kSha1},
    {"hash:sha1", kSha1},
    {"hash:md5", kMd5},
};

}  // namespace

std::span<const std::string_view> FixedColumns() { return kFixed; }

std::optional<std::string_view> ColumnOf(std::string_view item) {
  for (const auto& [name, column] : kItems) {
    if (name == item) return column;
  }
  return std::nullopt;
}

std::vector<std::string> WithoutRepeats(std::span<const std::string> items) {
  std::vector<std::string> kept;
  for (const std::string& item : items) {
    const auto same = [&](const std::string& other) { return ColumnOf(other) == ColumnOf(item); };
    if (std::ranges::none_of(kept, same)) kept.push_back(item);
  }
  return kept;
}

std::string HeaderLine(std::span<const std::string> items) {
  std::string line;
  for (const std::string_view column : kFixed) {
    if (!line.empty()) line += ',';
    line += column;
  }
  for (const std::string& item : items) {
    line += ',';
    line += ColumnOf(item).value_or(item);
  }
  return line + '\n';
}

std::string ShapeCell(std::span<const int64_t> shape) {
  std::string text = "\"(";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(shape[i]);
  }
  return text + ")\"";
}

void AppendRow(std::span<const std::string_view> cells, std::string& out) {
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i == kShape) {
      out += cells[i];
    } else {
      csv::AppendExactly(cells[i], out);
    }
    out += ',';
  }
  out += '\n';
}

}  // namespace plumbline::statistic_csv
