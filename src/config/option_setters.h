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

// Every value that `task` may have, also of tasks that are not built. Each may name a section.
std::span<const std::string_view> TaskWords();

Setter SetTask;
Setter SetLevel;
Setter SetDumpPath;
Setter SetRank;
Setter SetStep;
Setter SetDataloader;
Setter SetAsync;
Setter SetMaxBytes;
Setter SetMinFreeBytes;
Setter SetBufferBytes;
Setter SetDumpEnable;
Setter SetExtraInfo;
Setter SetRiskLevel;
Setter SetScope;
Setter SetList;
Setter SetDataMode;
Setter SetSummaryMode;
Setter SetTensorList;
Setter SetHitLimit;
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
