// The machine form of a comparison (docs/reference/compare.md, "machine form").

#ifndef PLUMBLINE_REPORT_RESULT_JSON_H_
#define PLUMBLINE_REPORT_RESULT_JSON_H_

#include <string>

#include "plumbline/compare.h"
#include "report/json_object.h"

namespace plumbline::report {

// Everything: header, counts, first wrong call, one object per row. Numbers are numbers; NaN and
// infinities are the texts "nan", "inf", "-inf"; absent metrics are null.
Status WriteResultJson(const Comparison& comparison, const std::string& path);

// The same as JSON lines: the header object, then one line per row.
Status WriteJsonLines(const Comparison& comparison, const std::string& path);

std::string_view RoleName(ItemRole role);  // "input", "parameter", "output", "parameter_grad"
// Members of the object before its rows; `object` is left open.
void AppendHeader(const Comparison& comparison, ObjectWriter& object);
// One row, an object.
void AppendRow(const Comparison& comparison, const ComparedRow& row, std::string& out);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_RESULT_JSON_H_
