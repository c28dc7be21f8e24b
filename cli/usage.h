// What to say about a command line that cannot be run: what was meant.

#ifndef PLUMBLINE_CLI_USAGE_H_
#define PLUMBLINE_CLI_USAGE_H_

#include <CLI/App.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::cli {

// " Did you mean X?" where a known word is near `word` (base/text/text_parts.h), or the only one
// that begins so; else nothing.
std::string MeantHint(std::string_view word, std::span<const std::string> known);

// What is wrong with the words behind `plumb`, which `error` of the parser is about: the first
// unknown command or option with what was meant, else the parser's words, in one line.
std::string UsageProblem(const CLI::App& app, const std::vector<std::string>& words,
                         const CLI::Error& error);

// The options and values that `command` was given, spelled in one way, but for those whose first
// long name (without dashes) is in `but`: parsing them gives the same again.
std::vector<std::string> WordsOf(const CLI::App& command, std::span<const std::string_view> but);

// The message of an error. When it is about a path that is missing, with the name in the same
// directory that is near, if there is one.
std::string WithNearestPath(const std::string& message);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_USAGE_H_
