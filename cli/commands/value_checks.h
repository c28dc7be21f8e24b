// Values of options that a script leaves where it meant others: empty ones, and the next option.

#ifndef PLUMBLINE_CLI_COMMANDS_VALUE_CHECKS_H_
#define PLUMBLINE_CLI_COMMANDS_VALUE_CHECKS_H_

#include <CLI/App.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "base/file/file.h"

namespace plumbline::cli {

// What to say about the first of them, which is no way to leave an option out; empty: there is
// none.
inline std::string EmptyOption(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string>& values = option->results();
    if (std::ranges::count(values, "") == 0) continue;
    const std::vector<std::string>& names = option->get_snames();
    return (names.empty() ? option->get_name() : "-" + names.front()) +
           ": is empty (expected a value)";
  }
  return {};
}

// Refuses what looks like an option and is no path, which "./" in front of it can make one.
inline CLI::Validator PathValue() {
  const auto check = [](const std::string& text) {
    return text.starts_with('-') && KindOf(text) == PathKind::kMissing
               ? "expected a path (got \"" + text + "\")"
               : std::string();
  };
  return CLI::Validator(check, "");  // nothing in the help
}

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_VALUE_CHECKS_H_
