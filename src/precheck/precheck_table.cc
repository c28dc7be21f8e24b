// The workbook of a pre-check: the rows of its csv files as people read them.

#include <cmath>
#include <string_view>
#include <vector>

#include "base/text/number_text.h"
#include "formats/table/xlsx.h"
#include "precheck/precheck_files.h"
#include "precheck/result_rows.h"

namespace plumbline::precheck {
namespace {

// A pass needs no colour: what is to be looked at has one.
xlsx::Fill FillOf(Status status) {
  switch (status) {
    case Status::kError:
      return xlsx::Fill::kRed;
    case Status::kWarning:
      return xlsx::Fill::kYellow;
    case Status::kSkip:
      return xlsx::Fill::kGrey;
    case Status::kPass:
    case Status::kNone:
      break;
  }
  return xlsx::Fill::kNone;
}

std::string_view WordOf(Status status) {
  return status == Status::kNone ? std::string_view() : StatusWord(status);
}

plumbline::Status WriteResults(const PrecheckReport& report, xlsx::Writer& writer) {
  PL_TRY(writer.BeginSheet("result", ResultHeader(FormOf(report)), xlsx::Look::kTable));
  return VisitResults(report.result_path, [&](const ResultRow& row) -> plumbline::Status {
    PL_TRY(writer.BeginRow(FillOf(CallStatus(row.forward, row.backward))));
    PL_TRY(writer.Text(row.call));
    PL_TRY(writer.Text(WordOf(row.forward)));
    PL_TRY(writer.Text(WordOf(row.backward)));
    return writer.Text(row.message);
  });
}

// A number that a sheet cannot hold is a text.
plumbline::Status WriteCell(const DetailsCell& cell, xlsx::Writer& writer) {
  if (const auto* number = std::get_if<double>(&cell)) {
    if (std::isfinite(*number)) return writer.Number(*number);
    std::string text;
    AppendPythonFloat(*number, text);
    return writer.Text(text);
  }
  const auto* text = std::get_if<std::string_view>(&cell);
  return writer.Text(text == nullptr ? std::string_view() : *text);
}

plumbline::Status WriteDetails(const PrecheckReport& report, xlsx::Writer& writer) {
  const ResultForm form = FormOf(report);
  const std::vector<std::string_view> header = DetailsHeader(form);
  PL_TRY(writer.BeginSheet("details", header, xlsx::Look::kTable));
  return VisitDetails(report.details_path, header, [&](DetailsRow& row) -> plumbline::Status {
    if (!row.problem.empty()) return Error(ErrorCode::kCorrupt, row.problem).In(row.output.name);
    PL_TRY(writer.BeginRow(FillOf(row.output.status)));
    for (const DetailsCell& cell : DetailsCells(row.output, form)) PL_TRY(WriteCell(cell, writer));
    return {};
  });
}

}  // namespace

plumbline::Status WriteXlsx(const PrecheckReport& report, const std::string& path) {
  PL_TRY_ASSIGN(xlsx::Writer writer, xlsx::Writer::CreateEmpty(path));
  PL_TRY(WriteResults(report, writer));
  PL_TRY(WriteDetails(report, writer));
  return writer.Close();
}

}  // namespace plumbline::precheck
