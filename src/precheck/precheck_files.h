// Files for people and machines beside the csv files of a pre-check: a workbook, a page, JUnit; and
// the rows for programs.

#ifndef PLUMBLINE_PRECHECK_PRECHECK_FILES_H_
#define PLUMBLINE_PRECHECK_PRECHECK_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"
#include "precheck/precheck_report.h"

namespace plumbline::report {
struct RowColumns;
}  // namespace plumbline::report

namespace plumbline::precheck {

enum class PrecheckFormat : uint8_t { kXlsx, kHtml, kJunit };
std::string_view PrecheckFormatName(PrecheckFormat format);  // "xlsx", what --format takes
// Each once, in the order of the enumeration; "csv" is a word that adds nothing. kInvalidArgument
// names an unknown word.
Result<std::vector<PrecheckFormat>> PrecheckFormatsOf(const std::vector<std::string>& words);

// The file of a format beside the csv files and with their time, in whose place a run that goes on
// writes its own: accuracy_checking_{tables,report,junit}_<time>.{xlsx,html,xml}.
std::string PathOf(PrecheckFormat format, const PrecheckReport& report);
// Writes them and adds their paths to report.files. Requires: the csv files are closed.
// Errors of reading these, and kIo; files before the failing one are there.
plumbline::Status WritePrecheckFiles(const std::vector<PrecheckFormat>& formats,
                                     PrecheckReport& report);

// Each appears under `path` complete or not at all.

// Both csv files as sheets "result" and "details", cells in the colour of the row's status.
plumbline::Status WriteXlsx(const PrecheckReport& report, const std::string& path);
// One page that needs nothing else: the answer, counts, outputs that are no pass, with the errors
// of those that this run judged.
plumbline::Status WriteHtml(const PrecheckReport& report, const std::string& path);
// A test case for each direction of a call. A warning passes with a remark; what was not judged is
// skipped; a run that judged nothing or was interrupted has one case more that says so.
plumbline::Status WriteJunit(const PrecheckReport& report, const std::string& path);

// Rows that one page holds; the worst ones stay, and the page says so.
inline constexpr size_t kMostFindings = 20000;
// Outputs that are no pass, those of earlier runs too, the worst first. A direction without outputs
// is one that says why.
Result<std::vector<OutputRow>> FindingsOf(const PrecheckReport& report);

// The details file as columns (DetailsColumn::key).
Result<std::shared_ptr<const report::RowColumns>> DetailsTable(const PrecheckReport& report);
// The result file as a JSON array: objects with call, forward, backward, message.
Result<std::string> CallsJson(const PrecheckReport& report);
// The details file as one, by key. NaN and infinities are the texts "nan", "inf" and "-inf".
Result<std::string> DetailsJson(const PrecheckReport& report);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_PRECHECK_FILES_H_
