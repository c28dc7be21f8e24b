// plumb free_benchmark merge DIR: the rows of a perturbation check over all ranks.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/process/log.h"
#include "base/text/number_text.h"
#include "commands.h"
#include "help_page.h"
#include "terminal.h"
#include "vocabulary.h"
#include "watch/perturbation_rows.h"

namespace plumbline::cli {
namespace {

struct FreeBenchmarkArguments {
  std::string data, output;
};

Status RunPerturbationMerge(const FreeBenchmarkArguments& arguments) {
  PL_TRY_ASSIGN(const PerturbationReport report,
                MergePerturbations(arguments.data, arguments.output));
  Print(fmt::format("{}\n  {} of {}\n  written: {}\n", OneLine(report.answer),
                    CountText(report.rows, "row"), CountText(report.ranks, "rank"),
                    OneLine(report.path)));
  for (const std::string& warning : report.warnings) LogWarning(warning);
  return {};
}

}  // namespace

void AddFreeBenchmarkCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<FreeBenchmarkArguments>();
  CLI::App* group = app.add_subcommand(
      "free_benchmark", "Look at the results of a perturbation check (task free_benchmark).");
  group->require_subcommand(1);
  group->footer(FooterText("", {"plumb free_benchmark merge ./check"}));
  CLI::App* command = group->add_subcommand(
      "merge", "One table of the rows of all ranks, in the order of steps and calls.");
  command->add_option("DIR", arguments->data, "the dump_path of the check")->required();
  AddOutput(*command, arguments->output, "directory for free_benchmark_merged.csv; default: DIR",
            "--out_path");
  command->footer(FooterText("", {"plumb free_benchmark merge ./check"}));
  command->callback([arguments, &exit_status] {
    SetLogStream(LogStream::kStderr);
    const Status status = RunPerturbationMerge(*arguments);
    exit_status = status ? 0 : ReportError("free_benchmark merge", status.error());
  });
}

}  // namespace plumbline::cli
