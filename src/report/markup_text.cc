#include "report/markup_text.h"

namespace plumbline::report {
namespace {

// The entity that stands for `c` in every place; empty: `c` may stand itself.
std::string_view EntityOf(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    default:
      return {};
  }
}

}  // namespace

void AppendHtmlText(std::string_view text, std::string& out) {
  for (const char c : text) {
    const std::string_view entity = EntityOf(c);
    if (entity.empty()) {
      out += c;
    } else {
      out += entity;
    }
  }
}

void AppendXmlText(std::string_view text, std::string& out) {
  for (const char c : text) {
    std::string_view entity = EntityOf(c);
    if (c == '"') entity = "&quot;";
    if (c == '\n') entity = "&#10;";
    if (!entity.empty()) {
      out += entity;
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
}

}  // namespace plumbline::report
