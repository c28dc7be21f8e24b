// What `plumb compare --secure` refuses to read and write, as upstream always does: links, files of
// other users, and names with characters that a shell or a log could take for something else.

#ifndef PLUMBLINE_LOAD_SECURE_PATHS_H_
#define PLUMBLINE_LOAD_SECURE_PATHS_H_

#include <string>

#include "plumbline/result.h"

namespace plumbline::load {

// `path` and, for a recording, every file of it: below a directory, or beside a dump.json. Errors
// name the first file that is refused: kInvalidArgument for a symbolic link, a file of another user
// (root reads all), characters outside [a-zA-Z0-9_.:/-] and names longer than the system's; kIo.
// What does not exist is left to its reader.
Status CheckSecureInput(const std::string& path);

// A result directory: characters outside [a-zA-Z0-9_./-], or a symbolic link. kInvalidArgument.
Status CheckSecureOutput(const std::string& path);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_SECURE_PATHS_H_
