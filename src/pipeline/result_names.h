// Names of result files: upstream's time stamp, and a number more where two runs end in one second.

#ifndef PLUMBLINE_PIPELINE_RESULT_NAMES_H_
#define PLUMBLINE_PIPELINE_RESULT_NAMES_H_

#include <span>
#include <string>
#include <string_view>

namespace plumbline::pipeline {

// "<time>" (local, yyyymmddhhmmss) or "<time>_<n>", such that "<prefix>_" + it + each of
// `extensions` (with their dots) is the name of no file in `directory`.
std::string FreeStamp(const std::string& directory, std::string_view prefix,
                      std::span<const std::string_view> extensions);

// The path "<directory>/<prefix>_<free stamp><extension>".
std::string FreePath(const std::string& directory, std::string_view prefix,
                     std::string_view extension);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_RESULT_NAMES_H_
