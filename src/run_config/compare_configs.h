// Two packs of settings compared.

#ifndef PLUMBLINE_RUN_CONFIG_COMPARE_CONFIGS_H_
#define PLUMBLINE_RUN_CONFIG_COMPARE_CONFIGS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/table.h"
#include "run_config/config_pack.h"

namespace plumbline::run_config {

// How alike two texts are, as Python's difflib counts it.

// 2 M / T: M characters in matching blocks (the longest one, then those left and right of it), T
// characters of both. 1 for two empty texts. Time grows with the product of the lengths; texts are
// cut at 1000 characters.
double SimilarityRatio(std::string_view a, std::string_view b);

// Compares the configurations of two trainings (docs/reference/config-check.md).

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

}  // namespace plumbline::run_config

#endif  // PLUMBLINE_RUN_CONFIG_COMPARE_CONFIGS_H_
