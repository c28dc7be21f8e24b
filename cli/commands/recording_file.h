// The recording that a command which runs calls again is given.

#ifndef PLUMBLINE_CLI_COMMANDS_RECORDING_FILE_H_
#define PLUMBLINE_CLI_COMMANDS_RECORDING_FILE_H_

#include <string>

#include "plumbline/result.h"

namespace plumbline::cli {

// The file that the user means: any .json file that is no link, or the dump.json of a directory
// where `takes_directory`. kNotFound, kInvalidArgument: there is none.
Result<std::string> RecordingFile(const std::string& path, bool takes_directory = true);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_RECORDING_FILE_H_
