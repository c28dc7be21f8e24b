// Completion of command lines in shells, made from the commands.

#ifndef PLUMBLINE_CLI_COMPLETION_H_
#define PLUMBLINE_CLI_COMPLETION_H_

#include <string>

#include "command_tree.h"

namespace plumbline::cli {

// Scripts for the shells: commands, options, their fixed values, and files everywhere else.
std::string BashCompletion(const TreeCommand& program);
std::string ZshCompletion(const TreeCommand& program);
std::string FishCompletion(const TreeCommand& program);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMPLETION_H_
