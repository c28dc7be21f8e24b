// Lines of a source file around the one that a stack names.

#ifndef PLUMBLINE_VIEW_SERVE_SOURCE_LINES_H_
#define PLUMBLINE_VIEW_SERVE_SOURCE_LINES_H_

#include <string>

#include "plumbline/result.h"
#include "view/query/parameters.h"
#include "view/serve/served_paths.h"

namespace plumbline::view {

// The answer {"file", "first", "lines"} for the parameters `file` and `line` (from 1): up to 40
// lines before and behind. kNotFound: it lies outside of the roots, or has no such line;
// kUnsupported: it is no text.
Result<std::string> SourceAnswer(const ServedPaths& paths, const Parameters& parameters);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_SOURCE_LINES_H_
