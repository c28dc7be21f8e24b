#include "formats/json_document.h"

#include <utility>

#include "base/json.h"
#include "formats/json_rewrite.h"

namespace plumbline::json {

void Document::Open(char bracket) {
  Separate();
  text_ += bracket;
  first_ = true;
}

void Document::Close(char bracket) {
  text_ += bracket;
  first_ = false;
}

void Document::Key(std::string_view key) {
  Text(key);
  text_ += ':';
  first_ = true;
}

void Document::Text(std::string_view text) {
  Separate();
  AppendString(text, text_);
}

void Document::Raw(std::string_view json) {
  Separate();
  text_ += json;
}

void Document::Member(std::string_view key, std::string_view text) {
  Key(key);
  Text(text);
}

void Document::Number(std::string_view key, uint64_t number) {
  Key(key);
  Raw(std::to_string(number));
}

void Document::Truth(std::string_view key, bool truth) {
  Key(key);
  Raw(truth ? "true" : "false");
}

void Document::Texts(std::string_view key, const std::vector<std::string>& texts) {
  Key(key);
  Open('[');
  for (const std::string& text : texts) Text(text);
  Close(']');
}

Result<std::string> Document::Finish() const {
  std::string out;
  PL_TRY(Rewrite(text_, {.indent = 2}, out));
  return out;
}

void Document::Separate() {
  if (!std::exchange(first_, false)) text_ += ',';
}

}  // namespace plumbline::json
