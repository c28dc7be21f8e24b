#include "view/query/json_answer.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/text/json.h"

namespace plumbline::view {

void JsonAnswer::Separate() {
  if (!is_first_) text_ += ',';
  is_first_ = false;
}

JsonAnswer& JsonAnswer::Open(char bracket) {
  Separate();
  text_ += bracket;
  is_first_ = true;
  return *this;
}

JsonAnswer& JsonAnswer::Close(char bracket) {
  text_ += bracket;
  is_first_ = false;
  return *this;
}

JsonAnswer& JsonAnswer::Key(std::string_view key) {
  Separate();
  json::AppendString(key, text_);
  text_ += ':';
  is_first_ = true;
  return *this;
}

JsonAnswer& JsonAnswer::Null() {
  Separate();
  text_ += "null";
  return *this;
}

JsonAnswer& JsonAnswer::Truth(bool truth) {
  Separate();
  text_ += truth ? "true" : "false";
  return *this;
}

JsonAnswer& JsonAnswer::Text(std::string_view text) {
  Separate();
  json::AppendString(text, text_);
  return *this;
}

JsonAnswer& JsonAnswer::Number(double number) {
  Separate();
  if (std::isfinite(number)) {
    fmt::format_to(std::back_inserter(text_), "{}", number);
  } else if (std::isnan(number)) {
    text_ += "\"nan\"";
  } else {
    text_ += number > 0 ? "\"inf\"" : "\"-inf\"";
  }
  return *this;
}

JsonAnswer& JsonAnswer::Error(float number) {
  if (std::isnan(number)) return Null();
  if (std::isinf(number)) return Number(static_cast<double>(number));
  Separate();
  fmt::format_to(std::back_inserter(text_), "{:.5g}", number);
  return *this;
}

JsonAnswer& JsonAnswer::Raw(std::string_view json) {
  Separate();
  text_ += json;
  return *this;
}

void JsonAnswer::AppendInteger(uint64_t magnitude, bool is_negative, bool in_quotes) {
  Separate();
  const std::string_view quote = in_quotes ? "\"" : "";
  fmt::format_to(std::back_inserter(text_), "{}{}{}{}", quote, is_negative ? "-" : "", magnitude,
                 quote);
}

}  // namespace plumbline::view
