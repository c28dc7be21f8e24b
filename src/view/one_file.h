// The page with its data inside, as one file.

#ifndef PLUMBLINE_VIEW_ONE_FILE_H_
#define PLUMBLINE_VIEW_ONE_FILE_H_

#include <string>

#include "plumbline/compare_options.h"
#include "plumbline/result.h"

namespace plumbline::view {

// Compares two recordings (a rank, or directories of ranks or steps) and writes the page
// (report/html_report.h). `options`: how they are paired and judged; its formats and names of files
// do not matter. The answer as `plumb compare` prints it. Errors: those of CompareRuns() and
// CompareRanks(); kUnsupported when this build has no page.
Result<std::string> WriteOneFile(const std::string& target, const std::string& golden,
                                 const CompareOptions& options, const std::string& path);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_ONE_FILE_H_
