// plumb config_check: collect and compare the configurations of two trainings.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "commands.h"
#include "help_page.h"
#include "run_config/compare_configs.h"
#include "run_config/compare_log_configs.h"
#include "terminal.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

struct ConfigCheckArguments {
  bool dump = false;
  std::vector<std::string> files;
  std::vector<std::string> packs;
  std::vector<std::string> compared_logs;  // NPU, bench
  std::vector<std::string> verified_logs;  // [bench YAML] target
  std::string output;
  std::string fail_on;
  run_config::CollectOptions collect;
};

Result<int> Collect(const ConfigCheckArguments& arguments) {
  const std::string path =
      arguments.output.empty() ? std::string("./config_check_pack.zip") : arguments.output;
  run_config::CollectOptions options = arguments.collect;
  options.files = arguments.files;
  PL_TRY(run_config::WriteConfigPack(path, options));
  Print(fmt::format("file: {}\n", path));
  return 0;
}

Result<int> Compare(const ConfigCheckArguments& arguments) {
  PL_TRY_ASSIGN(const run_config::ConfigPack bench, run_config::ReadConfigPack(arguments.packs[0]));
  PL_TRY_ASSIGN(const run_config::ConfigPack cmp, run_config::ReadConfigPack(arguments.packs[1]));
  const run_config::ConfigComparison comparison = run_config::CompareConfigs(bench, cmp);
  const std::string directory =
      arguments.output.empty() ? std::string("./config_check_result") : arguments.output;
  const std::string path = JoinPath(directory, "result.xlsx");
  PL_TRY(run_config::WriteConfigWorkbook(comparison, path));
  Print(run_config::ConfigSummary(comparison));
  Print(fmt::format("file: {}\n", path));
  if (arguments.fail_on.empty()) return 0;
  const auto limit = arguments.fail_on == "error" ? run_config::ConfigLevel::kError
                                                  : run_config::ConfigLevel::kWarning;
  const bool fails = comparison.level() >= limit || comparison.sheets.empty();
  return fails ? kDifferencesFound : 0;
}

int Answer(const run_config::LogComparison& comparison, const ConfigCheckArguments& arguments) {
  Print(run_config::LogSummary(comparison));
  for (const std::string& file : comparison.files) Print(fmt::format("file: {}\n", file));
  const bool agree = !comparison.parameters.empty() && comparison.different() == 0;
  return agree || arguments.fail_on.empty() ? 0 : kDifferencesFound;
}

Result<int> CompareLogs(const ConfigCheckArguments& arguments) {
  const auto& logs = arguments.compared_logs;
  PL_TRY_ASSIGN(const run_config::LogComparison comparison,
                run_config::CompareLogs(
                    logs[0], logs[1],
                    arguments.output.empty() ? "./verl_param_compare_result" : arguments.output));
  return Answer(comparison, arguments);
}

Result<int> VerifyLog(const ConfigCheckArguments& arguments) {
  const auto& files = arguments.verified_logs;
  const bool has_bench = files.size() == 2;
  PL_TRY_ASSIGN(const run_config::LogComparison comparison,
                run_config::VerifyLog(
                    has_bench ? files[0] : std::string(), files.back(),
                    arguments.output.empty() ? "./verl_param_verify_result" : arguments.output));
  return Answer(comparison, arguments);
}

Result<int> RunConfigCheck(const ConfigCheckArguments& arguments) {
  const int actions = (arguments.dump ? 1 : 0) + (arguments.packs.empty() ? 0 : 1) +
                      (arguments.compared_logs.empty() ? 0 : 1) +
                      (arguments.verified_logs.empty() ? 0 : 1);
  if (actions != 1) {
    return Error(
        ErrorCode::kInvalidArgument,
        "expected one of -d [FILES] (collect), -c BENCH.zip CMP.zip (compare), -vc NPU.log "
        "BENCH.log and -vv [BENCH.yaml] TARGET.log");
  }
  if (!arguments.compared_logs.empty()) return CompareLogs(arguments);
  if (!arguments.verified_logs.empty()) return VerifyLog(arguments);
  return arguments.dump ? Collect(arguments) : Compare(arguments);
}

}  // namespace

void AddConfigCheckCommand(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "config_check", "Collect the configuration of a training, or compare two of them.");
  const auto arguments = std::make_shared<ConfigCheckArguments>();
  CLI::Option* dump =
      command
          ->add_option("-d,--dump", arguments->files,
                       "collect environment, packages and the arguments in .sh and .yaml files")
          ->expected(0, -1);
  command->add_option("-c,--compare", arguments->packs, "two packs: the reference, the other one")
      ->expected(2);
  command
      ->add_option("--verl-compare", arguments->compared_logs,
                   "two logs of verl: of the NPU, of the reference (also -vc)")
      ->expected(2);
  command
      ->add_option("--verl-verify", arguments->verified_logs,
                   "a log of verl against a YAML file, or against the built-in table (also -vv)")
      ->expected(1, 2);
  AddOutput(*command, arguments->output,
            "of -d the pack (./config_check_pack.zip), of the others a directory "
            "(./config_check_result, ./verl_param_compare_result, ./verl_param_verify_result)");
  command->add_option("--python", arguments->collect.python_prefix,
                      "-d: prefix of the Python whose packages count (of python3 on the path)");
  command->add_flag("--all-env", arguments->collect.all_environment,
                    "-d: every environment variable, secrets included, not only those compared");
  command
      ->add_option("--fail-on", arguments->fail_on,
                   "end with status 1 from this level on; of logs both are the same")
      ->check(CLI::IsMember({"warning", "error"}));
  command->footer(FooterText("Checkpoints: plumb compare A B.",
                             {"plumb config_check -d train.sh model.yaml -o run_a.zip",
                              "plumb config_check -c run_a.zip run_b.zip --fail-on error",
                              "plumb config_check -vc npu.log bench.log"},
                             {{1, "--fail-on found something"}, {2, "wrong usage, or no pack"}}));
  command->callback([arguments, dump, &exit_status] {
    arguments->dump = dump->count() > 0;
    std::erase(arguments->files, "");  // -d alone
    const Result<int> status = RunConfigCheck(*arguments);
    exit_status = status ? *status : ReportError("config_check", status.error());
  });
}

}  // namespace plumbline::cli
