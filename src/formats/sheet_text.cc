#include "formats/sheet_text.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace plumbline::xlsx {
namespace {

constexpr size_t kMostBytes = 32767;

// Bytes of the character of XML at the start of `text`; 0 if there is none.
size_t CharacterBytes(std::string_view text) {
  const bool no_character = text.starts_with("\xEF\xBF\xBE") || text.starts_with("\xEF\xBF\xBF");
  return no_character ? 0 : Utf8CharacterBytes(text);
}

// "_x" with four hexadecimal digits and "_": readers would take it for an escape.
bool LooksLikeEscape(std::string_view text) {
  if (text.size() < 7 || text[1] != 'x' || text[6] != '_') return false;
  return text.substr(2, 4).find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7F && c != '&' && c != '<' && c != '>' && c != '_';
}

// What stands at the start of `text` and is not plain; returns the bytes consumed.
size_t AppendSpecial(std::string_view text, std::string& out) {
  const char c = text[0];
  if (c == '&' || c == '<' || c == '>') {
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : "&gt;";
    return 1;
  }
  if (c == '_') {
    out += LooksLikeEscape(text) ? "_x005F_" : "_";
    return 1;
  }
  if (c == '\t' || c == '\n' || c == 0x7F) {
    out += c;
    return 1;
  }
  if (static_cast<unsigned char>(c) < 0x20) {
    out += fmt::format("_x{:04X}_", static_cast<unsigned char>(c));
    return 1;
  }
  const size_t size = CharacterBytes(text);
  out += size == 0 ? kReplacementCharacter : text.substr(0, size);
  return size == 0 ? 1 : size;
}

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

}  // namespace

void AppendSheetText(std::string_view text, std::string& out) {
  text = Utf8Beginning(text, kMostBytes);
  const bool keep = !text.empty() && (IsBlank(text.front()) || IsBlank(text.back()));
  out += keep ? "<t xml:space=\"preserve\">" : "<t>";
  size_t from = 0;
  for (size_t at = 0; at < text.size();) {
    if (IsPlain(text[at])) {
      ++at;
      continue;
    }
    out.append(text, from, at - from);
    at += AppendSpecial(text.substr(at), out);
    from = at;
  }
  out.append(text, from).append("</t>");
}

}  // namespace plumbline::xlsx
