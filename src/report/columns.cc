// The column declarations of table.h.

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "match/python_text.h"
#include "report/graph_table.h"
#include "report/table.h"

namespace plumbline::report {
namespace {

// Spellings of upstream's cells.
constexpr std::string_view kNone = "None";
constexpr std::string_view kNotAvailable = "N/A";
constexpr std::string_view kNan = "Nan";
constexpr std::string_view kUnsupported = "unsupported";
constexpr std::string_view kShapeUnmatched = "shape unmatched";

Cell Word(std::string_view text) { return text; }

// A number; what a spreadsheet cannot hold as one is a text, with a tab so that it stays a text.
Cell NumberCell(double value) {
  if (std::isnan(value)) return Word(kNan);
  if (std::isinf(value)) return Word(value > 0 ? "inf\t" : "-inf\t");
  return value;
}

Cell RecordedCell(const Recorded& recorded) {
  if (const auto* v = std::get_if<bool>(&recorded)) return Word(*v ? "True" : "False");
  if (const auto* v = std::get_if<int64_t>(&recorded)) return *v;
  if (const auto* v = std::get_if<double>(&recorded)) return NumberCell(*v);
  if (const auto* v = std::get_if<Text>(&recorded)) {
    const bool special = *v == "inf" || *v == "-inf" || *v == "nan";
    return special ? Cell(*v + "\t") : Cell(v->view());
  }
  return Word(kNone);
}

template <Side side>
Cell Name(const RowContext& context) {
  const Item* item = ItemOn(context, side);
  return item == nullptr ? Word(kNotAvailable) : Word(item->name);
}

template <Side side>
Cell DTypeCell(const RowContext& context) {
  const Item* item = ItemOn(context, side);
  if (item == nullptr) return Word(kNotAvailable);
  return item->dtype ? Word(*item->dtype) : Word(kNone);
}

template <Side side>
Cell ShapeCell(const RowContext& context) {
  const Item* item = ItemOn(context, side);
  if (item == nullptr) return Word(kNotAvailable);
  return item->shape_text ? Word(*item->shape_text) : Word(kNone);
}

template <Side side, size_t index>
Cell StatisticCell(const RowContext& context) {
  const Item* item = ItemOn(context, side);
  return item == nullptr ? Word(kNotAvailable) : RecordedCell(item->statistics[index]);
}

template <Side side>
Cell DigestCell(const RowContext& context) {
  const Item* item = ItemOn(context, side);
  if (item == nullptr) return Word(kNotAvailable);
  return item->digest.empty() ? Word(kNone) : Word(item->digest);
}

template <size_t index>
Cell DifferenceCell(const RowContext& context) {
  const Metric& metric = context.differences.difference[index];
  const double* value = std::get_if<double>(&metric);
  return value == nullptr ? Word(kNotAvailable) : NumberCell(*value);
}

template <size_t index>
Cell PercentCell(const RowContext& context) {
  const Metric& metric = context.differences.relative_percent[index];
  const double* value = std::get_if<double>(&metric);
  if (value == nullptr) return Word(kNotAvailable);
  const double* difference = std::get_if<double>(&context.differences.difference[index]);
  if (difference != nullptr && std::isnan(*difference)) return Word(kNan);
  return Percent{*value};
}

template <Metric TensorMetrics::*member>
Cell MetricCell(const RowContext& context) {
  const Metric& metric = (*context.row.tensor).*member;
  if (const double* value = std::get_if<double>(&metric)) return NumberCell(*value);
  switch (std::get<Absent>(metric)) {
    case Absent::kShapeMismatch:
      return Word(kShapeUnmatched);
    case Absent::kNonFinite:
      return Word(kNotAvailable);
    case Absent::kZeroNorm:
      return Word(kNan);
    default:
      return Word(kUnsupported);
  }
}

Cell ResultCell(const RowContext& context) {
  if (context.row.result.empty()) return {};
  return Word(context.row.result);
}

Cell MessageCell(const RowContext& context) {
  std::string text;
  for (const Note& note : context.row.notes) {
    if (!text.empty()) text += "; ";
    text += fmt::format("[{}] {}", note.code, note.text);
  }
  if (text.empty()) return {};
  return text;
}

Cell StackCell(const RowContext& context) {
  if (!context.first_of_call || !context.row.target) return Word(kNone);
  const std::string* spelled =
      context.stacks == nullptr ? nullptr : context.stacks->Find(context.row.call);
  if (spelled != nullptr) return Word(*spelled);
  const std::vector<std::string>& stack = context.comparison.stacks[context.row.call];
  return stack.empty() ? Word(kNone) : Cell(match::ListText(stack));
}

Cell DataNameCell(const RowContext& context) {
  const Item* item = ItemOn(context, Side::kTarget);
  if (item == nullptr || item->data_name.empty() || !context.row.golden) return Word("-1");
  return Word(item->data_name);
}

Cell VerdictCell(const RowContext& context) { return Word(VerdictName(context.row.verdict)); }

Cell ReasonCell(const RowContext& context) {
  if (context.row.reason.empty()) return {};
  return Word(context.row.reason);
}

constexpr Side kT = Side::kTarget;
constexpr Side kG = Side::kGolden;

constexpr std::array kPrefix = {
    Column{"NPU Name", Name<kT>},
    Column{"Bench Name", Name<kG>},
    Column{"NPU Dtype", DTypeCell<kT>},
    Column{"Bench Dtype", DTypeCell<kG>},
    Column{"NPU Tensor Shape", ShapeCell<kT>},
    Column{"Bench Tensor Shape", ShapeCell<kG>},
};
constexpr std::array kTensorMetrics = {
    Column{"Cosine", MetricCell<&TensorMetrics::cosine>},
    Column{"MaxAbsErr", MetricCell<&TensorMetrics::max_abs_error>},
    Column{"MaxRelativeErr", MetricCell<&TensorMetrics::max_relative_error>},
    Column{"One Thousandth Err Ratio", MetricCell<&TensorMetrics::below_thousandth_ratio>},
    Column{"Five Thousandths Err Ratio", MetricCell<&TensorMetrics::below_five_thousandths_ratio>},
};
constexpr std::array kDifferences = {
    Column{"Max diff", DifferenceCell<0>},     Column{"Min diff", DifferenceCell<1>},
    Column{"Mean diff", DifferenceCell<2>},    Column{"L2norm diff", DifferenceCell<3>},
    Column{"MaxRelativeErr", PercentCell<0>},  Column{"MinRelativeErr", PercentCell<1>},
    Column{"MeanRelativeErr", PercentCell<2>}, Column{"NormRelativeErr", PercentCell<3>},
};
constexpr std::array kStatistics = {
    Column{"NPU max", StatisticCell<kT, 0>},    Column{"NPU min", StatisticCell<kT, 1>},
    Column{"NPU mean", StatisticCell<kT, 2>},   Column{"NPU l2norm", StatisticCell<kT, 3>},
    Column{"Bench max", StatisticCell<kG, 0>},  Column{"Bench min", StatisticCell<kG, 1>},
    Column{"Bench mean", StatisticCell<kG, 2>}, Column{"Bench l2norm", StatisticCell<kG, 3>},
};
constexpr std::array kDigests = {
    Column{"NPU MD5", DigestCell<kT>},
    Column{"BENCH MD5", DigestCell<kG>},
};
constexpr Column kAccuracy = {"Accuracy Reached or Not", ResultCell};
constexpr Column kResult = {"Result", ResultCell};
constexpr Column kMessage = {"Err_message", MessageCell};
constexpr Column kStack = {"NPU_Stack_Info", StackCell};
constexpr Column kDataName = {"Data_name", DataNameCell};
constexpr std::array kVerdict = {
    Column{"Verdict", VerdictCell},
    Column{"Reason", ReasonCell},
};

template <size_t count>
void Append(const std::array<Column, count>& group, std::vector<Column>& columns) {
  for (const Column& column : group) columns.push_back(column);
}

}  // namespace

std::vector<Column> ColumnsOf(const Comparison& comparison) {
  if (comparison.of_graphs()) return GraphColumnsOf(comparison, /*newest=*/false);
  std::vector<Column> columns;
  Append(kPrefix, columns);
  switch (comparison.mode) {
    case CompareMode::kTensor:
      Append(kTensorMetrics, columns);
      Append(kStatistics, columns);
      columns.push_back(kAccuracy);
      columns.push_back(kMessage);
      break;
    case CompareMode::kStatistics:
      Append(kDifferences, columns);
      Append(kStatistics, columns);
      columns.push_back(kResult);
      columns.push_back(kMessage);
      break;
    case CompareMode::kDigest:
      Append(kDigests, columns);
      columns.push_back(kResult);
      break;
  }
  if (!comparison.stacks.empty()) columns.push_back(kStack);
  if (comparison.mode == CompareMode::kTensor) columns.push_back(kDataName);
  Append(kVerdict, columns);
  return columns;
}

}  // namespace plumbline::report
