// Manual pages, made from the commands.

#ifndef PLUMBLINE_CLI_MAN_PAGE_H_
#define PLUMBLINE_CLI_MAN_PAGE_H_

#include <string>

#include "command_tree.h"
#include "plumbline/result.h"

namespace plumbline::cli {

// The page of a command in roff. `name`: with the words before it, "plumb dump-config check".
std::string ManPage(const TreeCommand& command, const std::string& name);

// Writes plumb.1, plumb-compare.1, ... of a program and all commands below into `directory`. kIo.
Status WriteManPages(const TreeCommand& program, const std::string& directory);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_MAN_PAGE_H_
