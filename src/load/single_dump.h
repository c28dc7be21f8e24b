// One dump file of a device by itself, whatever it is called.

#ifndef PLUMBLINE_LOAD_SINGLE_DUMP_H_
#define PLUMBLINE_LOAD_SINGLE_DUMP_H_

#include <optional>
#include <string>

namespace plumbline::load {

// The name that the recorder gave the file `path`, as mapping.csv beside it has it, if the file is
// the dump of an operator: by that name or, where the name says nothing, by what is in the file.
// Nothing: it is something else, or no regular file.
std::optional<std::string> DumpNameOf(const std::string& path);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_SINGLE_DUMP_H_
