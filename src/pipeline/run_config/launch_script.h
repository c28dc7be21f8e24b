// The arguments of a training, read from the shell script that launches it or from a YAML file.

#ifndef PLUMBLINE_PIPELINE_RUN_CONFIG_LAUNCH_SCRIPT_H_
#define PLUMBLINE_PIPELINE_RUN_CONFIG_LAUNCH_SCRIPT_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml_file.h"
#include "plumbline/result.h"

namespace plumbline::pipeline {

// Values by name, as JSON texts: "\"8\"", "true", "[1, 2]", "0.1". In the order of first sight.
class LaunchArguments {
 public:
  // The same name with another value becomes {"description": "duplicate_value", "values": [...]}.
  void Add(const std::string& name, const std::string& json);
  [[nodiscard]] bool empty() const { return names_.empty(); }
  // One flat JSON object, four blanks deep.
  [[nodiscard]] std::string Json() const;
  // The values of one name; empty: unknown.
  [[nodiscard]] const std::vector<std::string>& ValuesOf(const std::string& name) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::vector<std::string>> values_;
};

// Options --name value of the first line that runs msrun, torchrun, or Python (with or without
// torch.distributed.launch): $NAME and ${NAME} stand for what the script assigns to them before,
// --name alone is true, --name=value is read too. Comments and text behind "|" do not count.
// kInvalidArgument when nothing is launched.
Status ReadLaunchScript(std::string_view text, LaunchArguments& out);

// The values of a YAML file under dotted names; lists of plain values stay whole. Errors name it.
Status ReadLaunchYaml(const YamlFile& file, LaunchArguments& out);

// By the ending of the name: .sh or .yaml. kInvalidArgument for others; errors name the file.
Status ReadLaunchFile(const std::string& path, LaunchArguments& out);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_RUN_CONFIG_LAUNCH_SCRIPT_H_
