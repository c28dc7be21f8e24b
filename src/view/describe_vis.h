// What a file for viewers of graphs holds, in a few lines.

#ifndef PLUMBLINE_VIEW_DESCRIBE_VIS_H_
#define PLUMBLINE_VIEW_DESCRIBE_VIS_H_

#include <string>
#include <string_view>

#include "plumbline/result.h"

namespace plumbline::view {

// Whether a path is called as such a file is.
bool IsVisName(std::string_view path);

// Nodes, ranks, steps, task, nodes per level and the first wrong call of each rank: lines, or one
// JSON object. Errors: those of OpenVisFile() and ReadPlace().
Result<std::string> DescribeVis(const std::string& path);
Result<std::string> DescribeVisAsJson(const std::string& path);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_DESCRIBE_VIS_H_
