// What the reason codes of rows that cannot be compared mean, in words.

#ifndef PLUMBLINE_REPORT_REASON_TEXT_H_
#define PLUMBLINE_REPORT_REASON_TEXT_H_

#include <string_view>

namespace plumbline::report {

// "golden has no such call" for "no-golden"; whether the sides agree is said where they do. Empty
// for codes that need no words. docs/design/verdict.md lists all codes.
std::string_view ReasonText(std::string_view code);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_REASON_TEXT_H_
