// WriteConfigPack(): what can be seen of a training from outside.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "formats/zip_stream.h"
#include "pipeline/run_config/config_pack.h"
#include "pipeline/run_config/launch_script.h"

extern char** environ;

namespace plumbline::pipeline {
namespace {

using Texts = std::map<std::string, std::string>;

Texts EnvironmentOf(bool all) {
  std::set<std::string_view> wanted;
  for (const EnvironmentRule& rule : EnvironmentRules()) {
    wanted.insert(rule.npu_name);
    wanted.insert(rule.gpu_name);
  }
  Texts values;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view entry = *each;
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    // Any name with ASCEND says which kind of device the side has.
    if (!all && !wanted.contains(name) && name.find("ASCEND") == std::string_view::npos) continue;
    values.emplace(name, entry.substr(equals + 1));
  }
  return values;
}

std::string JsonOf(const Texts& values) {
  std::string text = "{";
  for (const auto& [name, value] : values) {
    text += text.size() > 1 ? ",\n    " : "\n    ";
    json::AppendString(name, text);
    text += ": ";
    json::AppendString(value, text);
  }
  return text + (values.empty() ? "}" : "\n}");
}

// The directory above the bin/ of `python3` on the path.
std::string PrefixOnPath() {
  const char* virtual_environment = std::getenv("VIRTUAL_ENV");
  if (virtual_environment != nullptr && *virtual_environment != 0) return virtual_environment;
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable == nullptr ? std::string_view() : variable;
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    const std::string directory(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
    if (KindOf(JoinPath(directory, "python3")) == PathKind::kFile) {
      return std::string(DirectoryOf(directory));
    }
  }
  return {};
}

// "Name: x" of a METADATA or PKG-INFO file.
std::string FieldOf(const std::string& text, std::string_view field) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line(text.data() + at, end - at);
    if (line.empty()) break;  // the description follows
    if (line.starts_with(field)) return std::string(line.substr(field.size()));
    at = end + 1;
  }
  return {};
}

void AddPackages(const std::string& site, Texts& packages) {
  const auto names = ListDirectory(site);
  if (!names) return;
  for (const std::string& name : *names) {
    const bool is_wheel = name.ends_with(".dist-info");
    if (!is_wheel && !name.ends_with(".egg-info")) continue;
    const auto text = ReadFile(JoinPath(JoinPath(site, name), is_wheel ? "METADATA" : "PKG-INFO"));
    if (!text) continue;
    const std::string package = FieldOf(*text, "Name: "), version = FieldOf(*text, "Version: ");
    if (!package.empty() && !version.empty()) packages.emplace(package, version);
  }
}

// What is installed in lib/python3.*/site-packages and dist-packages below `prefix`.
Texts PackagesBelow(const std::string& prefix) {
  Texts packages;
  for (const std::string_view library : {"lib", "lib64", "local/lib"}) {
    const std::string directory = JoinPath(prefix, library);
    const auto names = ListDirectory(directory);
    if (!names) continue;
    for (const std::string& name : *names) {
      if (!name.starts_with("python3")) continue;
      for (const std::string_view site : {"site-packages", "dist-packages"}) {
        AddPackages(JoinPath(JoinPath(directory, name), site), packages);
      }
    }
  }
  return packages;
}

}  // namespace

Status WriteConfigPack(const std::string& path, const CollectOptions& options) {
  if (!path.ends_with(".zip")) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: expected a .zip file", path));
  }
  LaunchArguments arguments;
  for (const std::string& file : options.files) PL_TRY(ReadLaunchFile(file, arguments));
  const std::string prefix = options.python_prefix.empty() ? PrefixOnPath() : options.python_prefix;
  std::string packages;
  for (const auto& [name, version] : PackagesBelow(prefix)) {
    packages += fmt::format("{}={}\n", name, version);
  }
  PL_TRY(MakeDirectories(std::string(DirectoryOf(path))));
  PL_TRY_ASSIGN(zip::StreamWriter out, zip::StreamWriter::Create(path));
  PL_TRY(out.Begin("env"));
  PL_TRY(out.Write(JsonOf(EnvironmentOf(options.all_environment))));
  PL_TRY(out.Begin("pip"));
  PL_TRY(out.Write(packages));
  if (!arguments.empty()) {
    PL_TRY(out.Begin("hyperparameters/hyperparameters_static.json"));
    PL_TRY(out.Write(arguments.Json()));
  }
  return out.Close();
}

}  // namespace plumbline::pipeline
