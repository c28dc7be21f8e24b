// Upstream's command lines (`msprobe ...`), rewritten as those of `plumb`.

#ifndef PLUMBLINE_CLI_COMMANDS_MSPROBE_H_
#define PLUMBLINE_CLI_COMMANDS_MSPROBE_H_

#include <string>
#include <vector>

#include "command_tree.h"
#include "plumbline/result.h"

namespace plumbline::cli {

// What to run for an upstream command line.
struct MsprobeCommand {
  // Words after `plumb`; empty: print the help page.
  std::vector<std::string> words;
};

// Rewrites the words after `msprobe`, in the form of release 1.2.2 (`-f pytorch compare -i ...`) or
// of the newest one (`compare -tp ... -gp ...`). Options that no rule names are passed on as they
// are.
//
// Errors: kInvalidArgument for an unknown command or an option without its value; kUnsupported for
// a command or option of upstream's that plumb does not have, with what to do instead.
Result<MsprobeCommand> TranslateMsprobe(const std::vector<std::string>& words);

// The command with those of upstream that run.
TreeCommand MsprobeTree();

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_MSPROBE_H_
