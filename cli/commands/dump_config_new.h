// plumb dump-config new: writes a valid dump configuration.

#ifndef PLUMBLINE_CLI_COMMANDS_DUMP_CONFIG_NEW_H_
#define PLUMBLINE_CLI_COMMANDS_DUMP_CONFIG_NEW_H_

#include <CLI/App.hpp>

namespace plumbline::cli {

// Adds the sub-command `new` to `command`. `exit_status` outlives parsing.
void AddDumpConfigNew(CLI::App& command, int& exit_status);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_DUMP_CONFIG_NEW_H_
