// What reports say of rows and of the first wrong call, as upstream does and in lines of text; and
// how such texts stand inside HTML and XML.

#ifndef PLUMBLINE_REPORT_FINDINGS_H_
#define PLUMBLINE_REPORT_FINDINGS_H_

#include <string>
#include <string_view>

#include "plumbline/compare.h"

namespace plumbline::report {

// Texts inside HTML and XML.

// Appends `text` as the content of an element. Bytes that are not UTF-8, lone surrogates and NUL
// become U+FFFD.
void AppendHtmlText(std::string_view text, std::string& out);
// The same for XML attributes in double quotes and for contents whose line breaks must stay;
// control characters, which XML 1.0 cannot hold, become question marks.
void AppendXmlText(std::string_view text, std::string& out);

// What upstream's result columns say about a row: result, remarks, colour, advice.

// Fills `result` and `notes` of every row (docs/reference/compare.md, "Result", "Err_message"), and
// colours rows in the modes statistics and tensor, with the reasons among their notes, each once.
// Those of static graphs have no colours.
void FillTable(Comparison& comparison);

// Text of upstream's advisor file: the first suspect row and a hint where to look.
std::string AdviceText(const Comparison& comparison);

// What is said below the name of the first wrong call: a line for every fact, the missing or
// additional call first, and none twice. The cause class is named but where there is none to name,
// or where the call's own sentence says it (an argument of another value).
std::string FactLines(const FirstWrongCall& call);

// A word of a command that a shell takes as it is, in quotes where it must be.
std::string ShellWord(const std::string& word);
// The command that writes the first wrong call as a unit test; empty where there is none: no call is
// named, or it is no call of PyTorch's API with recorded inputs.
std::string ExtractCommand(const Comparison& comparison);

// The warning that a file beside a dump is damaged (an error of RunLoss::side_files).
std::string DamageWarning(const std::string& error);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_FINDINGS_H_
