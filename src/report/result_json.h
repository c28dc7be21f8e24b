// Results for programs: one JSON object, JSON lines, a SQLite database.

#ifndef PLUMBLINE_REPORT_RESULT_JSON_H_
#define PLUMBLINE_REPORT_RESULT_JSON_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json/json_feed.h"
#include "plumbline/compare.h"

namespace plumbline::report {

// Writing one JSON object of a report, member by member.

// As reports spell them: NaN and infinities are the texts "nan", "inf" and "-inf"; what does not
// exist is null.
void AppendNumber(double value, std::string& out);
void AppendMetric(const Metric& metric, std::string& out);
void AppendRecorded(const Recorded& recorded, std::string& out);
void AppendTexts(const std::vector<std::string>& values, std::string& out);

// Appends members with their commas; End() closes the object. `out` must outlive the writer.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out) : out_(out) { out_ += '{'; }
  void End() { out_ += '}'; }

  // Appends the key; the caller appends the value to what is returned.
  std::string& Key(std::string_view key);
  void Text(std::string_view key, std::string_view value);
  void Integer(std::string_view key, uint64_t value) { Key(key) += std::to_string(value); }
  void Truth(std::string_view key, bool value) { Key(key) += value ? "true" : "false"; }
  void Number(std::string_view key, double value) { AppendNumber(value, Key(key)); }
  void Value(std::string_view key, const Metric& metric) { AppendMetric(metric, Key(key)); }
  void Value(std::string_view key, const Recorded& value) { AppendRecorded(value, Key(key)); }
  void Texts(std::string_view key, const std::vector<std::string>& values) {
    AppendTexts(values, Key(key));
  }

 private:
  std::string& out_;
  bool first_ = true;
};

// The members of a first wrong call in every machine form, and their order.

// Calls visit(key, value) for each; values are std::string, std::vector<std::string> and bool.
// `call` is a FirstWrongCall, constant or not: readers assign to the values.
template <class Call, class Visit>
void VisitMembers(Call& call, const Visit& visit) {
  visit("name", call.name);
  visit("what", call.what);
  visit("item", call.item);
  visit("stack_line", call.stack_line);
  visit("stack", call.stack);
  visit("module_path", call.module_path);
  visit("enters_with_inputs", call.enters_with_inputs);
  visit("cause", call.cause);
  visit("cause_text", call.cause_text);
  visit("confidence", call.confidence);
}

// Adds them to the object that is open.
void AddMembers(const FirstWrongCall& call, json::Document& out);

// The machine form of a comparison (docs/reference/compare.md, "machine form").

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

// The result as a SQLite database (docs/reference/compare.md, "SQLite").

// Tables `facts`, `calls` and `rows`, and the view `wrong` of suspicious and broken rows. Absent
// metrics are NULL; SQLite has no NaN, which is the text 'nan' in columns of statistics and
// metrics, and NULL in `error`.
Status WriteDatabase(const Comparison& comparison, const std::string& path);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_RESULT_JSON_H_
