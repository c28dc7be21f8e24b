// What each option of config.json does to a Config: one function per kind of option, named by the
// table in config/options.cc. `field` is the option with its section, for messages. An error is
// kInvalidArgument for a value of the wrong type or range and kUnsupported for a valid one that is
// not built; `config` may be half changed then.

#ifndef PLUMBLINE_CONFIG_OPTION_SETTERS_H_
#define PLUMBLINE_CONFIG_OPTION_SETTERS_H_

#include <span>
#include <string_view>

#include "config/config.h"
#include "config/setting_values.h"

namespace plumbline::settings {

using Setter = Status(std::string_view field, const Json& value, Config& config);

// Sets the member `kField` to what `kParse` makes of the value.
template <auto kField, auto kParse>
Status Assign(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.*kField, kParse(field, value));
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

// Checked, and without effect on what is recorded.
Setter CheckFileFormat;
Setter CheckOnline;
Setter CheckPrecision;
Setter CheckMode;
// Any value, with a warning that it has no effect; a list of strings, with one unless it is empty.
Setter Ignore;
Setter IgnoreStringList;
// Any value, silently.
Setter Accept;

}  // namespace plumbline::settings

#endif  // PLUMBLINE_CONFIG_OPTION_SETTERS_H_
