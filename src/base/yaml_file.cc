#include "base/yaml_file.h"

#include <fmt/format.h>

#include "base/file.h"

namespace plumbline {

Result<YamlFile> YamlFile::Read(const std::string& path, ErrorCode malformed) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  return Parse(text, path, malformed);
}

Result<YamlFile> YamlFile::Parse(const std::string& text, const std::string& path,
                                 ErrorCode malformed) {
  try {
    return YamlFile(path, YAML::Load(text));
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
