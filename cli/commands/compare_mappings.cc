#include "commands/compare_mappings.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <vector>

#include "base/process/log.h"
#include "terminal.h"

namespace plumbline::cli {
namespace {

// An option whose value may be left out.
void AddOptionalFile(CLI::App& command, const std::string& name, std::optional<std::string>& file,
                     const std::string& help) {
  command
      .add_option(
          name,
          [&file](const std::vector<std::string>& values) {
            file = values.empty() ? std::string() : values.front();
            return true;
          },
          help)
      ->expected(0, 1)
      ->type_name("[FILE]");
}

void AddMetric(const char* name, const Metric& metric, std::string& line) {
  if (const double* value = std::get_if<double>(&metric)) {
    line += fmt::format(" {} {:.6g}", name, *value);
  }
}

}  // namespace

void AddPairingOptions(CLI::App& command, CompareOptions& options) {
  command.add_flag("-f,--fuzzy_match", options.fuzzy_match,
                   "ignore call numbers: the k-th call of a name pairs with the k-th (also -fm)");
  command
      .add_option("--data_mapping", options.mappings.data,
                  "YAML: values that are called otherwise on the golden side (also -dm)")
      ->type_name("FILE");
  AddOptionalFile(command, "--cell_mapping", options.mappings.cell,
                  "YAML: modules that are called otherwise; without FILE: Cell is Module (also "
                  "-cm)");
  AddOptionalFile(
      command, "--api_mapping", options.mappings.api,
      "YAML: MindSpore APIs and their arguments; without FILE: the built-in table (also "
      "-am)");
  AddOptionalFile(command, "--layer_mapping", options.mappings.layer,
                  "YAML: parts of the model; without FILE: by structure alone (also -lm)");
  command
      .add_option("--postprocess", options.postprocess_path,
                  "YAML: tensors that are multiplied by a matrix before they are compared; and rows "
                  "of results that grouped operators leave unwritten become zeros")
      ->type_name("FILE");
  command
      .add_option_function<std::string>(
          "--schema",
          [&options](const std::string& schema) { options.newest_columns = schema == "newest"; },
          "columns of csv and xlsx: 1.2.2 with Verdict and Reason, or those of upstream's newest "
          "release with them")
      ->check(CLI::IsMember({"1.2.2", "newest"}))
      ->default_str("1.2.2");
}

void LogTensors(const Comparison& comparison) {
  for (const ComparedRow& row : comparison.rows) {
    if (!row.target || !row.golden || !row.target->is_tensor) continue;
    std::string line =
        fmt::format("{}: {}", OneLine(row.target->name.view()), VerdictName(row.verdict));
    AddMetric("cosine", row.tensor->cosine, line);
    AddMetric("max_abs_error", row.tensor->max_abs_error, line);
    AddMetric("max_relative_error", row.tensor->max_relative_error, line);
    PrintError(line + "\n");
  }
}

}  // namespace plumbline::cli
