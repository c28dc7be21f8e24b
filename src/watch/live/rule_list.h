// The rules ("watch") in the configuration of a monitor.

#ifndef PLUMBLINE_WATCH_LIVE_RULE_LIST_H_
#define PLUMBLINE_WATCH_LIVE_RULE_LIST_H_

#include <string>
#include <vector>

#include "base/text/json.h"
#include "watch/rules/rule.h"

namespace plumbline::watch {

// `value` is a list, of expressions and of rules with the members of a rules file, or the path of a
// rules file in JSON, relative to `directory`. Appends a line to `faults` for every rule that is
// wrong.
Rules ReadRuleList(const json::Value& value, const std::string& directory,
                   std::vector<std::string>* faults);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_LIVE_RULE_LIST_H_
