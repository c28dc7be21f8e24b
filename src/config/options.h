// The options of config.json: every key that it may hold, what it does to a Config, and how its
// values are read.

#ifndef PLUMBLINE_CONFIG_OPTIONS_H_
#define PLUMBLINE_CONFIG_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"
#include "config/config.h"
#include "plumbline/result.h"

namespace plumbline::settings {

// Warning about `key` of `section` (empty: the top level): "section.key: unknown key, ignored. Did
// you mean "known"?", by edit distance. Long keys and an empty `known` get no guess.
std::string UnknownKeyWarning(std::string_view section, std::string_view key,
                              std::span<const std::string_view> known);

// Values of config.json as C++ types. Every error is kInvalidArgument and names field, value and
// what was expected: "field: is VALUE (expected WHAT)".

using Json = json::Value;

Error Invalid(std::string_view field, const Json& value, std::string_view expected);
// Nothing, or one error of several: the code of the first, their sentences one after the other.
Status AllOf(const std::vector<Error>& errors);
// kUnsupported: a valid value that this version does not act on.
Error NotBuilt(std::string_view field, std::string_view value, std::string_view expected);

Result<std::string> AsString(std::string_view field, const Json& value);
Result<bool> AsBool(std::string_view field, const Json& value);
// A number of at least 1, or nothing for -1, which means without limit.
Result<std::optional<int64_t>> AsLimit(std::string_view field, const Json& value);
Result<uint64_t> AsByteCount(std::string_view field,
                             const Json& value);  // an integer of at least 0
Result<std::vector<std::string>> AsStringList(std::string_view field, const Json& value);
// The same, for texts that may be patterns (config/name_pattern.h).
Result<std::vector<std::string>> AsPatterns(std::string_view field, const Json& value);
Result<std::string> OneOf(std::string_view field, const Json& value,
                          std::span<const std::string_view> allowed);
// Integers 0 to 1000000 and "a-b" ranges, ascending and unique; null is the empty list.
Result<std::vector<int64_t>> NumberList(std::string_view field, const Json& value);

// Strict JSON; the error names the byte where the text stops being that.
Result<Json> ParseJson(std::string_view text);

// "a, b, c"
std::string Join(std::span<const std::string_view> names);

// What each option of config.json does to a Config: one function per kind of option, named by the
// table in config/options.cc. `field` is the option with its section, for messages. An error is
// kInvalidArgument for a value of the wrong type or range and kUnsupported for a valid one that is
// not built; `config` may be half changed then.

using Setter = Status(std::string_view field, const Json& value, Config& config);

// Sets the member `kField` to what `kParse` makes of the value.
template <auto kField, auto kParse>
Status Assign(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.*kField, kParse(field, value));
  return {};
}

// The same for a member of the member `kPart`.
template <auto kPart, auto kField, auto kParse>
Status AssignIn(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.*kPart.*kField, kParse(field, value));
  return {};
}

// Every value that `task` may have, also of tasks that are not built. Each may name a section.
std::span<const std::string_view> TaskWords();

Setter SetTask;
Setter SetLevel;
Setter SetDataloader;
Setter SetRiskLevel;
Setter SetDataMode;
Setter SetSummaryMode;
Setter SetCount;
Setter SetBenchPath;
Setter SetGradLevel;
Setter SetGradBounds;
Setter SetGradStep;
Setter SetSlices;

// Checked, and without effect on what is recorded.
Setter CheckFileFormat;
Setter CheckOnline;
Setter CheckPrecision;
Setter CheckMode;
// Any value, silently.
Setter Accept;

// Every key that config.json may hold: what it does, and what its reference says about it.

// A set of sections, one bit each.
using Sections = uint8_t;

struct Option {
  Sections sections;  // where it may stand; the same key may have another row in another section
  std::string_view name;
  Setter* apply;  // for values other than null
  // For docs/reference/config.md, in its Markdown. The default is what an absent key means: a JSON
  // value, bare or in backquotes, with an explanation in brackets, or words where no value says it.
  std::string_view type;
  std::string_view default_value;
  std::string_view meaning;
};

// All rows, static. Those of one section are applied in this order, which is the order in which
// errors are found.
std::span<const Option> Options();

// Empty for the top level, else the name of a task. No bit for a name without a section of options.
Sections SectionNamed(std::string_view name);
// The opposite, in a fixed order; the top level is "".
std::vector<std::string_view> NamesOf(Sections sections);

// One warning per key of a section that no row knows (UnknownKeyWarning). At the top level the
// sections of all tasks may stand side by side.
void WarnOfUnknownKeys(std::string_view section, const Json& object,
                       std::vector<std::string>& warnings);

}  // namespace plumbline::settings

#endif  // PLUMBLINE_CONFIG_OPTIONS_H_
