// plumb check: a recording against a baseline and a rule file, for continuous integration.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>

#include "commands.h"
#include "compare/check_rules.h"
#include "help_page.h"
#include "plumbline/compare.h"
#include "report/ci_report.h"
#include "terminal.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

constexpr int kCheckFailed = 1;

struct CheckArguments {
  std::string rules, target, baseline;
  std::string junit, sarif;
  compare::Fingerprint fingerprint;
  CompareOptions options;
};

// The local date as "2026-11-21".
std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[16];
  return std::string(text, std::strftime(text, sizeof(text), "%Y-%m-%d", &local));
}

Result<int> RunCheck(const CheckArguments& arguments) {
  PL_TRY_ASSIGN(const compare::CheckRules rules, compare::ReadCheckRules(arguments.rules));
  PL_TRY_ASSIGN(const std::string baseline,
                compare::ChooseBaseline(arguments.baseline, arguments.fingerprint));
  PL_TRY_ASSIGN(const Comparison comparison,
                CompareRuns(arguments.target, baseline, arguments.options));
  const compare::CheckResult result = compare::CheckComparison(comparison, rules, Today());
  if (!arguments.junit.empty()) PL_TRY(report::WriteJunit(result.report, arguments.junit));
  if (!arguments.sarif.empty()) PL_TRY(report::WriteSarif(result.report, arguments.sarif));
  const std::string text = compare::CheckText(result) + SummaryText(comparison);
  Print(text);
  return result.report.fails() ? kCheckFailed : 0;
}

}  // namespace

void AddCheckCommand(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("check", "Hold a recorded run against a baseline and a rule file.");
  const auto arguments = std::make_shared<CheckArguments>();
  command->add_option("rules", arguments->rules, "the rule file (YAML)")->required();
  command->add_option("target", arguments->target, "the run under test")->required();
  command
      ->add_option("baseline", arguments->baseline,
                   "the reference run, or a directory with a baselines.yaml")
      ->required();
  command->add_option("--hardware", arguments->fingerprint.hardware,
                      "what the target ran on, to choose from baselines.yaml");
  command->add_option("--framework", arguments->fingerprint.framework, "likewise");
  command->add_option("--version", arguments->fingerprint.version, "likewise");
  command->add_option("--junit", arguments->junit, "write the cases as JUnit XML to this file");
  command->add_option("--sarif", arguments->sarif, "write the failures as SARIF to this file");
  command->add_flag("-f,--fuzzy_match", arguments->options.fuzzy_match, "as for plumb compare");
  AddThreads(*command, arguments->options.threads);
  command->footer(FooterText(
      "",
      {"plumb check rules.yaml runs/new/step0 runs/good/step0 --junit check.xml",
       "plumb check rules.yaml runs/new/step0 baselines --hardware A100 --framework torch "
       "--version 2.6"},
      {{0, "every rule holds"},
       {1, "some rules do not hold"},
       {2, "wrong usage, a wrong rule file, or dumps that do not fit"}}));
  command->callback([arguments, &exit_status] {
    const Result<int> status = RunCheck(*arguments);
    exit_status = status ? *status : ReportError("check", status.error());
  });
}

}  // namespace plumbline::cli
