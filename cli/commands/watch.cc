// plumb watch DIR: conditions held against every tensor of a recording.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/file/input_files.h"
#include "base/process/log.h"
#include "base/text/text_parts.h"
#include "commands.h"
#include "commands/shared_work.h"
#include "commands/value_checks.h"
#include "help_page.h"
#include "progress.h"
#include "terminal.h"
#include "usage.h"
#include "vocabulary.h"
#include "watch/points/watch_output.h"
#include "watch/points/watch_run.h"

namespace plumbline::cli {
namespace {

constexpr int kGateClosed = 1;

struct WatchArguments {
  std::string path, rules, steps, ranks, io = "out", memory, fail_on;
  std::vector<std::string> when, outputs;
  bool is_recommended = false, lists = false, machine = false;
  watch::WatchOptions options;
  ShareArguments share;
  std::vector<std::string> words;  // of the command line, but kNotOfResult
};

Error BadWatch(std::string problem) {
  return Error(ErrorCode::kInvalidArgument, std::move(problem));
}

// "2M" and "1.5G" as bytes.
Result<uint64_t> SizeOf(const std::string& text) {
  static constexpr std::pair<char, double> kUnits[] = {
      {'K', 0x1p10}, {'M', 0x1p20}, {'G', 0x1p30}, {'T', 0x1p40}};
  std::string_view number = text;
  if (number.ends_with('B')) number.remove_suffix(1);
  double factor = 1;
  for (const auto& [letter, size] : kUnits) {
    if (!number.ends_with(letter)) continue;
    factor = size;
    number.remove_suffix(1);
    break;
  }
  constexpr double kLeast = 0x1p20, kMost = 0x1p60;
  const auto value = ParseReal(number);
  if (!value || !(*value * factor >= kLeast) || *value * factor > kMost) {
    return BadWatch(fmt::format("--memory is \"{}\" (expected a size from 1M on, such as 2G)",
                                text));
  }
  return static_cast<uint64_t>(*value * factor);
}

Status AddRules(const WatchArguments& arguments, watch::Rules& rules) {
  for (const std::string& text : arguments.when) {
    Result<watch::Rule> rule = watch::Rules::ParseRule(text);
    if (!rule) return rule.error().In("--when");
    rules.Add(*std::move(rule));
  }
  if (!arguments.rules.empty()) {
    PL_TRY_ASSIGN(const watch::Rules file, watch::Rules::ReadFile(arguments.rules));
    for (const watch::Rule& rule : file.list()) rules.Add(rule);
  }
  if (arguments.is_recommended) {
    for (watch::Rule& rule : watch::RecommendedRules()) rules.Add(std::move(rule));
  }
  if (!rules.list().empty()) return {};
  return BadWatch("no rule. Give --when EXPR, --rules FILE or --recommended");
}

Status TakeOptions(WatchArguments& arguments) {
  watch::WatchOptions& options = arguments.options;
  options.path = arguments.path;
  PL_TRY(AddRules(arguments, options.rules));
  for (const auto& [name, text, list] :
       {std::tuple("--steps", &arguments.steps, &options.steps),
        std::tuple("--ranks", &arguments.ranks, &options.ranks)}) {
    Result<watch::NumberList> numbers = watch::NumberList::Parse(*text);
    if (!numbers) return BadWatch(fmt::format("{} {}", name, numbers.error().message()));
    *list = *std::move(numbers);
  }
  if (arguments.io == "in") options.side = watch::WatchedSide::kInputs;
  if (arguments.io == "both") options.side = watch::WatchedSide::kBoth;
  if (!arguments.memory.empty()) {
    PL_TRY_ASSIGN(options.memory, SizeOf(arguments.memory));
  }
  InputFiles inputs({options.path, options.against, arguments.rules});
  for (const std::string& path : arguments.outputs) {
    PL_TRY(watch::CheckOutputName(path));
    PL_TRY(inputs.CheckSpares(path));
  }
  return {};
}

int GateStatus(const WatchArguments& arguments, const watch::WatchReport& report) {
  const bool asks_hit = arguments.fail_on == "hit" || arguments.fail_on == "any";
  const bool asks_unchecked = arguments.fail_on == "unchecked" || arguments.fail_on == "any";
  const bool closes = (asks_hit && report.first_hit() != nullptr) ||
                      (asks_unchecked && report.has_unchecked());
  return closes ? kGateClosed : 0;
}

// What was found is told, whatever becomes of the files.
Result<int> Tell(const WatchArguments& arguments, const watch::WatchReport& report) {
  Print(arguments.machine ? watch::WatchJson(report, true) + "\n" : watch::WatchText(report));
  for (const std::string& note : report.notes) PrintNote("watch", note);
  for (const std::string& path : arguments.outputs) {
    PL_TRY(MakeDirectories(std::string(DirectoryOf(path))));
    PL_TRY(watch::WriteWatch(report, path));
    if (!arguments.machine) Print(fmt::format("  written: {}\n", OneLine(path)));
  }
  return GateStatus(arguments, report);
}

// Shards stand beside the first result file, else where the command runs.
SharedWork SharedWorkOf(const WatchArguments& arguments) {
  std::string stem = "watch";
  if (!arguments.outputs.empty()) {
    stem = JoinPath(std::string(DirectoryOf(arguments.outputs.front())), stem);
  }
  return {"watch", arguments.words, std::move(stem), arguments.options.threads};
}

// Rules are read by each process.
Result<std::string> StateOfRules(const WatchArguments& arguments) {
  if (arguments.rules.empty()) return std::string();
  PL_TRY_ASSIGN(const std::string text, ReadFile(arguments.rules));
  return " " + DigestOfText(text);
}

Result<int> RunWatch(WatchArguments& arguments) {
  PL_TRY(CheckShare(arguments.share));
  PL_TRY(TakeOptions(arguments));
  if (!arguments.share.engine.empty()) {
    return RunOnCluster(SharedWorkOf(arguments), arguments.share);
  }
  Progress progress("reading", "rank");
  if (progress.is_on()) {
    arguments.options.progress = [&](uint64_t done, uint64_t all) {
      progress.Show(PartsDone(done, all));
    };
  }
  if (arguments.share.shard.empty()) {
    PL_TRY_ASSIGN(const watch::WatchReport report, watch::WatchRecording(arguments.options));
    return Tell(arguments, report);
  }
  PL_TRY_ASSIGN(const ShardPlace place, ParseShardPlace(arguments.share.shard));
  PL_TRY_ASSIGN(ShardPart part, watch::WatchPart(arguments.options, place));
  PL_TRY_ASSIGN(const std::string rules, StateOfRules(arguments));
  part.state += rules;
  PL_TRY(LeaveShard(SharedWorkOf(arguments), arguments.share, std::move(part), "ranks"));
  return 0;
}

// All conditions with their parameters.
void PrintConditions() {
  for (const watch::ConditionInfo& condition : watch::AllConditions()) {
    std::string parameters;
    for (const watch::ConditionParameter& one : condition.parameters) {
      parameters += fmt::format("{}{}", parameters.empty() ? "" : ", ", one.name);
      if (one.preset) parameters += fmt::format("={}", *one.preset);
    }
    Print(fmt::format("{} ({}){}{}\n", condition.id, condition.short_name,
                      parameters.empty() ? "" : ": ", parameters));
  }
  std::string names;
  for (const std::string& name : watch::QuantityNames()) names += " " + name;
  Print(fmt::format("statistics:{}\n", names));
}

void AddWatchOptions(CLI::App& command, WatchArguments& arguments) {
  command.add_option("dir", arguments.path,
                     "recording, dump of static graphs, monitor output or checkpoints");
  command
      .add_option("--when", arguments.when,
                  "a rule, such as \"gradient_vanishing(abs_mean_lt=1e-9)\" or \"max > 1e4 and "
                  "nan_count == 0\"")
      ->type_name("EXPR")
      ->allow_extra_args(false);
  command.add_option("--rules", arguments.rules, "rules in a YAML file")->type_name("FILE");
  command.add_flag("--recommended", arguments.is_recommended,
                   "overflow, vanishing gradients, frozen or jumping weights, dead and saturated "
                   "activations");
  command
      .add_option("--against", arguments.options.against,
                  "a run whose same step is the earlier value")
      ->type_name("RUN");
  command.add_option("--steps", arguments.steps, "which steps: 3,5-8,10-")->type_name("LIST");
  command.add_option("--ranks", arguments.ranks, "which ranks, likewise")->type_name("LIST");
  command
      .add_option("--nodes", arguments.options.nodes,
                  "a part of the names, with * ? [...]; ^ and $ are their ends")
      ->type_name("PATTERN");
  command
      .add_option("--code", arguments.options.code, "a part of a line of the call stack")
      ->type_name("TEXT");
  command.add_option("--io", arguments.io, "which side of calls")
      ->check(CLI::IsMember({"in", "out", "both"}))
      ->capture_default_str();
  command
      .add_option("-o,--output", arguments.outputs,
                  "write the rows: .csv .xlsx .json .jsonl .sarif .xml (JUnit) .html")
      ->type_name("PATH")
      ->allow_extra_args(false);
  command.add_flag("--first", arguments.options.only_first,
                   "stop behind the first step with a hit");
  command.add_flag("--all-rows", arguments.options.keeps_all,
                   "rows for tensors without a hit, too");
  command
      .add_option("--memory", arguments.memory, "what blocks of elements may take, such as 2G")
      ->type_name("SIZE");
  AddThreads(command, arguments.options.threads);
  AddJson(command, arguments.machine, "the result with its rows");
  command.add_option("--fail-on", arguments.fail_on, "exit 1 when it happens")
      ->check(CLI::IsMember({"hit", "unchecked", "any"}));
  command.add_flag("--list", arguments.lists, "show all conditions and statistics");
  AddShareOptions(command, arguments.share, "many ranks", "look at them as tasks of Ray");
}

Result<int> TellMerged(WatchArguments& arguments, const ShardedItems& shards) {
  PL_TRY(TakeOptions(arguments));
  PL_TRY_ASSIGN(const std::string rules, StateOfRules(arguments));
  std::string state = shards.state;
  if (!state.ends_with(rules)) {
    return BadWatch(
        fmt::format("{}: has changed since it was read. Run all shards again", arguments.rules));
  }
  state.resize(state.size() - rules.size());
  PL_TRY_ASSIGN(const watch::WatchReport report,
                watch::WatchMerged(arguments.options, state, shards.items));
  return Tell(arguments, report);
}

}  // namespace

Result<int> MergeWatchShards(const ShardRequest& request, const std::vector<std::string>& files) {
  CLI::App command;
  WatchArguments arguments;
  AddWatchOptions(command, arguments);
  PL_TRY(ParseShardWords(command, request.words, request.directory, files.front()));
  PL_TRY_ASSIGN(const ShardedItems shards, ReadShardedItems(files));
  SetLogStream(LogStream::kStderr);
  const Result<int> status = TellMerged(arguments, shards);
  return status ? *status : ReportError("watch", status.error());
}

void AddWatchCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<WatchArguments>();
  CLI::App* command = app.add_subcommand(
      "watch", "Hold conditions (watchpoints) against every tensor of a recording.");
  AddWatchOptions(*command, *arguments);
  command->footer(FooterText(
      "Several parameters of one condition are alternatives. What cannot be decided is not "
      "evaluated, with the reason, and never counts as no hit.",
      {"plumb watch runs/new --recommended",
       "plumb watch runs/new --when \"gradient_vanishing(abs_mean_lt=1e-9)\" --when "
       "tensor_overflow --fail-on hit",
       "plumb watch runs/new --rules watch.yaml -o watch.sarif -o watch.csv",
       "plumb watch checkpoints --when \"weight_change_too_large(abs_mean_update_ratio_gt=1)\""},
      {{1, "--fail-on: a hit, or something was not evaluated"},
       {2, "wrong usage, or a wrong rule"}}));
  command->callback([arguments, command, &exit_status] {
    SetLogStream(LogStream::kStderr);
    if (arguments->lists) {
      PrintConditions();
      return;
    }
    const std::string empty = EmptyOption(*command);
    if (!empty.empty() || arguments->path.empty()) {
      exit_status = ReportError("watch", BadWatch(empty.empty() ? "DIR is missing" : empty));
      return;
    }
    arguments->words = WordsOf(*command, kNotOfResult);
    const Result<int> status = RunWatch(*arguments);
    exit_status = status ? *status : ReportError("watch", status.error());
  });
}

}  // namespace plumbline::cli
