// Packs of config_check, launch scripts, YAML files and logs: every reader on the same bytes.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/file/file.h"
#include "run_config/compare_configs.h"
#include "run_config/compare_log_configs.h"
#include "run_config/launch_script.h"

namespace {

void ReadPack(std::string_view bytes) {
  // In memory where there is such a place: replacing a file on a disk waits for it.
  const bool in_memory = std::filesystem::is_directory("/dev/shm");
  static const std::string path =
      std::string(in_memory ? "/dev/shm" : "/tmp") + "/fuzz_config_pack.zip";
  if (!plumbline::WriteFileAtomically(path, bytes, /*durable=*/false)) return;
  const auto pack = plumbline::run_config::ReadConfigPack(path);
  if (pack) (void)plumbline::run_config::CompareConfigs(*pack, *pack);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with("PK")) {
    ReadPack(text);
    return 0;
  }
  plumbline::run_config::LaunchArguments arguments;
  (void)plumbline::run_config::ReadLaunchScript(text, arguments);
  if (const auto file = plumbline::YamlFile::Parse(std::string(text), "fuzzed")) {
    (void)plumbline::run_config::ReadLaunchYaml(*file, arguments);
  }
  (void)arguments.Json();
  if (const auto config = plumbline::run_config::FindLogConfig(text)) {
    (void)plumbline::run_config::FlatConfig(*config);
    (void)plumbline::run_config::PythonRepr(*config);
    (void)plumbline::run_config::ConfigJson(*config);
  }
  return 0;
}
