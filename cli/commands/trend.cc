// plumb trend DIR: what a training monitor wrote, as one page of curves over the steps.

#include "watch/trend.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/file/file.h"
#include "base/process/log.h"
#include "commands.h"
#include "help_page.h"
#include "progress.h"
#include "terminal.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

struct TrendArguments {
  std::string data, output;
};

// The exit status.
Result<int> RunTrend(const TrendArguments& arguments) {
  TrendOptions options;
  Progress progress("reading", "file");
  if (progress.is_on()) {
    options.progress = [&](uint64_t done, uint64_t all) { progress.Show(PartsDone(done, all)); };
  }
  PL_TRY_ASSIGN(const Trend trend, ReadTrend(arguments.data, options));
  const std::string path =
      arguments.output.empty() ? JoinPath(arguments.data, "trend.html") : arguments.output;
  if (KindOf(path) == PathKind::kDirectory) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("-o {}: a directory (expected a file or nothing)", path));
  }
  // What was found is told, whatever becomes of the page.
  Print(TrendText(trend));
  for (const std::string& warning : trend.warnings) LogWarning(warning);
  PL_TRY(MakeDirectories(std::string(DirectoryOf(path))));
  PL_TRY(WriteTrendPage(trend, path));
  Print(fmt::format("  written: {}\n", OneLine(path)));
  return trend.damage.empty() ? 0 : kNotAllRead;
}

}  // namespace

void AddTrendCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<TrendArguments>();
  CLI::App* command = app.add_subcommand(
      "trend", "Show what a training monitor wrote as one page of curves over the steps.");
  command
      ->add_option("data", arguments->data,
                   "directory that holds Dec03_21-34-40-rank0-3f9c1a2b, ...")
      ->required();
  AddOutput(*command, arguments->output, "the page; default: trend.html in the directory");
  command->footer(
      FooterText("", {"plumb trend monitor_output", "plumb trend monitor_output -o curves.html"},
      {{kNotAllRead, "not everything could be read; the rest is shown"}}));
  command->callback([arguments, &exit_status] {
    SetLogStream(LogStream::kStderr);
    const Result<int> status = RunTrend(*arguments);
    exit_status = status ? *status : ReportError("trend", status.error());
  });
}

}  // namespace plumbline::cli
