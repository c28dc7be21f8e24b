// JSON text in, JSON text out: another indentation, texts replaced, everything else kept.
//
// Unknown keys, repeated keys, the spelling of every number and the order of members survive, which
// they would not on the way through Call. Output is ASCII, as Python's json module writes it.

#ifndef PLUMBLINE_FORMATS_JSON_REWRITE_H_
#define PLUMBLINE_FORMATS_JSON_REWRITE_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "plumbline/result.h"

namespace plumbline::json {

struct RewriteOptions {
  int indent = 1;        // blanks per level
  int outer_levels = 0;  // level of the line on which the text will stand
  // NaN, Infinity and -Infinity as the texts "NaN", "Infinity" and "-Infinity", which standard JSON
  // allows; numbers beyond the range of double become the infinite ones.
  bool strict = false;
  // New text for the text value of member `key` (at any depth); nothing keeps it.
  std::function<std::optional<std::string>(std::string_view key, std::string_view text)> replace =
      {};
};

// Appends the rewritten document to `out`. kCorrupt and kUnsupported as json::Reader::error().
Status Rewrite(std::string_view text, const RewriteOptions& options, std::string& out);

}  // namespace plumbline::json

#endif  // PLUMBLINE_FORMATS_JSON_REWRITE_H_
