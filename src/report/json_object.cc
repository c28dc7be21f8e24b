#include "report/json_object.h"

#include <cmath>

#include "base/json.h"
#include "base/number_text.h"

namespace plumbline::report {

void AppendNumber(double value, std::string& out) {
  if (std::isfinite(value)) {
    AppendPythonFloat(value, out);
  } else {
    json::AppendString(PythonFloat(value), out);
  }
}

void AppendMetric(const Metric& metric, std::string& out) {
  if (const double* value = std::get_if<double>(&metric)) {
    AppendNumber(*value, out);
  } else {
    out += "null";
  }
}

void AppendRecorded(const Recorded& recorded, std::string& out) {
  if (const auto* truth = std::get_if<bool>(&recorded)) {
    out += *truth ? "true" : "false";
  } else if (const auto* integer = std::get_if<int64_t>(&recorded)) {
    out += std::to_string(*integer);
  } else if (const auto* real = std::get_if<double>(&recorded)) {
    AppendNumber(*real, out);
  } else if (const auto* text = std::get_if<Text>(&recorded)) {
    json::AppendString(*text, out);
  } else {
    out += "null";
  }
}

void AppendTexts(const std::vector<std::string>& values, std::string& out) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ", ";
    json::AppendString(values[i], out);
  }
  out += ']';
}

std::string& ObjectWriter::Key(std::string_view key) {
  if (!first_) out_ += ", ";
  first_ = false;
  json::AppendString(key, out_);
  out_ += ": ";
  return out_;
}

void ObjectWriter::Text(std::string_view key, std::string_view value) {
  json::AppendString(value, Key(key));
}

}  // namespace plumbline::report
