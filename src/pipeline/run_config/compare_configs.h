// Compares the configurations of two trainings (docs/reference/config-check.md).

#ifndef PLUMBLINE_PIPELINE_RUN_CONFIG_COMPARE_CONFIGS_H_
#define PLUMBLINE_PIPELINE_RUN_CONFIG_COMPARE_CONFIGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/run_config/config_pack.h"
#include "report/table.h"

namespace plumbline::pipeline {

enum class ConfigLevel : uint8_t { kPass, kWarning, kError };
std::string_view ConfigLevelName(ConfigLevel level);  // "pass", "warning", "error"

// One item of the packs, as a sheet of the workbook.
struct ConfigSheet {
  std::string name;  // "env"
  std::vector<std::string_view> header;
  std::vector<std::vector<report::Cell>> rows;
  ConfigLevel level = ConfigLevel::kPass;  // the worst of the rows
  std::vector<std::string> findings;       // rows that are not right, one line each
};

struct ConfigComparison {
  std::vector<ConfigSheet> sheets;                // of the items of both packs, in upstream's order
  std::vector<std::string> only_bench, only_cmp;  // items of one pack alone
  [[nodiscard]] ConfigLevel level() const;
};

ConfigComparison CompareConfigs(const ConfigPack& bench, const ConfigPack& cmp);

// A workbook with the sheet `summary` and one per item. kIo.
Status WriteConfigWorkbook(const ConfigComparison& comparison, const std::string& path);
// The answer in lines: the verdict, then every finding; at most 50.
std::string ConfigSummary(const ConfigComparison& comparison);

// The hyper-parameters of one file against those of the other; part of CompareConfigs().
void CompareHyperparameters(const ConfigPack& bench, const ConfigPack& cmp, ConfigSheet& sheet);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_RUN_CONFIG_COMPARE_CONFIGS_H_
