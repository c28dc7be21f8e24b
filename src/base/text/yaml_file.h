// YAML files of users: mappings, rules, lists. yaml-cpp reports errors by throwing; they end here.

#ifndef PLUMBLINE_BASE_TEXT_YAML_FILE_H_
#define PLUMBLINE_BASE_TEXT_YAML_FILE_H_

#include <yaml-cpp/yaml.h>

#include <string>
#include <string_view>

#include "plumbline/result.h"

namespace plumbline {

// One parsed document and the path that errors about it name.
class YamlFile {
 public:
  // Parses the whole file. A text that is not YAML is an error of code `malformed` with its line.
  static Result<YamlFile> Read(const std::string& path, ErrorCode malformed = ErrorCode::kCorrupt);

  // The same of a text; `path` is what errors name.
  static Result<YamlFile> Parse(const std::string& text, const std::string& path,
                                ErrorCode malformed = ErrorCode::kCorrupt);

  // Undefined or null for an empty file.
  [[nodiscard]] const YAML::Node& root() const { return root_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  // "<path>: line N: <problem>"; without the line if `node` has none.
  [[nodiscard]] Error Bad(const YAML::Node& node, std::string_view problem) const;
  // "<path>: <problem>", for what concerns the file as a whole.
  [[nodiscard]] Error Bad(std::string_view problem) const;

 private:
  YamlFile(std::string path, YAML::Node root) : path_(std::move(path)), root_(std::move(root)) {}
  std::string path_;
  YAML::Node root_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_TEXT_YAML_FILE_H_
