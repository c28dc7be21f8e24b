// The verbs of `plumb parse` and the shell that takes them line by line.

#ifndef PLUMBLINE_CLI_COMMANDS_PARSE_H_
#define PLUMBLINE_CLI_COMMANDS_PARSE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "command_tree.h"
#include "commands/option_words.h"
#include "plumbline/result.h"

namespace plumbline::cli {

struct ParseVerb {
  std::string_view name;
  std::string_view help;
  std::span<const WordOption> options;
  std::string_view example;
  // The words behind the name. Prints the answer; returns an exit status.
  int (*run)(const std::vector<std::string>& words);
};

std::span<const ParseVerb> ParseVerbs();
// The command with its verbs.
TreeCommand ParseTree();
// Its help page.
std::string ParseHelp();

// Takes lines until the end of the input, `exit` or `quit`: a verb with its words, or a program to
// run. Returns the exit status of the shell: 0; failed lines do not end it.
int RunParseShell();

// Words of a line: separated by blanks, unless these are quoted ('...', "...") or escaped.
// kInvalidArgument: a quote that never ends.
Result<std::vector<std::string>> SplitWords(std::string_view line);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_PARSE_H_
