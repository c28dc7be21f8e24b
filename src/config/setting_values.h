// Values of config.json as C++ types. Every error is kInvalidArgument and names field, value and
// what was expected: "field: is VALUE (expected WHAT)".

#ifndef PLUMBLINE_CONFIG_SETTING_VALUES_H_
#define PLUMBLINE_CONFIG_SETTING_VALUES_H_

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::settings {

using Json = nlohmann::json;

Error Invalid(std::string_view field, const Json& value, std::string_view expected);
// kUnsupported: a valid value that this version does not act on.
Error NotBuilt(std::string_view field, std::string_view value, std::string_view expected);

Result<std::string> AsString(std::string_view field, const Json& value);
Result<bool> AsBool(std::string_view field, const Json& value);
// A number of at least 1, or nothing for -1, which means without limit.
Result<std::optional<int64_t>> AsLimit(std::string_view field, const Json& value);
Result<uint64_t> AsByteCount(std::string_view field,
                             const Json& value);  // an integer of at least 0
Result<std::vector<std::string>> AsStringList(std::string_view field, const Json& value);
Result<std::string> OneOf(std::string_view field, const Json& value,
                          std::span<const std::string_view> allowed);
// Integers 0 to 1000000 and "a-b" ranges, ascending and unique; null is the empty list.
Result<std::vector<int64_t>> NumberList(std::string_view field, const Json& value);

// Strict JSON; the error names the byte where the text stops being that.
Result<Json> ParseJson(std::string_view text);
// That byte; nothing for JSON.
std::optional<size_t> FindJsonError(std::string_view text);

template <class T, size_t N>
std::string Join(const T (&names)[N]) {
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace plumbline::settings

#endif  // PLUMBLINE_CONFIG_SETTING_VALUES_H_
