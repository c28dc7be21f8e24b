#include "view/serve/source_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/text_parts.h"

namespace plumbline::view {
namespace {

constexpr size_t kLinesAround = 40;
constexpr size_t kLongestLine = 2000;  // bytes that are shown of one
// What a source has at most; larger files are no text that somebody wrote.
constexpr size_t kMostSourceBytes = size_t{8} << 20;

}  // namespace

Result<std::string> SourceAnswer(const ServedPaths& paths, const Parameters& parameters) {
  PL_TRY_ASSIGN(const int64_t wanted, parameters.Number("line", 1, 1, 100'000'000));
  PL_TRY_ASSIGN(const std::string path, paths.Resolve(parameters.Text("file")));
  if (KindOf(path) != PathKind::kFile) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: is no file", path));
  }
  PL_TRY_ASSIGN(const std::string text, ReadStart(path, kMostSourceBytes + 1));
  if (text.size() > kMostSourceBytes || text.find('\0') != std::string::npos) {
    return Error(ErrorCode::kUnsupported, fmt::format("{}: is no source text", path));
  }
  const std::vector<std::string_view> lines = SplitAt(text, '\n');
  const auto line = static_cast<size_t>(wanted);
  if (line > lines.size()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: has {} lines, and no line {}. It may have been changed since the "
                             "recording",
                             path, lines.size(), line));
  }
  const size_t first = line > kLinesAround ? line - kLinesAround : 1;
  const size_t last = std::min(line + kLinesAround, lines.size());
  std::vector<std::string> shown;
  for (size_t at = first; at <= last; ++at) {
    shown.push_back(ReplaceInvalidUtf8(Utf8Beginning(lines[at - 1], kLongestLine)));
  }
  json::Value value = json::Value::Object();
  value.Put("file", json::Value(path));
  value.Put("first", json::Value(static_cast<int64_t>(first)));
  value.Put("lines", json::Value(shown));
  return value.Text();
}

}  // namespace plumbline::view
