#include "report/graph_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/file/file.h"
#include "base/text/number_text.h"
#include "match/expand.h"
#include "measure/standards.h"
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "record/run_files.h"

namespace plumbline::report {
namespace {

constexpr Side kT = Side::kTarget;
constexpr Side kG = Side::kGolden;

Cell TextCell(std::string_view text) { return std::string(text); }

// A number; a text where a spreadsheet cannot hold it as one.
Cell NumberCell(double value) {
  if (std::isnan(value)) return TextCell("nan\t");
  if (std::isinf(value)) return TextCell(value > 0 ? "inf\t" : "-inf\t");
  return value;
}

const std::vector<std::string>& GraphsOn(const RowContext& context, Side side) {
  return side == kT ? context.comparison.target_graphs : context.comparison.golden_graphs;
}

// Its directory and its name there.
std::pair<std::string_view, std::string_view> PlaceOf(const RowContext& context, Side side,
                                                      const Item& item) {
  const std::vector<std::string>& graphs = GraphsOn(context, side);
  const GraphName place = ParseGraphName(item.data_name, graphs.size());
  return {graphs[place.directory], place.name};
}

// Statistics that were computed from a tensor stand for its file.
bool IsOfTensor(std::string_view name) { return name.ends_with(".npy"); }

std::string CsvPathOf(const RowContext& context, Side side, const Item& item) {
  return JoinPath(std::string(PlaceOf(context, side, item).first), run_files::kStatisticCsv);
}

// The file, as an absolute path.
template <Side side>
Cell FileCell(const RowContext& context) {
  const Item* item = ItemOn(context, side);
  if (item == nullptr) return {};
  const auto [directory, name] = PlaceOf(context, side, *item);
  const std::string path = JoinPath(std::string(directory), name);
  const Result<std::string> absolute = AbsolutePath(path);
  return absolute ? *absolute : path;
}

template <Side side>
Cell CsvCell(const RowContext& context) {
  const Item* item = ItemOn(context, side);
  if (item == nullptr) return {};
  if (IsOfTensor(PlaceOf(context, side, *item).second)) return FileCell<side>(context);
  const Result<std::string> absolute = AbsolutePath(CsvPathOf(context, side, *item));
  return absolute ? *absolute : CsvPathOf(context, side, *item);
}

// name.task.stream.io.slot, then the file.
template <Side side>
Cell KeyAndCsvCell(const RowContext& context) {
  const Item* item = ItemOn(context, side);
  if (item == nullptr) return {};
  if (IsOfTensor(PlaceOf(context, side, *item).second)) return FileCell<side>(context);
  const Cell path = CsvCell<side>(context);
  return fmt::format("{} {}", PlaceOf(context, side, *item).second, std::get<std::string>(path));
}

// name.task.io.slot.
template <Side side>
Cell KeyCell(const RowContext& context) {
  const Item* item = ItemOn(context, side);
  if (item == nullptr) return {};
  std::string name(PlaceOf(context, side, *item).second);
  if (IsOfTensor(name)) return name;
  const size_t slot = name.rfind('.');
  const size_t io = slot == std::string::npos || slot == 0 ? slot : name.rfind('.', slot - 1);
  const size_t stream = io == std::string::npos || io == 0 ? io : name.rfind('.', io - 1);
  if (stream != std::string::npos) name.erase(stream, io - stream);
  return name;
}

template <Side side>
Cell DTypeCell(const RowContext& context) {
  const Item* item = ItemOn(context, side);
  return item == nullptr || !item->dtype ? Cell() : TextCell(*item->dtype);
}

// As NumPy's tuple: "(2, 3)", "(3,)".
template <Side side>
Cell TupleCell(const RowContext& context) {
  const Item* item = ItemOn(context, side);
  if (item == nullptr) return {};
  return match::TupleText(*item->shape);
}

// As statistic.csv has it: "(2,3)", "(3)".
template <Side side>
Cell CsvShapeCell(const RowContext& context) {
  const Item* item = ItemOn(context, side);
  if (item == nullptr) return {};
  return fmt::format("({})", fmt::join(item->shape, ","));
}

template <Side side>
Cell ListCell(const RowContext& context) {
  const Item* item = ItemOn(context, side);
  if (item == nullptr) return {};
  return match::ShapeText(*item->shape);
}

template <Side side, size_t index>
Cell StatisticCell(const RowContext& context) {
  const Item* item = ItemOn(context, side);
  if (item == nullptr) return {};
  const Recorded& recorded = item->statistics[index];
  if (const auto* v = std::get_if<bool>(&recorded)) return TextCell(*v ? "True" : "False");
  if (const auto* v = std::get_if<int64_t>(&recorded)) return *v;
  if (const auto* v = std::get_if<double>(&recorded)) return NumberCell(*v);
  return {};
}

template <Metric TensorMetrics::*member>
Cell MetricCell(const RowContext& context) {
  const double* value = std::get_if<double>(&((*context.row.tensor).*member));
  return value == nullptr ? Cell() : NumberCell(*value);
}

// The newest release keeps the sign.
template <size_t index, bool is_signed>
Cell DifferenceCell(const RowContext& context) {
  const Metric difference = context.row.statistics().difference[index];
  const double* value = std::get_if<double>(&difference);
  if (value == nullptr) return {};
  return NumberCell(is_signed ? *value : std::abs(*value));
}

template <size_t index>
Cell PercentCell(const RowContext& context) {
  const StatisticDifferences differences = context.row.statistics();
  if (!std::holds_alternative<double>(differences.difference[index])) return {};
  const double* value = std::get_if<double>(&differences.relative_percent[index]);
  if (value == nullptr) return TextCell("N/A");
  return std::isnan(*value) ? TextCell("Nan") : Cell(PythonFloat(*value) + "%");
}

Cell ResultCell(const RowContext& context) {
  return context.row.result.empty() ? Cell() : TextCell(context.row.result);
}

Cell MessageCell(const RowContext& context) {
  std::string text;
  for (const Note& note : context.row.notes) {
    if (!text.empty()) text += "; ";
    text += fmt::format("[{}] {}", note.code, note.text);
  }
  return text.empty() ? Cell() : Cell(text);
}

Cell VerdictCell(const RowContext& context) { return TextCell(VerdictName(context.row.verdict)); }
Cell ReasonCell(const RowContext& context) {
  return context.row.reason.empty() ? Cell() : TextCell(context.row.reason);
}

using CellOf = Cell (*)(const RowContext&);

void AddPair(std::string_view target, std::string_view golden, CellOf of_target, CellOf of_golden,
             std::vector<Column>& columns) {
  columns.push_back({target, of_target});
  columns.push_back({golden, of_golden});
}

void AddTensorColumns(bool newest, std::vector<Column>& columns) {
  columns.push_back({"Cosine", MetricCell<&TensorMetrics::cosine>});
  if (newest) columns.push_back({"EucDist", MetricCell<&TensorMetrics::euclidean_distance>});
  columns.push_back({"MaxAbsErr", MetricCell<&TensorMetrics::max_abs_error>});
  columns.push_back({"MaxRelativeErr", MetricCell<&TensorMetrics::max_relative_error>});
  columns.push_back(
      {"One Thousandth Err Ratio", MetricCell<&TensorMetrics::below_thousandth_ratio>});
  columns.push_back(
      {"Five Thousandths Err Ratio", MetricCell<&TensorMetrics::below_five_thousandths_ratio>});
}

template <bool is_signed>
void AddDifferences(std::vector<Column>& columns) {
  columns.push_back({"Max diff", DifferenceCell<0, is_signed>});
  columns.push_back({"Min diff", DifferenceCell<1, is_signed>});
  columns.push_back({"Mean diff", DifferenceCell<2, is_signed>});
  columns.push_back({"L2norm diff", DifferenceCell<3, is_signed>});
  columns.push_back({"MaxRelativeErr", PercentCell<0>});
  columns.push_back({"MinRelativeErr", PercentCell<1>});
  columns.push_back({"MeanRelativeErr", PercentCell<2>});
  columns.push_back({"NormRelativeErr", PercentCell<3>});
}

void AddNames(bool has_tensors, bool newest, std::vector<Column>& columns) {
  const CellOf target = has_tensors ? FileCell<kT> : newest ? KeyCell<kT> : KeyAndCsvCell<kT>;
  const CellOf golden = has_tensors ? FileCell<kG> : newest ? KeyCell<kG> : KeyAndCsvCell<kG>;
  AddPair("NPU Name", "Bench Name", target, golden, columns);
  AddPair("NPU Dtype", "Bench Dtype", DTypeCell<kT>, DTypeCell<kG>, columns);
  const CellOf target_shape = newest        ? ListCell<kT>
                              : has_tensors ? TupleCell<kT>
                                            : CsvShapeCell<kT>;
  const CellOf golden_shape = newest        ? ListCell<kG>
                              : has_tensors ? TupleCell<kG>
                                            : CsvShapeCell<kG>;
  AddPair("NPU Tensor Shape", "Bench Tensor Shape", target_shape, golden_shape, columns);
}

// Upstream's rule on the maxima alone.
std::string AccuracyOf(const ComparedRow& row) {
  const auto target = NumberOf(row.target->statistics[0]);
  const auto golden = NumberOf(row.golden->statistics[0]);
  if (!target || !golden) return {};
  if (std::isnan(*target) && std::isnan(*golden)) return "Yes";
  if (*target == *golden) return "Yes";  // also equal infinities
  const double size = std::max(std::abs(*target), std::abs(*golden));
  const double ratio = std::abs(*target - *golden) / (size + measure::kWarningRegulator);
  return ratio <= measure::kWarningRatio ? "Yes" : "No";
}

}  // namespace

void FillGraphResults(Comparison& comparison) {
  for (ComparedRow& row : comparison.rows) {
    if (!row.target || !row.golden) {
      row.result = {};
    } else if (comparison.mode == CompareMode::kStatistics) {
      row.DropNotes([](std::string_view code) { return code == "check"; });
      row.result = AccuracyOf(row);
    } else if (comparison.mode == CompareMode::kTensor && row.result != "Yes") {
      if (row.result != "No") row.result = {};
    }
  }
}

std::vector<Column> GraphColumnsOf(const Comparison& comparison, bool newest) {
  std::vector<Column> columns;
  const bool has_tensors = comparison.mode == CompareMode::kTensor;
  AddNames(has_tensors, newest, columns);
  constexpr std::array kStatistics = {
      Column{"NPU max", StatisticCell<kT, 0>},    Column{"NPU min", StatisticCell<kT, 1>},
      Column{"NPU mean", StatisticCell<kT, 2>},   Column{"NPU l2norm", StatisticCell<kT, 3>},
      Column{"Bench max", StatisticCell<kG, 0>},  Column{"Bench min", StatisticCell<kG, 1>},
      Column{"Bench mean", StatisticCell<kG, 2>}, Column{"Bench l2norm", StatisticCell<kG, 3>},
  };
  columns.insert(columns.end(), kStatistics.begin(), kStatistics.end());
  columns.push_back({"Accuracy Reached or Not", ResultCell});
  columns.push_back({"Err_message", MessageCell});
  if (has_tensors) {
    AddTensorColumns(newest, columns);
  } else if (newest) {
    AddDifferences<true>(columns);
    AddPair("NPU CSV File", "Bench CSV File", CsvCell<kT>, CsvCell<kG>, columns);
  } else {
    AddDifferences<false>(columns);
  }
  columns.push_back({"Verdict", VerdictCell});
  columns.push_back({"Reason", ReasonCell});
  return columns;
}

}  // namespace plumbline::report
