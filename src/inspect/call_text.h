// Statistics and call stacks of some calls of a recording, as text.

#ifndef PLUMBLINE_INSPECT_CALL_TEXT_H_
#define PLUMBLINE_INSPECT_CALL_TEXT_H_

#include <string>
#include <string_view>

#include "plumbline/result.h"

namespace plumbline::inspect {

// Of all calls whose names start with `start`. `path` is a dump.json (with its stack.json), or the
// file that releases before it wrote: a JSON list a line, [name, , , dtype, shape, [max, min,
// mean]] or [name with stack_info, [[file, line, function, code], ...]]. A line that is no list
// with something in it ends such a file. kNotFound: no such file or call; kCorrupt, with the line.
Result<std::string> CallText(const std::string& path, std::string_view start);

}  // namespace plumbline::inspect

#endif  // PLUMBLINE_INSPECT_CALL_TEXT_H_
