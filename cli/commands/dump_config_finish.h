// plumb dump-config finish: statistics of a dump from its tensors.

#ifndef PLUMBLINE_CLI_COMMANDS_DUMP_CONFIG_FINISH_H_
#define PLUMBLINE_CLI_COMMANDS_DUMP_CONFIG_FINISH_H_

#include <CLI/App.hpp>

namespace plumbline::cli {

// Adds the sub-command `finish` to `command`. `exit_status` outlives parsing.
void AddDumpConfigFinish(CLI::App& command, int& exit_status);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_DUMP_CONFIG_FINISH_H_
