// Which paths are accepted for the configuration file and for output (collection 2.1 and 2.6).

#ifndef PLUMBLINE_CONFIG_PATH_RULES_H_
#define PLUMBLINE_CONFIG_PATH_RULES_H_

#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

// The configuration file: a regular file, not a link, named *.json, of at most 1 GiB, whose real
// path holds only [a-zA-Z0-9_.:/-]. Ownership and permissions only add to `warnings`. kNotFound,
// kInvalidArgument.
Status CheckConfigFile(const std::string& path, std::vector<std::string>& warnings);

// An output path: its absolute form is at most 4096 bytes out of [a-zA-Z0-9_./-] and is, if it
// exists, a directory and not a link. kInvalidArgument, also when empty.
Status CheckDumpPath(const std::string& dump_path);

}  // namespace plumbline

#endif  // PLUMBLINE_CONFIG_PATH_RULES_H_
