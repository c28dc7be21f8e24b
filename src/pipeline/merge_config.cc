#include "pipeline/merge_config.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <string_view>

#include "base/file.h"

namespace plumbline::pipeline {
namespace {

Error Bad(const std::string& path, std::string_view problem) {
  return Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", path, problem));
}

Result<YAML::Node> Load(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  try {  // yaml-cpp reports errors by throwing; they end here
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: line {}: not YAML ({})", path, error.mark.line + 1, error.msg));
  }
}

Result<std::vector<std::string>> TextsOf(const std::string& path, const YAML::Node& node,
                                         std::string_view key) {
  if (!node.IsSequence()) {
    return Bad(path, fmt::format("{} is not a list (expected lines that begin with \"- \")", key));
  }
  std::vector<std::string> texts;
  for (const YAML::Node& element : node) {
    if (!element.IsScalar() || element.Scalar().empty()) {
      return Bad(path, fmt::format("{}: an entry is not a text", key));
    }
    texts.push_back(element.Scalar());
  }
  return texts;
}

}  // namespace

Result<MergeConfig> ReadMergeConfig(const std::string& path) {
  PL_TRY_ASSIGN(const YAML::Node root, Load(path));
  if (!root.IsDefined() || root.IsNull()) return Bad(path, "is empty (expected the key api)");
  if (!root.IsMap()) return Bad(path, "holds no keys (expected api and compare_index)");
  MergeConfig config;
  const YAML::Node apis = root["api"];
  if (!apis.IsDefined() || apis.IsNull()) {
    return Bad(path, "key api is missing or empty (expected a list of calls)");
  }
  PL_TRY_ASSIGN(config.apis, TextsOf(path, apis, "api"));
  if (config.apis.empty()) return Bad(path, "key api is an empty list (expected a list of calls)");
  const YAML::Node metrics = root["compare_index"];
  if (metrics.IsDefined() && !metrics.IsNull()) {
    PL_TRY_ASSIGN(config.metrics, TextsOf(path, metrics, "compare_index"));
  }
  return config;
}

}  // namespace plumbline::pipeline
