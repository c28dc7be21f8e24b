// plumb csv2tensorboard --data DIR: what a training monitor wrote as event files of TensorBoard.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/process/log.h"
#include "base/text/number_text.h"
#include "commands.h"
#include "help_page.h"
#include "progress.h"
#include "terminal.h"
#include "vocabulary.h"
#include "watch/monitor_to_tensorboard.h"

namespace plumbline::cli {
namespace {

struct TensorboardArguments {
  std::string output, data;
  TensorboardOptions options;
};

// The exit status.
Result<int> RunCsv2tensorboard(TensorboardArguments& arguments) {
  Progress progress("converting", "event file");
  if (progress.is_on()) {
    arguments.options.progress = [&](uint64_t done, uint64_t all) {
      progress.Show(PartsDone(done, all));
    };
  }
  PL_TRY_ASSIGN(const TensorboardReport report,
                MonitorToTensorboard(arguments.data, arguments.output, arguments.options));
  std::string text =
      fmt::format("{}: {}, {} of {}{}\n", OneLine(report.path),
                  CountText(report.event_files, "event file"), CountText(report.scalars, "scalar"),
                  CountText(report.directories, "directory", "directories"), report.damage);
  if (report.left_out > 0) {
    text += fmt::format(
        "  {} rows left out: a later directory of their rank begins at or before their step\n",
        report.left_out);
  }
  if (report.repeated > 0) {
    text += fmt::format("  {} left out: they name a tensor of a step a second time\n",
                        CountText(report.repeated, "row"));
  }
  text += fmt::format("  show them: tensorboard --logdir {}\n", OneLine(report.path));
  Print(text);
  for (const std::string& warning : report.warnings) LogWarning(warning);
  return report.damage.empty() ? 0 : kNotAllRead;
}

}  // namespace

void AddCsv2tensorboardCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<TensorboardArguments>();
  TensorboardOptions& options = arguments->options;
  CLI::App* command = app.add_subcommand(
      "csv2tensorboard", "Convert what a training monitor wrote to event files of TensorBoard.");
  command
      ->add_option("--data", arguments->data,
                   "directory that holds Dec03_21-34-40-rank0-3f9c1a2b, ...")
      ->required();
  AddOutput(*command, arguments->output,
            "directory for rank0/actv/events..., ...; default: "
            "DIR/{time}-csv2tensorboard_by_step",
            "--output_dirpath");
  command->add_option("--data_type", options.kinds, "kinds of files; default: all")
      ->check(CLI::IsMember(TensorboardKinds()))
      ->delimiter(',');
  command->add_option("--time_start", options.time_start,
                      "directories from this time on, such as Dec03_21-34-40");
  command->add_option("--time_end", options.time_end, "directories up to this time");
  AddThreads(*command, options.threads);
  command->footer(FooterText(
      "", {"plumb csv2tensorboard --data monitor_output",
           "plumb csv2tensorboard --data monitor_output --data_type grad_reduced -o tb"},
      {{kNotAllRead, "not everything could be read; the rest is converted"}}));
  command->callback([arguments, &exit_status] {
    SetLogStream(LogStream::kStderr);
    const Result<int> status = RunCsv2tensorboard(*arguments);
    exit_status = status ? *status : ReportError("csv2tensorboard", status.error());
  });
}

}  // namespace plumbline::cli
