// Options with an empty value on the command line, as a script's variable without one leaves them.

#ifndef PLUMBLINE_CLI_COMMANDS_EMPTY_OPTION_H_
#define PLUMBLINE_CLI_COMMANDS_EMPTY_OPTION_H_

#include <CLI/App.hpp>
#include <algorithm>
#include <string>
#include <vector>

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

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_EMPTY_OPTION_H_
