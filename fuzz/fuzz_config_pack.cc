// Packs of config_check, launch scripts and YAML files: every reader on the same bytes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "pipeline/compare_configs.h"
#include "pipeline/launch_script.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string path = "/tmp/fuzz_config_pack.zip";
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  plumbline::pipeline::LaunchArguments arguments;
  (void)plumbline::pipeline::ReadLaunchScript(text, arguments);
  (void)plumbline::pipeline::ReadLaunchYaml(std::string(text), arguments);
  (void)arguments.Json();
  if (!plumbline::WriteFileAtomically(path, text, /*durable=*/false)) return 0;
  const auto pack = plumbline::pipeline::ReadConfigPack(path);
  if (pack) (void)plumbline::pipeline::CompareConfigs(*pack, *pack);
  return 0;
}
