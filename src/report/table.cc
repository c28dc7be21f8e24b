#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/file/text_file.h"
#include "base/process/parallel.h"
#include "base/text/csv.h"
#include "base/text/number_text.h"
#include "formats/table/xlsx.h"
#include "match/expand.h"
#include "report/graph_table.h"
#include "report/result_json.h"

namespace plumbline::report {

namespace {

std::vector<std::string_view> Header(const std::vector<Column>& columns) {
  std::vector<std::string_view> names;
  names.reserve(columns.size());
  for (const Column& column : columns) names.push_back(column.name);
  return names;
}

RowContext ContextOf(const Comparison& comparison, const StackTexts& stacks, size_t index) {
  const ComparedRow& row = comparison.rows[index];
  const bool first_of_call = comparison.calls[row.call].first_row == index;
  return {comparison, row, first_of_call, row.statistics(), &stacks};
}

// Rows that one thread formats in one go, and how many such blocks are held at a time.
constexpr size_t kBlock = 512, kBlocksHeld = 16;

xlsx::Fill FillOf(RowColor color) {
  switch (color) {
    case RowColor::kNone:
      return xlsx::Fill::kNone;
    case RowColor::kYellow:
      return xlsx::Fill::kYellow;
    case RowColor::kRed:
      return xlsx::Fill::kRed;
  }
  return xlsx::Fill::kNone;
}

// The cell and a comma. Numbers need no quotes and are no formulas.
void AppendCsvCell(const Cell& cell, std::string& out) {
  const auto* percent = std::get_if<Percent>(&cell);
  if (const auto* text = std::get_if<std::string>(&cell)) {
    csv::AppendCell(*text, out);
  } else if (percent != nullptr && std::signbit(percent->value)) {
    csv::AppendCell(CellText(cell), out);  // "-1.0%" reads as a formula
  } else if (const auto* view = std::get_if<std::string_view>(&cell)) {
    csv::AppendCell(*view, out);
  } else {
    AppendCellText(cell, out);
  }
  out += ',';
}

}  // namespace

Status WriteCell(const Cell& cell, xlsx::Writer& writer) {
  if (const auto* v = std::get_if<double>(&cell)) return writer.Number(*v);
  if (const auto* v = std::get_if<int64_t>(&cell)) return writer.Number(static_cast<double>(*v));
  if (const auto* v = std::get_if<std::string>(&cell)) return writer.Text(*v);
  if (const auto* v = std::get_if<std::string_view>(&cell)) return writer.Text(*v);
  return writer.Text(CellText(cell));
}

void AppendCellText(const Cell& cell, std::string& out) {
  if (const auto* real = std::get_if<double>(&cell)) {
    AppendPythonFloat(*real, out);
  } else if (const auto* integer = std::get_if<int64_t>(&cell)) {
    out += std::to_string(*integer);
  } else if (const auto* text = std::get_if<std::string>(&cell)) {
    out += *text;
  } else if (const auto* view = std::get_if<std::string_view>(&cell)) {
    out += *view;
  } else if (const auto* percent = std::get_if<Percent>(&cell)) {
    AppendPythonFloat(percent->value, out);
    out += '%';
  }
}

std::string CellText(const Cell& cell) {
  std::string text;
  AppendCellText(cell, text);
  return text;
}

Status WriteCsv(const Comparison& comparison, const std::string& path) {
  return WriteCsv(comparison, ColumnsOf(comparison), path);
}

Status WriteCsv(const Comparison& comparison, const std::vector<Column>& columns,
                const std::string& path) {
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
  csv::AppendRow(std::span<const std::string_view>(Header(columns)), file.text());
  const StackTexts stacks(comparison, &match::ListText);
  const auto format = [&](size_t begin, size_t end, std::string& text) {
    text.clear();
    for (size_t i = begin; i < end; ++i) {
      const RowContext context = ContextOf(comparison, stacks, i);
      for (const Column& column : columns) AppendCsvCell(column.cell(context), text);
      text.back() = '\n';  // the last comma
    }
  };
  constexpr size_t kHeld = kBlock * kBlocksHeld;
  const size_t rows = comparison.rows.size();
  std::array<std::string, kBlocksHeld> texts, next;
  const auto format_next = [&](size_t begin) {
    ParallelBlocks(
        std::min(rows - std::min(rows, begin), kHeld), kBlock,
        [&](size_t from, size_t to) { format(begin + from, begin + to, next[from / kBlock]); });
  };
  format_next(0);
  for (size_t begin = 0; begin < rows; begin += kHeld) {
    texts.swap(next);
    const size_t blocks = (std::min(rows - begin, kHeld) + kBlock - 1) / kBlock;
    Status written;
    const auto write = [&] {
      for (size_t k = 0; k < blocks && written; ++k) written = file.Write(texts[k]);
    };
    RunBoth(write, [&] { format_next(begin + kHeld); });
    PL_TRY(std::move(written));
  }
  return file.Close();
}

Status WriteXlsx(const Comparison& comparison, const std::string& path) {
  return WriteXlsx(comparison, ColumnsOf(comparison), path);
}

Status WriteXlsx(const Comparison& comparison, const std::vector<Column>& columns,
                 const std::string& path) {
  PL_TRY_ASSIGN(xlsx::Writer writer, xlsx::Writer::CreateEmpty(path));
  PL_TRY(writer.BeginSheet(comparison.of_graphs() ? "Sheet1" : "Sheet", Header(columns)));
  const StackTexts stacks(comparison, &match::ListText);
  for (size_t i = 0; i < comparison.rows.size(); ++i) {
    const RowContext context = ContextOf(comparison, stacks, i);
    PL_TRY(writer.BeginRow(FillOf(context.row.color)));
    for (const Column& column : columns) PL_TRY(WriteCell(column.cell(context), writer));
  }
  return writer.Close();
}

namespace {

using DatabaseCell = sqlite_table::Cell;

constexpr std::array<std::string_view, 4> kStatistics = {"max", "min", "mean", "norm"};

struct MetricColumn {
  std::string_view name;
  Metric TensorMetrics::*metric;
};
constexpr std::array<MetricColumn, 7> kTensorMetrics = {{
    {"cosine", &TensorMetrics::cosine},
    {"max_abs_error", &TensorMetrics::max_abs_error},
    {"max_relative_error", &TensorMetrics::max_relative_error},
    {"below_thousandth_ratio", &TensorMetrics::below_thousandth_ratio},
    {"below_five_thousandths_ratio", &TensorMetrics::below_five_thousandths_ratio},
    {"relative_l2", &TensorMetrics::relative_l2},
    {"max_ulp", &TensorMetrics::max_ulp},
}};

void AddValueColumns(CompareMode mode, std::vector<CellColumn>& columns) {
  switch (mode) {
    case CompareMode::kTensor:
      for (const MetricColumn& column : kTensorMetrics) {
        columns.push_back({std::string(column.name), CellKind::kReal});
      }
      columns.push_back({"element_count", CellKind::kInteger});
      columns.push_back({"mismatch_count", CellKind::kInteger});
      break;
    case CompareMode::kStatistics:
      for (const std::string_view kind : {"diff", "percent"}) {
        for (const std::string_view name : kStatistics) {
          columns.push_back({fmt::format("{}_{}", name, kind), CellKind::kReal});
        }
      }
      break;
    case CompareMode::kDigest:
      columns.push_back({"target_md5", CellKind::kText});
      columns.push_back({"golden_md5", CellKind::kText});
      break;
  }
}

DatabaseCell Number(double value) {
  if (std::isnan(value)) return std::string_view("nan");
  return value;
}

DatabaseCell ErrorCell(double error) {
  return std::isnan(error) ? DatabaseCell() : DatabaseCell(error);
}

DatabaseCell MetricCell(const Metric& metric) {
  const double* value = std::get_if<double>(&metric);
  return value == nullptr ? DatabaseCell() : Number(*value);
}

DatabaseCell RecordedCell(const Recorded& recorded) {
  if (const auto* truth = std::get_if<bool>(&recorded)) return int64_t{*truth};
  if (const auto* integer = std::get_if<int64_t>(&recorded)) return *integer;
  if (const auto* real = std::get_if<double>(&recorded)) return Number(*real);
  if (const auto* text = std::get_if<Text>(&recorded)) return text->view();
  return {};
}

DatabaseCell TextOrNull(std::string_view text) {
  return text.empty() ? DatabaseCell() : DatabaseCell(text);
}

DatabaseCell TextCell(const Slot<Item>& item, OptionalText Item::*member) {
  if (!item || !((*item).*member)) return {};
  return ((*item).*member)->view();
}

}  // namespace

std::vector<CellColumn> CellColumnsOf(CompareMode mode) {
  std::vector<CellColumn> columns = {
      {"row", CellKind::kInteger},       {"call", CellKind::kInteger},
      {"name", CellKind::kText},         {"role", CellKind::kWord},
      {"verdict", CellKind::kWord},      {"reason", CellKind::kWord},
      {"error", CellKind::kReal},        {"explained_error", CellKind::kReal},
      {"result", CellKind::kWord},       {"target_dtype", CellKind::kWord},
      {"golden_dtype", CellKind::kWord}, {"target_shape", CellKind::kWord},
      {"golden_shape", CellKind::kWord},
  };
  for (const std::string_view side : {"target", "golden"}) {
    for (const std::string_view name : kStatistics) {
      columns.push_back({fmt::format("{}_{}", side, name), CellKind::kStatistic});
    }
  }
  AddValueColumns(mode, columns);
  columns.push_back({"notes", CellKind::kText});
  return columns;
}

void RowCells::AddMetrics(const ComparedRow& row) {
  switch (comparison_.mode) {
    case CompareMode::kTensor:
      for (const MetricColumn& column : kTensorMetrics) {
        cells_.push_back(MetricCell((*row.tensor).*column.metric));
      }
      cells_.emplace_back(static_cast<int64_t>(row.tensor->element_count));
      cells_.emplace_back(static_cast<int64_t>(row.tensor->mismatch_count));
      return;
    case CompareMode::kStatistics: {
      const StatisticDifferences differences = row.statistics();
      for (const Metric& metric : differences.difference) cells_.push_back(MetricCell(metric));
      for (const Metric& metric : differences.relative_percent) {
        cells_.push_back(MetricCell(metric));
      }
      return;
    }
    case CompareMode::kDigest:
      for (const Slot<Item>* side : {&row.target, &row.golden}) {
        cells_.push_back(*side ? TextOrNull((*side)->digest) : DatabaseCell());
      }
      return;
  }
}

const std::vector<DatabaseCell>& RowCells::Of(size_t index) {
  const ComparedRow& row = comparison_.rows[index];
  cells_.clear();
  cells_.emplace_back(static_cast<int64_t>(index));
  cells_.emplace_back(static_cast<int64_t>(row.call));
  cells_.emplace_back(row.item().name.view());
  cells_.emplace_back(RoleName(row.item().role));
  cells_.emplace_back(VerdictName(row.verdict));
  cells_.emplace_back(row.reason.view());
  cells_.push_back(ErrorCell(row.error));
  cells_.push_back(ErrorCell(row.expected));
  cells_.emplace_back(row.result.view());
  for (const auto member : {&Item::dtype, &Item::shape_text}) {
    cells_.push_back(TextCell(row.target, member));
    cells_.push_back(TextCell(row.golden, member));
  }
  for (const Slot<Item>* side : {&row.target, &row.golden}) {
    for (size_t i = 0; i < kStatistics.size(); ++i) {
      cells_.push_back(*side ? RecordedCell((*side)->statistics[i]) : DatabaseCell());
    }
  }
  AddMetrics(row);
  notes_.clear();
  for (const Note& note : row.notes) {
    fmt::format_to(std::back_inserter(notes_), "{}[{}] {}", notes_.empty() ? "" : "; ", note.code,
                   note.text);
  }
  cells_.push_back(TextOrNull(notes_));
  return cells_;
}

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::optional<double> RealOf(const DatabaseCell& cell) {
  if (const auto* real = std::get_if<double>(&cell)) return *real;
  if (const auto* integer = std::get_if<int64_t>(&cell)) return static_cast<double>(*integer);
  const auto* text = std::get_if<std::string_view>(&cell);
  if (text != nullptr && *text == "nan") return kNan;  // a number of the result, not a missing one
  return std::nullopt;
}

// Fills one column.
class ColumnBuilder {
 public:
  ColumnBuilder(CellColumn declared, size_t rows) {
    column_.name = std::move(declared.name);
    column_.kind = declared.kind;
    column_.valid.resize((rows + 7) / 8);
  }

  void Add(size_t row, const DatabaseCell& cell) {
    if (AddValue(cell)) {
      uint8_t& bits = column_.valid[row / 8];
      bits = static_cast<uint8_t>(bits | 1U << (row % 8));
    } else {
      ++column_.null_count;
    }
  }

  RowColumn Take() { return std::move(column_); }

 private:
  // Adds the value or what stands for none; false: there is none.
  bool AddValue(const DatabaseCell& cell) {
    const auto* text = std::get_if<std::string_view>(&cell);
    switch (column_.kind) {
      case CellKind::kInteger: {
        const auto* integer = std::get_if<int64_t>(&cell);
        column_.integers.push_back(integer == nullptr ? 0 : *integer);
        return integer != nullptr;
      }
      case CellKind::kReal:
      case CellKind::kStatistic: {
        const std::optional<double> real = RealOf(cell);
        column_.reals.push_back(real.value_or(kNan));
        return real.has_value();
      }
      case CellKind::kText:
        column_.texts.Add(text == nullptr ? std::string_view() : *text);
        break;
      case CellKind::kWord:
        column_.codes.push_back(text == nullptr ? 0 : CodeOf(*text));
        break;
    }
    return text != nullptr;
  }

  int32_t CodeOf(std::string_view word) {
    const auto [at, is_new] =
        codes_.try_emplace(std::string(word), static_cast<int32_t>(codes_.size()));
    if (is_new) column_.texts.Add(word);
    return at->second;
  }

  RowColumn column_;
  std::unordered_map<std::string, int32_t> codes_;
};

}  // namespace

std::shared_ptr<const RowColumns> MakeRowColumns(const Comparison& comparison) {
  RowCells cells(comparison);
  return MakeRowColumns(
      CellColumnsOf(comparison.mode), comparison.rows.size(),
      [&](size_t row) -> const std::vector<DatabaseCell>& { return cells.Of(row); });
}

std::shared_ptr<const RowColumns> MakeRowColumns(std::vector<CellColumn> columns, size_t row_count,
                                                 const CellsOfRow& cells) {
  std::vector<ColumnBuilder> builders;
  for (CellColumn& column : columns) builders.emplace_back(std::move(column), row_count);
  for (size_t row = 0; row < row_count; ++row) {
    const std::vector<DatabaseCell>& of_row = cells(row);
    for (size_t i = 0; i < builders.size(); ++i) builders[i].Add(row, of_row[i]);
  }
  auto result = std::make_shared<RowColumns>();
  result->row_count = row_count;
  for (ColumnBuilder& builder : builders) result->columns.push_back(builder.Take());
  return result;
}

// The column declarations of table.h.

namespace {

// Spellings of upstream's cells.
constexpr std::string_view kNone = "None";
constexpr std::string_view kNotAvailable = "N/A";
constexpr std::string_view kNanText = "Nan";
constexpr std::string_view kUnsupported = "unsupported";
constexpr std::string_view kShapeUnmatched = "shape unmatched";

Cell Word(std::string_view text) { return text; }

// A number; what a spreadsheet cannot hold as one is a text, with a tab so that it stays a text.
Cell NumberCell(double value) {
  if (std::isnan(value)) return Word(kNanText);
  if (std::isinf(value)) return Word(value > 0 ? "inf\t" : "-inf\t");
  return value;
}

Cell NewestCell(const Recorded& recorded) {
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
  return item == nullptr ? Word(kNotAvailable) : NewestCell(item->statistics[index]);
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
  if (difference != nullptr && std::isnan(*difference)) return Word(kNanText);
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
      return Word(kNanText);
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
constexpr std::array kMetricColumns = {
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
constexpr std::array kStatisticColumns = {
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
      Append(kMetricColumns, columns);
      Append(kStatisticColumns, columns);
      columns.push_back(kAccuracy);
      columns.push_back(kMessage);
      break;
    case CompareMode::kStatistics:
      Append(kDifferences, columns);
      Append(kStatisticColumns, columns);
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
