// plumb merge: chosen calls of all ranks side by side, one sheet per metric.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "commands.h"
#include "help_page.h"
#include "ranks/merge_results.h"
#include "terminal.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

constexpr const char* kNotes =
    "The configuration names calls and, if not all are wanted, metrics "
    "(docs/how-to/compare-ranks.md):\n"
    "  api:\n"
    "  - Distributed.all_reduce\n"
    "  compare_index:\n"
    "  - Max diff\n"
    "\n"
    "Inside one group: outputs of all_reduce, all_gather and broadcast are equal on all ranks,\n"
    "those of reduce_scatter are different slices, what irecv gets is what isend of its partner "
    "gave.";

struct MergeArguments {
  std::string input, input_option, output = "./output", config;
  int threads = 0;
};

Result<int> RunMerge(const MergeArguments& arguments) {
  if (arguments.input.empty() == arguments.input_option.empty()) {
    return Error(ErrorCode::kInvalidArgument, "name the directory of the results once");
  }
  PL_TRY_ASSIGN(const ranks::MergeConfig config, ranks::ReadMergeConfig(arguments.config));
  const std::string& input = arguments.input.empty() ? arguments.input_option : arguments.input;
  PL_TRY_ASSIGN(const ranks::MergeReport report,
                ranks::MergeResults(input, arguments.output, config, arguments.threads));
  std::string text =
      fmt::format("merged: {} ranks, {} rows on each of {} sheets ({})\n", report.ranks.size(),
                  report.rows, report.metrics.size(), fmt::join(report.metrics, ", "));
  for (const auto* lines : {&report.warnings, &report.left_out}) {
    for (const std::string& line : *lines) text += fmt::format("warning: {}\n", line);
  }
  text += fmt::format("file: {}\n", report.file);
  Print(text);
  return report.left_out.empty() ? 0 : 1;
}

}  // namespace

void AddMergeCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<MergeArguments>();
  CLI::App* command = app.add_subcommand(
      "merge", "Put chosen calls of the compared ranks side by side, one sheet per metric.");
  command->alias("merge_result");
  command->add_option("dir", arguments->input, "directory of the results of `plumb compare`");
  command->add_option("-i,--input_dir", arguments->input_option, "the same, as upstream spells it")
      ->group("");
  AddOutput(*command, arguments->output, "where the workbook goes", "--output_dir")
      ->capture_default_str();
  command
      ->add_option("--config,--config-path", arguments->config,
                   "YAML file that names the calls and metrics (also -config)")
      ->required();
  AddThreads(*command, arguments->threads);
  command->footer(FooterText(kNotes,
                             {"plumb compare runs/new/step0 runs/good/step0 -o out",
                              "plumb merge out -o merged --config merge.yaml"},
                             {{1, "a rank was left out (a line says which and why)"},
                              {2, "wrong usage, or nothing to merge"}}));
  command->callback([arguments, &exit_status] {
    const Result<int> status = RunMerge(*arguments);
    exit_status = status ? *status : ReportError("merge", status.error());
  });
}

}  // namespace plumbline::cli
