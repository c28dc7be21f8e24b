// What the options of msaccucmp compare ask for.

#ifndef PLUMBLINE_CLI_COMMANDS_MSACCUCMP_REQUEST_H_
#define PLUMBLINE_CLI_COMMANDS_MSACCUCMP_REQUEST_H_

#include <span>
#include <string>

#include "commands/msaccucmp.h"
#include "commands/option_words.h"
#include "operators/compare_operators.h"

namespace plumbline::cli {

using operators::DumpCode;
using operators::DumpFailure;
using operators::DumpResult;
using operators::DumpStatus;

std::span<const WordOption> CompareOptions();

// What is wrong with the options that were given together.
DumpStatus CheckOptions(const OptionWords& words);

// The recordings and how to compare them; loads the user's own functions. Warnings go to stderr.
DumpResult<operators::OperatorRequest> CompareRequestOf(const OptionWords& words);

// What happened while reading and pairing, by upstream's numbers.
DumpCode CodeOf(const Error& error);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_MSACCUCMP_REQUEST_H_
