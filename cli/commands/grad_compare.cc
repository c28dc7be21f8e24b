// plumb grad-compare -tp A -gp B -o OUT: signs of gradients of two trainings, step by step; and plumb
// grad-unpack DIR.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>

#include "base/process/log.h"
#include "base/text/number_text.h"
#include "commands.h"
#include "help_page.h"
#include "progress.h"
#include "terminal.h"
#include "vocabulary.h"
#include "watch/grad_similarity.h"
#include "watch/grad_unpack.h"

namespace plumbline::cli {
namespace {

struct GradArguments {
  std::string target, golden, output, plot = "png", fail_on = "never";
  GradCompareOptions options;
};

const std::map<std::string, SimilarityPlot>& GradPlots() {
  static const std::map<std::string, SimilarityPlot> plots = {{"png", SimilarityPlot::kPng},
                                                              {"svg", SimilarityPlot::kSvg},
                                                              {"none", SimilarityPlot::kNone}};
  return plots;
}

// The exit status. What could not be compared never passes.
Result<int> RunGradCompare(GradArguments& arguments) {
  Progress progress("comparing", "step");
  if (progress.is_on()) {
    arguments.options.progress = [&](uint64_t done, uint64_t all) {
      progress.Show(PartsDone(done, all));
    };
  }
  arguments.options.plot = GradPlots().at(arguments.plot);
  PL_TRY_ASSIGN(GradComparison comparison,
                CompareGradients(arguments.target, arguments.golden, arguments.options));
  const Status written = WriteGradComparison(comparison, arguments.output, arguments.options);
  Print(GradComparisonText(comparison));
  const std::vector<std::string> warnings = WarningsOf(comparison);
  for (const std::string& warning : warnings) LogWarning(warning);
  PL_TRY(written);
  Print(fmt::format("  written: {}\n", OneLine(comparison.page)));
  const bool is_good = !comparison.first && !comparison.first_nonfinite && warnings.empty();
  return arguments.fail_on == "suspect" && !is_good ? 1 : 0;
}

}  // namespace

void AddGradCompareCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<GradArguments>();
  CLI::App* command = app.add_subcommand(
      "grad-compare", "Compare the signs of gradients of two trainings, step by step.");
  command->alias("grad_compare");
  command
      ->add_option("--target_path", arguments->target,
                   "-tp: directory of a gradient probe, which holds rank0, ... or step0, ...")
      ->required();
  command->add_option("--golden_path", arguments->golden, "-gp: that of the training to hold to")
      ->required();
  AddOutput(*command, arguments->output,
            "directory for similarities.csv, first_suspect.csv, pictures and grad_compare.html",
            "--output_path")
      ->required();
  command->add_option("--plot", arguments->plot, "pictures of each parameter: png, svg or none")
      ->check(CLI::IsMember({"png", "svg", "none"}))
      ->capture_default_str();
  command
      ->add_option("--fail-on", arguments->fail_on,
                   "suspect: end with status 1 if there is one, or if something is missing")
      ->check(CLI::IsMember({"never", "suspect"}));
  AddThreads(*command, arguments->options.threads);
  command->footer(FooterText(
      "A parameter is suspect at the first step if less than 97 % of its signs agree, later if the "
      "share drops by more than 0.03 from one step to the next.",
      {"plumb grad-compare -tp npu/grads -gp gpu/grads -o diff",
       "plumb grad-compare -tp new -gp good -o diff --plot none --fail-on suspect && echo fine"},
      {{1, "--fail-on found something"}}));
  command->callback([arguments, &exit_status] {
    SetLogStream(LogStream::kStderr);
    const Result<int> status = RunGradCompare(*arguments);
    exit_status = status ? *status : ReportError("grad-compare", status.error());
  });
}

void AddGradUnpackCommand(CLI::App& app, int& exit_status) {
  const auto directory = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "grad-unpack", "Write the packed signs of a gradient probe as .npy files beside them.");
  command
      ->add_option("directory", *directory,
                   "directory of a gradient probe, which holds rank0, ... or step0, ...")
      ->required();
  command->footer(FooterText("", {"plumb grad-unpack grads"}));
  command->callback([directory, &exit_status] {
    SetLogStream(LogStream::kStderr);
    const Result<UnpackReport> report = UnpackSigns(*directory);
    if (report) {
      Print(fmt::format("{}: {} of {}\n", OneLine(*directory), CountText(report->files, "file"),
                        CountText(report->steps, "step")));
    }
    exit_status = report ? 0 : ReportError("grad-unpack", report.error());
  });
}

}  // namespace plumbline::cli
