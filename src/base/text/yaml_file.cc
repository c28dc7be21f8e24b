#include "base/text/yaml_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/file/file.h"
#include "base/text/text_parts.h"

namespace plumbline {
namespace {

// yaml-cpp follows aliases, also of a list inside itself: a short file may stand for a tree that no
// reader can walk. What is written out has less than two values for each of its bytes.
constexpr int kDeepest = 500;
constexpr size_t kMostRepeats = 16, kAlwaysAllowed = 1000;

// Whether a walk over `node` ends after `depth` levels and `left` values, which it takes away.
bool IsBounded(const YAML::Node& node, int depth, size_t& left) {
  if (depth == 0 || left == 0) return false;
  --left;
  if (node.IsMap()) {
    return std::all_of(node.begin(), node.end(), [&](const auto& entry) {
      return IsBounded(entry.first, depth - 1, left) && IsBounded(entry.second, depth - 1, left);
    });
  }
  if (!node.IsSequence()) return true;
  return std::all_of(node.begin(), node.end(),
                     [&](const YAML::Node& each) { return IsBounded(each, depth - 1, left); });
}

}  // namespace

Result<YamlFile> YamlFile::Read(const std::string& path, ErrorCode malformed) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  return Parse(text, path, malformed);
}

Result<YamlFile> YamlFile::Parse(const std::string& text, const std::string& path,
                                 ErrorCode malformed) {
  try {
    YAML::Node root = YAML::Load(text);
    size_t left = kMostRepeats * text.size() + kAlwaysAllowed;
    if (!IsBounded(root, kDeepest, left)) {
      return Error(malformed,
                   fmt::format("{}: aliases that repeat without end (expected at most {} "
                               "levels and {} values for each byte). Write the values "
                               "out or use fewer aliases",
                               path, kDeepest, kMostRepeats));
    }
    // Bytes that yaml-cpp takes for the mark of another encoding are nothing to it.
    if (root.IsNull() && !IsUtf8(text)) {
      return Error(malformed, fmt::format("{}: not UTF-8 text (expected YAML in UTF-8)", path));
    }
    return YamlFile(path, std::move(root));
  } catch (const YAML::Exception& error) {
    return Error(malformed,
                 fmt::format("{}: line {}: not YAML ({})", path, error.mark.line + 1, error.msg));
  }
}

Error YamlFile::Bad(const YAML::Node& node, std::string_view problem) const {
  const int line = node.IsDefined() ? node.Mark().line : -1;
  if (line < 0) return Bad(problem);
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: line {}: {}", path_, line + 1, problem));
}

Error YamlFile::Bad(std::string_view problem) const {
  return Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", path_, problem));
}

}  // namespace plumbline
