// The options of `plumb compare` that say how calls pair, and what of them is compared.

#ifndef PLUMBLINE_CLI_COMMANDS_COMPARE_MAPPINGS_H_
#define PLUMBLINE_CLI_COMMANDS_COMPARE_MAPPINGS_H_

#include <CLI/App.hpp>
#include <string>

#include "plumbline/compare.h"

namespace plumbline::cli {

// Adds -f, the mapping files, --postprocess and the columns of the tables to `command`; they fill
// `options`.
void AddPairingOptions(CLI::App& command, CompareOptions& options);

// Prints one line per compared tensor on stderr: what upstream's option -tensor_log asks for.
void LogTensors(const Comparison& comparison);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_COMPARE_MAPPINGS_H_
