// Names of result files: upstream's time stamp, and a number more where two runs end in one second.

#ifndef PLUMBLINE_REPORT_RESULT_NAMES_H_
#define PLUMBLINE_REPORT_RESULT_NAMES_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/file/file.h"

namespace plumbline::report {

// Free names, which no other process takes for its own while this lives: keep it until the files
// are written. A killed process leaves a hidden empty file `.{prefix}_{stamp}.tmp`.
struct FreeName {
  std::string text;
  // Nothing where no file can be made; writing the result says why.
  std::optional<NameHold> hold;
};

enum class StampForm { kDigits, kDateAndTime };  // yyyymmddhhmmss, yyyymmdd_hhmmss

// The stamp "<time>" (local) or "<time>_<n>", such that "<prefix>_" + it + each of
// `extensions` (with their dots) is the name of no file in `directory`.
FreeName FreeStamp(const std::string& directory, std::string_view prefix,
                   std::span<const std::string_view> extensions,
                   StampForm form = StampForm::kDigits);

// The path "<directory>/<prefix>_<free stamp><extension>".
FreeName FreePath(const std::string& directory, std::string_view prefix, std::string_view extension,
                  StampForm form = StampForm::kDigits);

// The path "<parent>/<time>" or "<parent>/<time>_<n>" of a directory that is not there yet.
std::string FreeDirectory(const std::string& parent);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_RESULT_NAMES_H_
