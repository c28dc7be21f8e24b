// Rows of the files of a pre-check: their columns, declared once, how values are spelled there, and
// rows read back.

#ifndef PLUMBLINE_PRECHECK_RESULT_ROWS_H_
#define PLUMBLINE_PRECHECK_RESULT_ROWS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/text/csv.h"
#include "plumbline/result.h"
#include "precheck/outcome.h"

namespace plumbline::precheck {

// Whose columns: those of PyTorch, 23 in the details, or of MindSpore, 9.
enum class ResultForm : uint8_t { kPyTorch, kMindSpore };

// Names of the columns, in order.
std::vector<std::string_view> ResultHeader(ResultForm form);
std::vector<std::string_view> DetailsHeader(ResultForm form);

// A column of the details for programs.
struct DetailsColumn {
  std::string_view header;  // as in the files
  std::string_view key;     // one word in English, "max_abs_error"
  bool is_number = false;
};
// In the order of DetailsHeader().
std::vector<DetailsColumn> DetailsColumns(ResultForm form);
// Nothing, a number, or a text of the row or of the program.
using DetailsCell = std::variant<std::monostate, double, std::string_view>;
std::vector<DetailsCell> DetailsCells(const OutputRow& row, ResultForm form);

// The start of a file: the UTF-8 byte order mark and the header.
std::string HeaderText(std::span<const std::string_view> names);
// Appends a row that ends in CR LF; line breaks in cells become LF.
void AppendCsvRow(std::span<const std::string> cells, std::string& out);
// Appends a number as upstream writes it: a double with `precision` digits behind the point,
// narrower ones by their shortest digits as NumPy prints a float32, an integer bare; one blank for
// none.
void AppendNumber(const Cell& cell, int precision, std::string& out);

// The rows of one call, as they stand in the files. Nothing to judge is never a pass: a direction
// with another status than kNone and without rows gets one that says why.
struct CallRows {
  std::string details, result;
};
CallRows RowsOf(const CallOutcome& outcome, ResultForm form, int precision);

// The first cell of a row, without what guards it against spreadsheets.
std::string ReadName(const csv::Row& row);
// "Functional.conv2d.0" of "Functional.conv2d.0.forward.output.0"; empty where it is none.
std::string_view CallOfOutput(std::string_view name);

// The parts of the name of an output whose call has three or four: upstream's
// `<Type>.[<prefix>.]<name>.<n>.<direction>.output.<k>`.
struct OutputName {
  std::string_view call;  // "Functional.conv2d.0"
  std::string_view api;   // "conv2d", "linalg.inv"
  bool is_forward = true;
};
std::optional<OutputName> ParseOutputName(std::string_view name);

// One row of a details file as it was read.
struct DetailsRow {
  OutputRow output;
  std::string problem;  // what could not be read, "Status: \"TRUE\" is no status"; else empty
};
using VisitDetailsRow = std::function<plumbline::Status(DetailsRow& row)>;

// Rows of a details file of either release, or of MindSpore, one after the other; numbers and
// status words in any of their spellings. A last line that a kill has torn is left out.
//
// kInvalidArgument: the header misses columns of `needed`, which it names. kNotFound, kCorrupt,
// kIo.
plumbline::Status VisitDetails(const std::string& path, std::span<const std::string_view> needed,
                               const VisitDetailsRow& visit);

// One row of a result file as it was read.
struct ResultRow {
  std::string call;
  CheckStatus forward = CheckStatus::kNone;
  CheckStatus backward = CheckStatus::kNone;
  std::string message;
};
using VisitResultRow = std::function<plumbline::Status(const ResultRow& row)>;

// Rows of a result file, as VisitDetails(). kCorrupt: a row has no words for both directions.
plumbline::Status VisitResults(const std::string& path, const VisitResultRow& visit);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_RESULT_ROWS_H_
