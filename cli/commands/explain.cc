// plumb explain DIR: what the black boxes of a training saw go wrong first.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/process/log.h"
#include "commands.h"
#include "help_page.h"
#include "terminal.h"
#include "watch/black_box_report.h"

namespace plumbline::cli {
namespace {

struct ExplainArguments {
  std::string data;
  bool as_json = false;
};

Status RunExplain(const ExplainArguments& arguments) {
  PL_TRY_ASSIGN(const BlackBoxReport report, ExplainBlackBox(arguments.data));
  for (const std::string& warning : report.warnings) LogWarning(warning);
  Print(arguments.as_json ? BlackBoxJson(report) : BlackBoxText(report));
  return {};
}

}  // namespace

void AddExplainCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* command = app.add_subcommand(
      "explain", "Say what went wrong first in a training that a black box watched.");
  command->add_option("data", arguments->data, "what black_box(path=...) was given: ./black_box")
      ->required();
  command->add_flag("--json", arguments->as_json, "every finding of every rank, as JSON");
  command->footer(FooterText("", {"plumb explain black_box", "plumb explain black_box --json"}));
  command->callback([arguments, &exit_status] {
    SetLogStream(LogStream::kStderr);
    const Status status = RunExplain(*arguments);
    exit_status = status ? 0 : ReportError("explain", status.error());
  });
}

}  // namespace plumbline::cli
