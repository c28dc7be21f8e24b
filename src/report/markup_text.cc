#include "report/markup_text.h"

#include "base/utf8.h"

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

// Appends what starts `text` and is no ASCII; returns the bytes consumed.
size_t AppendCharacter(std::string_view text, std::string& out) {
  const size_t size = Utf8CharacterBytes(text);
  const std::string_view character = text.substr(0, size);
  const bool is_held = size > 0 && character != "\xEF\xBF\xBE" && character != "\xEF\xBF\xBF";
  out += is_held ? character : kReplacementCharacter;
  return size == 0 ? 1 : size;
}

// Calls `append` with every ASCII character.
template <class AppendAscii>
void AppendText(std::string_view text, std::string& out, const AppendAscii& append) {
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) >= 0x80) {
      at += AppendCharacter(text.substr(at), out);
      continue;
    }
    const std::string_view entity = EntityOf(text[at]);
    if (entity.empty()) {
      append(text[at]);
    } else {
      out += entity;
    }
    ++at;
  }
}

}  // namespace

void AppendHtmlText(std::string_view text, std::string& out) {
  AppendText(text, out, [&](char c) {
    if (c == '\0') {
      out += kReplacementCharacter;
    } else {
      out += c;
    }
  });
}

void AppendXmlText(std::string_view text, std::string& out) {
  AppendText(text, out, [&](char c) {
    if (c == '"') {
      out += "&quot;";
    } else if (c == '\n') {
      out += "&#10;";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  });
}

}  // namespace plumbline::report
