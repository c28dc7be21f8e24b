// plumb graph DIR: a recording as a graph of its modules, in a file for viewers.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/process/log.h"
#include "commands.h"
#include "commands/natural_number.h"
#include "help_page.h"
#include "progress.h"
#include "terminal.h"
#include "view/graph_files.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

struct GraphArguments {
  std::string path, target_path;
  std::string type = "db", stacks;
  view::GraphFileOptions options;
};

Result<std::string> TargetOf(const GraphArguments& arguments) {
  if (arguments.path.empty() == arguments.target_path.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "name one recording: DIR or -tp DIR (expected the directory of a rank, of ranks "
                 "or of steps)");
  }
  return arguments.path.empty() ? arguments.target_path : arguments.path;
}

view::StackForm StacksOf(const GraphArguments& arguments) {
  if (arguments.stacks == "none") return view::StackForm::kNone;
  const bool is_short = arguments.stacks.empty() ? arguments.type == "vis"
                                                 : arguments.stacks == "short";
  return is_short ? view::StackForm::kShort : view::StackForm::kFull;
}

Status RunGraph(GraphArguments& arguments) {
  PL_TRY_ASSIGN(const std::string target, TargetOf(arguments));
  view::GraphFileOptions& options = arguments.options;
  options.type = arguments.type == "vis" ? view::GraphFileType::kVis : view::GraphFileType::kDb;
  options.stacks = StacksOf(arguments);
  Progress progress("building", "rank");
  if (progress.is_on()) {
    options.progress = [&](uint64_t done, uint64_t all) { progress.Show(PartsDone(done, all)); };
  }
  PL_TRY_ASSIGN(const view::GraphFileReport report, view::WriteGraphFiles(target, options));
  Print(GraphAnswer(report) + "\n");
  for (const std::string& file : report.files) Print(fmt::format("  {}\n", OneLine(file)));
  for (const std::string& note : report.notes) PrintNote("graph", note);
  return {};
}

void AddOptions(CLI::App& command, GraphArguments& arguments) {
  view::GraphFileOptions& options = arguments.options;
  command.add_option("dir", arguments.path, "directory of a rank, of ranks or of steps");
  command.add_option("--target_path", arguments.target_path, "the same (also -tp)")
      ->type_name("PATH");
  AddOutput(command, options.output_dir, "directory of the files", "--output_path")
      ->capture_default_str();
  command
      .add_option("--file_type", arguments.type,
                  "db: one .vis.db for all ranks and steps; vis: one .vis for each of them")
      ->check(CLI::IsMember({"db", "vis"}))
      ->capture_default_str();
  command
      .add_option("--stack", arguments.stacks,
                  "call stacks: full, short (the frame that makes the call) or none; default: full, "
                  "in .vis short")
      ->check(CLI::IsMember({"full", "short", "none"}));
  command
      .add_flag_callback(
          "--complete_stack", [&arguments] { arguments.stacks = "full"; },
          "the same as --stack full (also -cs)")
      ->group("");
  command.add_flag("--overflow_check", options.grades_overflow,
                   "grade nodes with NaN, Inf or a jump of norms (also -oc)");
  command.add_option("--ranks,--rank", options.filter.ranks, "only these ranks, e.g. 0,2")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(NaturalNumber());
  command.add_option("--steps,--step", options.filter.steps, "only these steps, e.g. 0,2")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(NaturalNumber());
  AddThreads(command, options.threads);
}

}  // namespace

void AddGraphCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<GraphArguments>();
  CLI::App* command = app.add_subcommand(
      "graph", "Write a recording as a graph of its modules, in a file for viewers.");
  command->alias("graph_visualize");
  AddOptions(*command, *arguments);
  command->footer(FooterText(
      "Recordings need level L0 or mix.",
      {"plumb graph runs/new -o graphs", "plumb graph runs/new/step0/rank3 -o graphs -oc",
       "plumb graph runs/new -o graphs --file_type vis --ranks 0,1"}));
  command->callback([arguments, &exit_status] {
    SetLogStream(LogStream::kStderr);
    const Status status = RunGraph(*arguments);
    exit_status = status ? 0 : ReportError("graph", status.error());
  });
}

}  // namespace plumbline::cli
