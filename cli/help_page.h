// Help pages: one form for all commands, as wide as the terminal.

#ifndef PLUMBLINE_CLI_HELP_PAGE_H_
#define PLUMBLINE_CLI_HELP_PAGE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "command_tree.h"

namespace plumbline::cli {

// What an exit status says, for a command that has other words for it than all commands.
using ExitStatuses = std::vector<std::pair<int, std::string>>;

// What stands behind the options of a page: `notes` (paragraphs between blank lines; lines that
// start with a blank stay as they are), examples, and the exit statuses: those of all commands (0
// to 6), of which `own` replaces or adds some.
std::string FooterText(std::string_view notes, const std::vector<std::string>& examples,
                       const ExitStatuses& own = {});
// The same of a command with statuses of its own and no other.
std::string FooterWithOwnStatuses(std::string_view notes, const std::vector<std::string>& examples,
                                  const ExitStatuses& statuses);

// Columns of the terminal, else what COLUMNS says, else 80; between 40 and 120.
size_t TerminalWidth();

// `name`: with the words before it, "plumb dump-config check".
std::string HelpText(const TreeCommand& command, std::string_view name, size_t width);

// `text` in lines of at most `width` columns where its words allow it, behind `first` columns that
// are taken; lines after the first start with `indent` blanks. Without a line end.
std::string Wrapped(std::string_view text, size_t first, size_t indent, size_t width);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_HELP_PAGE_H_
