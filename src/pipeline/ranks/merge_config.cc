#include "pipeline/ranks/merge_config.h"

#include <fmt/format.h>

#include <string_view>

#include "base/yaml_file.h"

namespace plumbline::pipeline {
namespace {

Result<std::vector<std::string>> TextsOf(const YamlFile& file, const YAML::Node& node,
                                         std::string_view key) {
  if (!node.IsSequence()) {
    return file.Bad(fmt::format("{} is not a list (expected lines that begin with \"- \")", key));
  }
  std::vector<std::string> texts;
  for (const YAML::Node& element : node) {
    if (!element.IsScalar() || element.Scalar().empty()) {
      return file.Bad(fmt::format("{}: an entry is not a text", key));
    }
    texts.push_back(element.Scalar());
  }
  return texts;
}

}  // namespace

Result<MergeConfig> ReadMergeConfig(const std::string& path) {
  PL_TRY_ASSIGN(const YamlFile file, YamlFile::Read(path));
  const YAML::Node& root = file.root();
  if (!root.IsDefined() || root.IsNull()) return file.Bad("is empty (expected the key api)");
  if (!root.IsMap()) return file.Bad("holds no keys (expected api and compare_index)");
  MergeConfig config;
  const YAML::Node apis = root["api"];
  if (!apis.IsDefined() || apis.IsNull()) {
    return file.Bad("key api is missing or empty (expected a list of calls)");
  }
  PL_TRY_ASSIGN(config.apis, TextsOf(file, apis, "api"));
  if (config.apis.empty()) return file.Bad("key api is an empty list (expected a list of calls)");
  const YAML::Node metrics = root["compare_index"];
  if (metrics.IsDefined() && !metrics.IsNull()) {
    PL_TRY_ASSIGN(config.metrics, TextsOf(file, metrics, "compare_index"));
  }
  return config;
}

}  // namespace plumbline::pipeline
