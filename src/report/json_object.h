// Writing one JSON object of a report, member by member.

#ifndef PLUMBLINE_REPORT_JSON_OBJECT_H_
#define PLUMBLINE_REPORT_JSON_OBJECT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::report {

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

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_JSON_OBJECT_H_
