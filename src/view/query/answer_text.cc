#include "view/query/answer_text.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text/json.h"

namespace plumbline::view {

void AnswerText::Separate() {
  if (text_.empty()) return;
  const char last = text_.back();
  if (last != '{' && last != '[' && last != ':') text_ += ',';
}

AnswerText& AnswerText::Open(char bracket) {
  Separate();
  text_ += bracket;
  return *this;
}

AnswerText& AnswerText::Close(char bracket) {
  text_ += bracket;
  return *this;
}

AnswerText& AnswerText::Key(std::string_view key) {
  Text(key);
  text_ += ':';
  return *this;
}

AnswerText& AnswerText::Text(std::string_view text) {
  Separate();
  json::AppendString(text, text_);
  return *this;
}

AnswerText& AnswerText::Integer(int64_t number) {
  constexpr int64_t kMost = int64_t{1} << 53;
  if (number > kMost || number < -kMost) return Text(fmt::to_string(number));
  Separate();
  text_ += fmt::to_string(number);
  return *this;
}

AnswerText& AnswerText::Number(double number) {
  if (std::isnan(number)) return Text("nan");
  if (std::isinf(number)) return Text(number > 0 ? "inf" : "-inf");
  Separate();
  text_ += fmt::format("{}", number);
  return *this;
}

AnswerText& AnswerText::Error(float number) {
  if (std::isnan(number)) return Null();
  if (std::isinf(number)) return Text(number > 0 ? "inf" : "-inf");
  Separate();
  text_ += fmt::format("{:.5g}", number);
  return *this;
}

AnswerText& AnswerText::Truth(bool truth) { return Raw(truth ? "true" : "false"); }
AnswerText& AnswerText::Null() { return Raw("null"); }

AnswerText& AnswerText::Scalar(const StoredScalar& scalar) {
  if (const auto* truth = std::get_if<bool>(&scalar)) return Truth(*truth);
  if (const auto* integer = std::get_if<int64_t>(&scalar)) return Integer(*integer);
  if (const auto* real = std::get_if<double>(&scalar)) return Number(*real);
  if (const auto* text = std::get_if<std::string_view>(&scalar)) return Text(*text);
  return Null();
}

AnswerText& AnswerText::Raw(std::string_view json) {
  Separate();
  text_ += json;
  return *this;
}

}  // namespace plumbline::view
