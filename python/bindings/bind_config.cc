#include "bind_config.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "base/file/file.h"
#include "errors.h"
#include "file_path.h"
#include "run_config/compare_configs.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

Status WriteUnlocked(const std::string& path, const run_config::CollectOptions& options) {
  const nb::gil_scoped_release release;
  return run_config::WriteConfigPack(path, options);
}

Result<std::string> CompareUnlocked(const std::string& bench_path, const std::string& cmp_path,
                                    const std::string& directory) {
  const nb::gil_scoped_release release;
  PL_TRY_ASSIGN(const run_config::ConfigPack bench, run_config::ReadConfigPack(bench_path));
  PL_TRY_ASSIGN(const run_config::ConfigPack cmp, run_config::ReadConfigPack(cmp_path));
  const run_config::ConfigComparison comparison = run_config::CompareConfigs(bench, cmp);
  PL_TRY(run_config::WriteConfigWorkbook(comparison, JoinPath(directory, "result.xlsx")));
  return run_config::ConfigSummary(comparison);
}

}  // namespace

void BindConfigPacks(nb::module_& m) {
  m.def(
      "write_config_pack",
      [](const std::string& path, std::vector<std::string> files, bool all_environment,
         const std::string& python_prefix) {
        ValueOrRaise(WriteUnlocked(path, {.files = std::move(files),
                                          .python_prefix = python_prefix,
                                          .all_environment = all_environment}));
      },
      nb::arg("path"), nb::arg("files"), nb::arg("all_environment"), nb::arg("python_prefix"),
      "Writes a pack of what can be seen from outside: `config_check -d`.");
  m.def(
      "compare_config_packs",
      [](const FilePath& bench, const FilePath& cmp, const FilePath& directory) {
        return TextWithPaths{
            ValueOrRaise(CompareUnlocked(bench.bytes, cmp.bytes, directory.bytes))};
      },
      nb::arg("bench"), nb::arg("cmp"), nb::arg("directory"),
      "Compares two packs, writes result.xlsx, returns the answer as text: `config_check -c`.");
}

}  // namespace plumbline::python
