// plumb overflow STEP_DIR: the first NaN or Inf over all ranks, or what a device recorded.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/process/log.h"
#include "commands.h"
#include "commands/overflow_grade.h"
#include "commands/shared_work.h"
#include "commands/value_checks.h"
#include "help_page.h"
#include "operators/overflow_summary.h"
#include "overflow/overflow_check.h"
#include "overflow/scan_parts.h"
#include "overflow/steps_to_check.h"
#include "plumbline/tensor.h"
#include "precheck/overflow/overflow_replay.h"
#include "record/run_files.h"
#include "terminal.h"
#include "usage.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

// The codes of upstream's chapter; 4 is ours: what is said may not be the whole truth.
constexpr int kUnusable = 2;
constexpr int kAnomalyFound = 3;
constexpr int kNotAllJudged = 4;

struct OverflowArguments {
  std::string path, input_path, dump_path;
  std::optional<size_t> count;  // of a device's records
  OverflowCheckOptions options;
  bool fail_on_anomaly = false;
  bool allow_partial = false;
  bool replay = false;
  bool grades = false;
  std::string python;  // of the replay
  bool machine = false;
  ShareArguments share;
  std::vector<std::string> words;  // of the command line, but kNotOfResult
};

constexpr size_t kMostOperands = 8;  // in the text

// A frame is a place and, after a line break, its source line.
std::string FrameLine(std::string frame) {
  std::replace(frame.begin(), frame.end(), '\n', ' ');
  return OneLine(frame);
}

// What helps to repair the finding.
void PrintHints(const OverflowHints& hints) {
  for (size_t i = 0; i < std::min(hints.operands.size(), kMostOperands); ++i) {
    const OperandRange& operand = hints.operands[i];
    Print(fmt::format("  operand: {}: {}\n", OneLine(operand.path), RangeText(operand)));
  }
  if (hints.operands.size() > kMostOperands) {
    Print(fmt::format("  operands: {} more\n", hints.operands.size() - kMostOperands));
  }
  std::string before;
  for (const std::string& name : hints.previous) before += (before.empty() ? "" : ", ") + name;
  Print(fmt::format("  before it: {}\n", before.empty() ? "nothing recorded" : OneLine(before)));
  if (!hints.recorded_class.empty()) {
    Print(fmt::format("  recorded as: {}\n", OneLine(hints.recorded_class)));
  }
  for (const OtherType& other : hints.other_types) {
    Print(fmt::format("  in {}: {}\n", other.dtype, OneLine(OtherTypeText(other))));
  }
  if (const std::string advice = AdviceOf(hints); !advice.empty()) {
    const std::string_view types =
        hints.other_types.empty() ? "bfloat16 and float32" : "the other type";
    Print(fmt::format("  in {}: {}\n", types, advice));
  }
  if (!hints.problem.empty()) Print(fmt::format("  not run again: {}\n", OneLine(hints.problem)));
}

void PrintFinding(const OverflowReport& report) {
  const auto first = std::find_if(report.details.begin(), report.details.end(),
                                  [](const OverflowDetails& d) { return d.origin == 0; });
  const OverflowOrigin& origin = report.analysis.origins.front();
  if (report.steps > 1) Print(fmt::format("  step: {}\n", OneLine(report.step_directory)));
  if (!origin.value.max.empty()) {
    Print(fmt::format("  evidence: {} has Max {}, Min {}\n", OneLine(origin.value.path),
                      origin.value.max, origin.value.min));
  }
  PrintHints(first->hints);
  std::string modules;
  for (const std::string& name : first->hierarchy) {
    if (name != origin.name) modules += (modules.empty() ? "" : " > ") + OneLine(name);
  }
  Print(fmt::format("  module: {}\n", modules.empty() ? "none recorded" : modules));
  Print(first->stack.empty() ? "  called from: not recorded\n" : "  called from:\n");
  for (const std::string& frame : first->stack) Print(fmt::format("    {}\n", FrameLine(frame)));
  Print(fmt::format("  origins: {}; entries with NaN/Inf: {} of {}; ranks: {}\n",
                    report.analysis.origins.size(), report.bad_entries, report.entries,
                    report.ranks.size()));
  for (const std::string& file : report.files) Print(fmt::format("  written: {}\n", OneLine(file)));
}

int StatusOf(const OverflowReport& report, const OverflowArguments& arguments) {
  const bool bad = report.found() || report.bad_entries > 0;
  if (bad && arguments.fail_on_anomaly) return kAnomalyFound;
  if (report.truncated && !arguments.allow_partial) return kNotAllJudged;
  // A rank that nobody has looked at may have been the first one.
  if (report.ranks_not_judged > 0 && !arguments.allow_partial) return kNotAllJudged;
  if (report.found()) return 0;
  const bool complete = report.not_judged.empty() || arguments.allow_partial;
  return complete && !bad ? 0 : kNotAllJudged;
}

void PrintNotJudged(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) {
    PrintError(fmt::format("plumb overflow: not judged: {}\n", OneLine(note)));
  }
}

// Runs the answer again with its inputs in other types. That it cannot be is no failure of the
// search.
void ReplayFirst(const OverflowArguments& arguments, OverflowReport& report) {
  const auto first = std::find_if(report.details.begin(), report.details.end(),
                                  [](const OverflowDetails& d) { return d.origin == 0; });
  const OverflowOrigin& origin = report.analysis.origins.front();
  precheck::OverflowReplayOptions options;
  options.dump_json = JoinPath(report.ranks[origin.rank].directory.path, run_files::kDumpJson);
  options.python = arguments.python;
  const auto runs = precheck::RunInOtherTypes(origin.name, options);
  if (!runs) {
    first->hints.problem = runs.error().message();
    return;
  }
  first->hints.other_types.clear();
  for (const precheck::OtherTypeRun& run : *runs) {
    first->hints.other_types.push_back(
        {std::string(InfoOf(run.dtype).name), run.stays_finite, run.problem, false});
  }
}

// `unreadable`: what nobody has looked into. `scans`: as of CheckOverflow().
Result<int> RunOverflow(const OverflowArguments& arguments, const std::string& path,
                        const std::vector<std::string>& unreadable,
                        std::vector<ScannedRank> scans) {
  Result<OverflowReport> checked = CheckOverflow(path, arguments.options, std::move(scans));
  if (!checked) {
    PrintNotJudged(unreadable);
    return checked.error();
  }
  OverflowReport& report = *checked;
  report.not_judged.insert(report.not_judged.end(), unreadable.begin(), unreadable.end());
  if (arguments.replay && report.found()) ReplayFirst(arguments, report);
  if (arguments.machine) {
    PL_TRY_ASSIGN(const std::string text, FormatOverflowResult(report));
    Print(text + "\n");
  } else {
    Print(OneLine(OverflowAnswer(report)) + "\n");
    if (report.found()) PrintFinding(report);
    if (const std::string hits = RecordedHitsText(report); !hits.empty()) {
      Print(fmt::format("  recorded hits: {}\n", hits));
    }
  }
  PrintNotJudged(report.not_judged);
  const int status = StatusOf(report, arguments);
  const bool is_partial = !unreadable.empty() && !arguments.allow_partial;
  return status == 0 && is_partial ? kNotAllJudged : status;
}

int TellFailure(const operators::DumpFailure& failure) {
  PrintError(fmt::format("plumb overflow: {} (error {})\n", WithNearestPath(failure.text),
                         static_cast<int>(failure.code)));
  return static_cast<int>(failure.code);
}

// Records of a device: those of -d as upstream's program has it, one of them unless -n says more;
// without -d all.
int RunDeviceOverflow(const OverflowArguments& arguments, load::DumpFiles found) {
  const size_t all = std::numeric_limits<size_t>::max();
  const auto made = operators::SummarizeOverflows(
      {arguments.options.output_directory,
       arguments.count.value_or(arguments.dump_path.empty() ? all : 1)},
      std::move(found));
  if (!made) return TellFailure(made.error());
  const operators::OverflowSummary& summary = *made;
  for (const auto* lines : {&summary.notes, &summary.failures}) {
    for (const std::string& line : *lines) {
      PrintError(fmt::format("plumb overflow: {}\n", OneLine(line)));
    }
  }
  if (summary.found == 0) {
    PrintError("plumb overflow: [Overflow] Find [0] overflow node!\n");
  }
  if (!summary.first.empty()) {
    Print(fmt::format("first overflow{}: {}\n  records: {}\n",
                      summary.is_first_sure ? "" : " that can be read", OneLine(summary.first),
                      summary.found));
    if (summary.damaged > 0) Print(fmt::format("  damaged: {}\n", summary.damaged));
    Print(fmt::format("  written: {}\n", OneLine(summary.summary_path)));
  }
  if (!summary.failures.empty()) return static_cast<int>(summary.code);
  return summary.found > 0 && arguments.fail_on_anomaly ? kAnomalyFound : 0;
}

int TellUnusable(const Error& error) {
  const int reported = ReportError("overflow", error);
  const bool is_unusable = error.code() == ErrorCode::kNotFound ||
                           error.code() == ErrorCode::kUnsupported ||
                           error.code() == ErrorCode::kCorrupt;
  return is_unusable ? kUnusable : reported;
}

// A tree with records of a device, or else a recording. `scans`: as of CheckOverflow().
int RunOnTree(const OverflowArguments& arguments, const std::string& path,
              std::vector<ScannedRank> scans = {}) {
  Result<load::DumpFiles> found = load::FindDumpFiles(path, {.recursive = true});
  if (found && operators::HasOverflowRecords(*found)) {
    return RunDeviceOverflow(arguments, *std::move(found));
  }
  std::vector<std::string> unreadable;
  if (found) {
    for (const Error& one : found->unreadable) unreadable.push_back(one.message());
  }
  const Result<int> status = RunOverflow(arguments, path, unreadable, std::move(scans));
  return status ? *status : TellUnusable(status.error());
}

SharedWork SharedWorkOf(const OverflowArguments& arguments) {
  return {"overflow", arguments.words, JoinPath(arguments.options.output_directory, "overflow"),
          arguments.options.threads};
}

// This part of the ranks, for others.
Status ScanShard(const OverflowArguments& arguments, const std::string& path) {
  PL_TRY_ASSIGN(const ShardPlace place, ParseShardPlace(arguments.share.shard));
  PL_TRY_ASSIGN(ShardPart part, ScanPart(path, place, arguments.options.threads));
  return LeaveShard(SharedWorkOf(arguments), arguments.share, std::move(part), "ranks");
}

int RunShared(const OverflowArguments& arguments, const std::string& path) {
  if (!arguments.share.shard.empty()) {
    const Status done = ScanShard(arguments, path);
    return done ? 0 : TellUnusable(done.error());
  }
  const Result<load::DumpFiles> found = load::FindDumpFiles(path, {.recursive = true});
  if (found && operators::HasOverflowRecords(*found)) {
    return ReportError("overflow", Error(ErrorCode::kInvalidArgument,
                                         fmt::format("--engine: {} has records of a device "
                                                     "(expected ranks). Leave it out",
                                                     path)));
  }
  const Result<std::vector<StepToCheck>> steps = StepsToCheck(path);
  if (!steps) return TellUnusable(steps.error());
  return ReportError("overflow", RunOnCluster(SharedWorkOf(arguments), arguments.share));
}

GradeArguments GradeArgumentsOf(const OverflowArguments& arguments, const std::string& path) {
  return {.path = path,
          .output = arguments.options.output_directory,
          .threads = arguments.options.threads,
          .fails_on_anomaly = arguments.fail_on_anomaly,
          .allows_partial = arguments.allow_partial,
          .is_machine = arguments.machine};
}

int RunOnDevice(const OverflowArguments& arguments) {
  Result<load::DumpFiles> found = load::FindDumpFiles(arguments.dump_path, {.recursive = true});
  if (found) return RunDeviceOverflow(arguments, *std::move(found));
  return TellFailure(operators::Failed(operators::DumpCode::kInvalidPath, found.error()));
}

const std::string& PathOf(const OverflowArguments& arguments) {
  return arguments.path.empty() ? arguments.input_path : arguments.path;
}

int RunChosen(const OverflowArguments& arguments, const CLI::App& command) {
  const auto refuse = [](std::string text) {
    return ReportError("overflow", Error(ErrorCode::kInvalidArgument, std::move(text)));
  };
  if (std::string empty = EmptyOption(command); !empty.empty()) return refuse(std::move(empty));
  if (arguments.grades && (arguments.replay || !arguments.dump_path.empty())) {
    return refuse("--grade looks at a whole recording (expected neither --replay nor -d)");
  }
  if (const Status share = CheckShare(arguments.share); !share) {
    return refuse(share.error().message());
  }
  const bool is_shared = arguments.share.is_shared();
  if (is_shared && (arguments.grades || !arguments.dump_path.empty())) {
    return refuse(
        fmt::format("{}: is about the search over ranks (expected neither --grade nor "
                    "-d)",
                    arguments.share.option()));
  }
  if (!arguments.dump_path.empty()) return RunOnDevice(arguments);
  if (arguments.path.empty() == arguments.input_path.empty()) {
    return refuse("name one directory: DIR or -i DIR");
  }
  const std::string& path = PathOf(arguments);
  if (is_shared) return RunShared(arguments, path);
  return arguments.grades ? RunOverflowGrade(GradeArgumentsOf(arguments, path))
                          : RunOnTree(arguments, path);
}

void AddOptions(CLI::App& command, OverflowArguments& arguments) {
  command.add_option("dir", arguments.path, "step directory (or a dump or rank directory)");
  command.add_option("-i,--input_path", arguments.input_path, "the same, as upstream spells it")
      ->group("");
  command.add_option("-d,--dump_path", arguments.dump_path,
                     "directory with overflow records of a device");
  command
      .add_option("-n,--top_num", arguments.count, "how many records of a device, earliest first")
      ->check(CLI::Range(1, 5));
  AddOutput(command, arguments.options.output_directory,
            "where the result files go, made when something is found", "--output_path")
      ->capture_default_str();
  AddThreads(command, arguments.options.threads);
  command.add_flag("--fail-on-anomaly", arguments.fail_on_anomaly, "exit 3 on NaN or Inf");
  command.add_flag("--allow-partial", arguments.allow_partial,
                   "exit 0 although something could not be judged");
  command.add_flag("--replay", arguments.replay,
                   "run the named call again from its saved tensors, in bfloat16 and in float32, "
                   "and say whether it stays finite");
  command.add_flag("--grade", arguments.grades,
                   "grade every call with NaN or Inf as medium, high or critical instead");
  command
      .add_option("--python", arguments.python, "the interpreter that has PyTorch, for --replay")
      ->type_name("FILE");
  AddJson(command, arguments.machine, "the result");
  AddShareOptions(command, arguments.share, "many ranks", "look into them as tasks of Ray");
}

}  // namespace

Result<int> MergeOverflowShards(const ShardRequest& request,
                                const std::vector<std::string>& files) {
  CLI::App command;
  OverflowArguments arguments;
  AddOptions(command, arguments);
  PL_TRY(ParseShardWords(command, request.words, request.directory, files.front()));
  PL_TRY_ASSIGN(const ShardedItems shards, ReadShardedItems(files));
  const std::string& path = PathOf(arguments);
  PL_TRY_ASSIGN(std::vector<ScannedRank> scans, TakeScans(path, shards.state, shards.items));
  SetLogStream(LogStream::kStderr);
  return RunOnTree(arguments, path, std::move(scans));
}

void AddOverflowCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<OverflowArguments>();
  CLI::App* command = app.add_subcommand(
      "overflow", "Find the first NaN or Inf over all ranks of a recorded step.");
  command->alias("overflow_check")->alias("nan_analyze");
  AddOptions(*command, *arguments);
  command->footer(FooterWithOwnStatuses(
      "",
      {"plumb overflow runs/new/step0", "plumb overflow runs/new -o result --fail-on-anomaly",
       "plumb overflow runs/new --grade",
       "plumb overflow -d dump/20240101000000/0 -out result -n 3"},
      {{0, "done"},
       {2, "wrong usage, or unusable input"},
       {3, "found, with --fail-on-anomaly"},
       {4,
        "not the whole truth: a rank could not be judged, a directory could not be listed or a "
        "dump.json is truncated, whether or not something was found, or nothing was found and "
        "not everything could be judged (0 with --allow-partial)"},
       {6,
        "the result could not be written; of overflow records of a device other failures end "
        "with the number that msaccucmp has for them"}}));
  command->callback([arguments, command, &exit_status] {
    SetLogStream(LogStream::kStderr);
    arguments->words = WordsOf(*command, kNotOfResult);
    exit_status = RunChosen(*arguments, *command);
  });
}

}  // namespace plumbline::cli
