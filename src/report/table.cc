#include "report/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/csv.h"
#include "base/number_text.h"
#include "base/parallel.h"
#include "base/text_file.h"
#include "formats/xlsx.h"
#include "match/python_text.h"

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
  const std::vector<Column> columns = ColumnsOf(comparison);
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

}  // namespace plumbline::report
