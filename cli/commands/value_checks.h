// Values of options that a script leaves where it meant others: empty ones, the next option,
// numbers that are none.

#ifndef PLUMBLINE_CLI_COMMANDS_VALUE_CHECKS_H_
#define PLUMBLINE_CLI_COMMANDS_VALUE_CHECKS_H_

#include <CLI/App.hpp>
#include <CLI/TypeTools.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
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

// Refuses all but finite numbers above 0, the largest being `most` of `unit`; the comparisons of
// CLI::Range let NaN pass.
inline CLI::Validator PositiveNumber(double most = 0, const std::string& unit = "") {
  const auto check = [most, unit](const std::string& text) -> std::string {
    double value = 0;
    const bool is_number = CLI::detail::lexical_cast(text, value) && std::isfinite(value);
    if (is_number && value > 0 && (most == 0 || value <= most)) return {};
    std::string range = "above 0";
    if (most > 0) range += " and at most " + std::to_string(static_cast<int64_t>(most));
    return "expected a number " + (unit.empty() ? "" : "of " + unit + " ") + range + " (got \"" +
           text + "\")";
  };
  return CLI::Validator(check, "");
}

// A limit of time; more than eleven days is a slip of the keyboard.
inline CLI::Validator Seconds() {
  constexpr double kMostSeconds = 1e6;
  return PositiveNumber(kMostSeconds, "seconds");
}
// Of such a number, rounded up: a short limit is not none.
inline std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1e3)));
}

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_VALUE_CHECKS_H_
