// The commands of `plumb` with their options as plain values: what help pages, manual pages and the
// completion of shells are made from.

#ifndef PLUMBLINE_CLI_COMMAND_TREE_H_
#define PLUMBLINE_CLI_COMMAND_TREE_H_

#include <CLI/App.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "commands/option_words.h"

namespace plumbline::cli {

struct TreeOption {
  // "-o", "--output"; then spellings of before and upstream's, which help pages leave out. Of an
  // argument without a name: one word, such as "TARGET".
  std::vector<std::string> names;
  size_t shown_names = 0;
  std::string value;                 // "FILE", "N"; empty: takes none
  std::vector<std::string> choices;  // instead of `value`
  std::string help;
  bool is_required = false;

  // "FILE", or "{a,b}".
  [[nodiscard]] std::string ValueText() const;
};

struct TreeCommand {
  std::string name;     // "check"
  std::string summary;  // one sentence
  std::string usage;    // words behind the full name
  std::vector<TreeOption> arguments, options;
  std::vector<TreeCommand> commands;
  // Notes, examples and exit statuses (FooterText()).
  std::string footer;

  // Whether it is more than another name of a command.
  [[nodiscard]] bool HasPage() const { return !footer.empty(); }
};

// Of a command as the parser knows it, and those below.
TreeCommand TreeOf(const CLI::App& app);

// Of a command whose options have upstream's spelling.
struct WordCommand {
  std::string_view name, summary;
  std::span<const WordOption> options;
  std::string footer;
};
TreeCommand TreeOf(const WordCommand& command);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMAND_TREE_H_
