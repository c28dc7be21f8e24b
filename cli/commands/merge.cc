// plumb merge: chosen calls of all ranks side by side, one sheet per metric.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "commands.h"
#include "pipeline/ranks/merge_results.h"
#include "terminal.h"

namespace plumbline::cli {
namespace {

constexpr const char* kFooter =
    "The configuration names calls and, if not all are wanted, metrics "
    "(docs/how-to/compare-ranks.md):\n"
    "  api:\n"
    "  - Distributed.all_reduce\n"
    "  compare_index:\n"
    "  - Max diff\n"
    "\n"
    "Inside one group: outputs of all_reduce, all_gather and broadcast are equal on all ranks,\n"
    "those of reduce_scatter are different slices, what irecv gets is what isend of its partner "
    "gave.\n"
    "\n"
    "Examples:\n"
    "  plumb compare runs/new/step0 runs/good/step0 -o out\n"
    "  plumb merge out -o merged --config merge.yaml\n"
    "\n"
    "Exit status: 0 done, 1 a rank was left out (a line says which and why), 2 wrong usage or\n"
    "nothing to merge, 3 file not found, 5 damaged file, 6 input or output error.";

struct Arguments {
  std::string input, input_option, output = "./output", config;
  int threads = 0;
};

Result<int> RunMerge(const Arguments& arguments) {
  if (arguments.input.empty() == arguments.input_option.empty()) {
    return Error(ErrorCode::kInvalidArgument, "name the directory of the results once");
  }
  PL_TRY_ASSIGN(const pipeline::MergeConfig config, pipeline::ReadMergeConfig(arguments.config));
  const std::string& input = arguments.input.empty() ? arguments.input_option : arguments.input;
  PL_TRY_ASSIGN(const pipeline::MergeReport report,
                pipeline::MergeResults(input, arguments.output, config, arguments.threads));
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
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "merge", "Put chosen calls of the compared ranks side by side, one sheet per metric.");
  command->alias("merge_result");
  command->add_option("dir", arguments->input, "directory of the results of `plumb compare`");
  command->add_option("-i,--input_dir", arguments->input_option, "the same, as upstream spells it")
      ->group("");
  command->add_option("-o,--output_dir", arguments->output, "where the workbook goes")
      ->capture_default_str();
  command
      ->add_option("--config,--config-path", arguments->config,
                   "YAML file that names the calls and metrics (also -config)")
      ->required();
  command->add_option("--threads", arguments->threads, "worker threads; 0: one per core")
      ->check(CLI::Range(0, 4096));
  command->footer(kFooter);
  command->callback([arguments, &exit_status] {
    const Result<int> status = RunMerge(*arguments);
    exit_status = status ? *status : ReportError("merge", status.error());
  });
}

}  // namespace plumbline::cli
