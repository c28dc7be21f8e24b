// plumb graph TARGET [GOLDEN]: recordings as graphs of their modules, in files for viewers.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/process/log.h"
#include "base/text/json.h"
#include "commands.h"
#include "commands/compare_mappings.h"
#include "commands/natural_number.h"
#include "help_page.h"
#include "load/compare_request.h"
#include "progress.h"
#include "terminal.h"
#include "view/graph_files.h"
#include "view/merged_graphs.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

struct GraphArguments {
  std::vector<std::string> paths;  // TARGET [GOLDEN]
  std::string target_path, golden_path, request_path, summary_path;
  std::string type = "db", stacks;
  std::vector<std::string> fail_on;
  bool tensor_log = false, progress_log = false;  // upstream's
  bool serve = false;
  std::string thresholds_path;
  view::ParallelOptions parallel;
  std::vector<std::string> files;  // written
  view::GraphFileOptions options;
};

// Fills target and golden from whichever form was used.
Status ResolvePaths(GraphArguments& arguments) {
  const bool is_named = !arguments.target_path.empty() || !arguments.golden_path.empty();
  const int forms = (arguments.paths.empty() ? 0 : 1) + (is_named ? 1 : 0) +
                    (arguments.request_path.empty() ? 0 : 1);
  if (forms != 1) {
    return Error(ErrorCode::kInvalidArgument,
                 "name the recordings once (TARGET [GOLDEN], or -tp and -gp, or -i FILE)");
  }
  if (!arguments.request_path.empty()) {
    PL_TRY_ASSIGN(load::GraphRequest request, load::ReadGraphRequest(arguments.request_path));
    arguments.target_path = std::move(request.target_path);
    arguments.golden_path = std::move(request.golden_path);
    return {};
  }
  if (!arguments.paths.empty()) {
    arguments.target_path = arguments.paths[0];
    if (arguments.paths.size() > 1) arguments.golden_path = arguments.paths[1];
  }
  if (!arguments.target_path.empty()) return {};
  return Error(ErrorCode::kInvalidArgument,
               "TARGET (-tp): is empty or missing (expected the directory of a rank, of ranks or "
               "of steps)");
}

view::StackForm StacksOf(const GraphArguments& arguments) {
  if (arguments.stacks == "none") return view::StackForm::kNone;
  const bool is_short =
      arguments.stacks.empty() ? arguments.type == "vis" : arguments.stacks == "short";
  return is_short ? view::StackForm::kShort : view::StackForm::kFull;
}

Status WriteSummary(const GraphArguments& arguments, const view::GraphFileReport& report) {
  if (arguments.summary_path.empty()) return {};
  PL_TRY_ASSIGN(const std::string text, view::GraphSummaryJson(report));
  return WriteFileAtomically(arguments.summary_path, text + "\n", /*durable=*/false);
}

// Recordings of merged ranks instead of a file for viewers.
Result<int> RunMerge(const GraphArguments& arguments) {
  if (!arguments.golden_path.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "--file_type json: merges one recording (expected no GOLDEN). Merge both, then "
                 "compare the results with plumb compare");
  }
  view::GraphFileOptions options = arguments.options;
  Progress progress("merging", "rank");
  if (progress.is_on()) {
    options.progress = [&](uint64_t done, uint64_t all) { progress.Show(PartsDone(done, all)); };
  }
  PL_TRY_ASSIGN(const view::MergeReport report,
                view::WriteMergedDumps(arguments.target_path, options, arguments.parallel));
  Print(view::MergeAnswer(report));
  for (const std::string& note : report.notes) PrintNote("graph", note);
  return 0;
}

Result<view::GraphFileReport> WriteFiles(const GraphArguments& arguments) {
  if (arguments.parallel.are_given()) {
    return view::WriteMergedGraphFiles(arguments.target_path, arguments.golden_path,
                                       arguments.options, arguments.parallel);
  }
  return view::WriteGraphFiles(arguments.target_path, arguments.golden_path, arguments.options);
}

// What --file_type json asks for goes with merging alone, as in msprobe.
Result<bool> WritesDumps(GraphArguments& arguments) {
  if (arguments.type != "json") return false;
  if (arguments.parallel.are_given() || !arguments.golden_path.empty()) return true;
  PrintNote("graph", "--file_type json: is for merged ranks (--rank_size); .vis.db is written");
  arguments.type = "db";
  return false;
}

// Lines for front ends that run upstream's command and read them from its standard output.
class ProgressLog {
 public:
  explicit ProgressLog(bool is_on) : is_on_(is_on) { Print(true); }

  void Show(uint64_t done, uint64_t all) {
    const int percent = all == 0 ? 0 : static_cast<int>(100 * done / all);
    if (percent == percent_) return;
    percent_ = percent;
    Print(true);
  }
  void Finish() {
    percent_ = 100;
    Print(false);
  }
  void Fail(std::string_view message) {
    error_ = message;
    Print(false);
  }

 private:
  void Print(bool is_running) const {
    if (!is_on_) return;
    std::string error;
    if (!error_.empty()) json::AppendString(error_, error);
    cli::Print(
        fmt::format("PROGRESS: {{\"current_progress\": {}, \"process_running\": {}, "
                    "\"error_msg\": [{}]}}\n",
                    percent_, is_running, error));
    (void)std::fflush(stdout);
  }

  const bool is_on_;
  int percent_ = 0;
  std::string error_;
};

Result<int> RunGraph(GraphArguments& arguments, ProgressLog& log) {
  PL_TRY(ResolvePaths(arguments));
  // Of one recording alone, what comparisons say cannot be asked for.
  if (arguments.golden_path.empty()) PL_TRY(view::FailsOn({}, arguments.fail_on));
  PL_TRY_ASSIGN(const bool writes_dumps, WritesDumps(arguments));
  if (writes_dumps) return RunMerge(arguments);
  view::GraphFileOptions& options = arguments.options;
  options.type = arguments.type == "vis" ? view::GraphFileType::kVis : view::GraphFileType::kDb;
  options.stacks = StacksOf(arguments);
  if (!arguments.thresholds_path.empty()) {
    PL_TRY_ASSIGN(options.thresholds, view::ReadGraphThresholds(arguments.thresholds_path));
  }
  if (arguments.tensor_log) options.compared = LogTensors;
  Progress progress(arguments.golden_path.empty() ? "building" : "comparing", "rank");
  options.progress = [&](uint64_t done, uint64_t all) {
    progress.Show(PartsDone(done, all));
    log.Show(done, all);
  };
  PL_TRY_ASSIGN(const view::GraphFileReport report, WriteFiles(arguments));
  Print(view::GraphAnswer(report));
  for (const std::string& file : report.files) Print(fmt::format("  {}\n", OneLine(file)));
  for (const std::string& note : report.notes) PrintNote("graph", note);
  PL_TRY(WriteSummary(arguments, report));
  arguments.files = report.files;
  PL_TRY_ASSIGN(const bool fails, view::FailsOn(report, arguments.fail_on));
  return fails ? kDifferencesFound : 0;
}

// Runs plumb view, which sets the exit status.
void ServeFiles(const GraphArguments& arguments, CLI::App& app) {
  std::vector<std::string> words(arguments.files.rbegin(), arguments.files.rend());
  app.get_subcommand("view")->parse(std::move(words));
}

void AddInputs(CLI::App& command, GraphArguments& arguments) {
  view::GraphFileOptions& options = arguments.options;
  command
      .add_option("paths", arguments.paths,
                  "TARGET [GOLDEN]: directories of a rank, of ranks or of steps; with both they "
                  "are compared")
      ->expected(0, 2);
  command.add_option("--target_path", arguments.target_path, "the run under test (also -tp)")
      ->type_name("PATH");
  command.add_option("--golden_path", arguments.golden_path, "the reference run (also -gp)")
      ->type_name("PATH");
  command.add_option("-i,--input_path", arguments.request_path,
                     "upstream's JSON file: npu_path and, to compare, bench_path");
  command.add_option("--ranks,--rank", options.filter.ranks, "only these ranks, e.g. 0,2")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(NaturalNumber());
  command.add_option("--steps,--step", options.filter.steps, "only these steps, e.g. 0,2")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(NaturalNumber());
}

void AddPairing(CLI::App& command, GraphArguments& arguments) {
  CompareOptions& options = arguments.options.compare;
  command.add_flag("-f,--fuzzy_match", options.fuzzy_match,
                   "ignore call numbers: the k-th call of a name pairs with the k-th (also -fm)");
  command
      .add_option(
          "--layer_mapping",
          [&options](const std::vector<std::string>& values) {
            options.mappings.layer = values.empty() ? std::string() : values.front();
            return true;
          },
          "YAML: parts of the model that are called otherwise; without FILE: by structure alone "
          "(also -lm)")
      ->expected(0, 1)
      ->type_name("[FILE]");
  command.add_option("--noise", options.noise_path,
                     "a third run that is right: as far as it is from GOLDEN is noise");
  command.add_flag("--is_print_compare_log", arguments.tensor_log,
                   "one line per compared tensor on stderr (also -tensor_log)");
}

// One value of each for one recording, two (target, golden) for a pair.
void AddParallel(CLI::App& command, view::ParallelOptions& options) {
  const auto add = [&](const char* name, std::vector<int64_t>& values, const char* text) {
    command.add_option(name, values, text)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->group("Merging the ranks of a parallel run")
        ->type_name("N[,N]");
  };
  add("--rank_size", options.rank_size, "how many ranks were recorded; merges them");
  add("--tp", options.tp, "size of tensor parallelism");
  add("--pp", options.pp, "size of pipeline parallelism");
  add("--vpp", options.vpp, "parts of the model on each rank of a pipeline (default: 1)");
  command
      .add_option("--order", options.order,
                  "which dimension of the ranks varies fastest, and so on (default: "
                  "tp-cp-ep-dp-pp)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group("Merging the ranks of a parallel run")
      ->type_name("TEXT[,TEXT]");
}

void AddResults(CLI::App& command, GraphArguments& arguments) {
  view::GraphFileOptions& options = arguments.options;
  AddOutput(command, options.output_dir, "directory of the files", "--output_path")
      ->capture_default_str();
  command
      .add_option("--file_type", arguments.type,
                  "db: one .vis.db for all ranks and steps; vis: one .vis for each of them; json: "
                  "merged ranks as recordings")
      ->check(CLI::IsMember({"db", "vis", "json"}))
      ->capture_default_str();
  command
      .add_option("--stack", arguments.stacks,
                  "call stacks: full, short (the frame that makes the call) or none; default: "
                  "full, in .vis short")
      ->check(CLI::IsMember({"full", "short", "none"}));
  command
      .add_flag_callback(
          "--complete_stack", [&arguments] { arguments.stacks = "full"; },
          "the same as --stack full (also -cs)")
      ->group("");
  command.add_flag("--overflow_check", options.grades_overflow,
                   "grade nodes with NaN, Inf or a jump of norms (also -oc)");
  command.add_flag("--resume", options.resumes,
                   "take ranks that an earlier run with this option finished from there");
  command
      .add_option("--thresholds", arguments.thresholds_path,
                  "JSON with limits that no verdict depends on: overflow_norm_ratio")
      ->type_name("FILE");
  command.add_flag("--serve", arguments.serve,
                   "then show the result in the browser, as plumb view does");
  command
      .add_flag("--is_print_progress_log", arguments.progress_log,
                "lines for front ends of upstream's command (also -progress_log)")
      ->group("");
  command.add_option("--summary", arguments.summary_path, "also write counts and answers as JSON")
      ->type_name("FILE");
  command.add_option("--fail-on", arguments.fail_on, "end with status 1 if there is any of these")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"error", "warning", "unmatched", "unjudged", "overflow"}));
  AddThreads(command, options.compare.threads);
}

}  // namespace

void AddGraphCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<GraphArguments>();
  CLI::App* command = app.add_subcommand(
      "graph", "Write a recording, or two that are compared, as graphs for viewers.");
  command->alias("graph_visualize");
  AddInputs(*command, *arguments);
  AddPairing(*command, *arguments);
  AddResults(*command, *arguments);
  AddParallel(*command, arguments->parallel);
  command->footer(FooterText(
      "Recordings need level L0 or mix.",
      {"plumb graph runs/new -o graphs", "plumb graph runs/new/step0/rank3 -o graphs -oc",
       "plumb graph runs/new runs/good -o graphs --fail-on error",
       "plumb graph runs/new -o graphs --file_type vis --ranks 0,1",
       "plumb graph runs/tp2pp4 runs/one -o graphs --rank_size 8,1 --tp 2,1 --pp 4,1"},
      {{1, "--fail-on found something"}}));
  command->callback([arguments, &app, &exit_status] {
    SetLogStream(LogStream::kStderr);
    ProgressLog log(arguments->progress_log);
    const Result<int> status = RunGraph(*arguments, log);
    if (status) {
      log.Finish();
      if (arguments->serve) ServeFiles(*arguments, app);
      if (!arguments->serve || *status != 0) exit_status = *status;
    } else {
      log.Fail(status.error().message());
      exit_status = ReportError("graph", status.error());
    }
  });
}

}  // namespace plumbline::cli
