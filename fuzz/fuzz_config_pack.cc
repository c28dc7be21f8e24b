// Packs of config_check, launch scripts, YAML files and logs: every reader on the same bytes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "pipeline/run_config/compare_configs.h"
#include "pipeline/run_config/launch_script.h"
#include "pipeline/run_config/log_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string path = "/tmp/fuzz_config_pack.zip";
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  plumbline::pipeline::LaunchArguments arguments;
  (void)plumbline::pipeline::ReadLaunchScript(text, arguments);
  if (const auto file = plumbline::YamlFile::Parse(std::string(text), "fuzzed")) {
    (void)plumbline::pipeline::ReadLaunchYaml(*file, arguments);
  }
  (void)arguments.Json();
  if (const auto config = plumbline::pipeline::FindLogConfig(text)) {
    (void)plumbline::pipeline::FlatConfig(*config);
    (void)plumbline::pipeline::PythonRepr(*config);
    (void)plumbline::pipeline::ConfigJson(*config);
  }
  if (!plumbline::WriteFileAtomically(path, text, /*durable=*/false)) return 0;
  const auto pack = plumbline::pipeline::ReadConfigPack(path);
  if (pack) (void)plumbline::pipeline::CompareConfigs(*pack, *pack);
  return 0;
}
