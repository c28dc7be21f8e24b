// plumb compare: two recordings in, the first wrong call and the result files out.

#include "plumbline/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "commands.h"
#include "commands/compare_files.h"
#include "commands/compare_mappings.h"
#include "commands/compare_mixed.h"
#include "commands/compare_ranks.h"
#include "compare/compare_training.h"
#include "explain/next_config.h"
#include "formats/hdf5/hdf5_dump.h"
#include "help_page.h"
#include "load/atb_dump.h"
#include "load/compare_request.h"
#include "load/detect.h"
#include "load/graph_dump.h"
#include "load/operator_dumps.h"
#include "load/pair_kind.h"
#include "load/rank_directories.h"
#include "load/run_reader.h"
#include "load/secure_paths.h"
#include "load/torchair_dump.h"
#include "match/training_match.h"
#include "operators/compare_dump_files.h"
#include "progress.h"
#include "terminal.h"
#include "usage.h"
#include "view/unshard/unshard.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

struct CompareArguments {
  std::vector<std::string> paths;  // TARGET GOLDEN
  std::string target_path, golden_path;
  std::string request_path;
  bool stack_mode = false;
  bool compare_only = false;
  bool machine = false;
  bool tensor_log = false;
  bool secure = false;
  std::vector<std::string> formats = {"xlsx", "csv", "json", "html"};
  std::vector<std::string> fail_on;
  std::string next_config;
  std::string mode = "auto";
  bool consistent_check = false;
  bool unshard = false;
  std::string layout;
  std::string backend;
  std::string module_map;
  CompareOptions options;
  RankArguments ranks;
  std::vector<std::string> words;  // of the command line, but kNotOfResult
};

// Fills target and golden from whichever form was used.
Status ResolvePaths(CompareArguments& arguments) {
  const bool named = !arguments.target_path.empty() || !arguments.golden_path.empty();
  const int forms = (arguments.paths.empty() ? 0 : 1) + (named ? 1 : 0) +
                    (arguments.request_path.empty() ? 0 : 1);
  if (forms != 1) {
    return Error(ErrorCode::kInvalidArgument,
                 "name the two sides once (TARGET GOLDEN, or -tp and -gp, or -i compare.json)");
  }
  if (!arguments.request_path.empty()) {
    PL_TRY_ASSIGN(const load::CompareRequest request,
                  load::ReadCompareRequest(arguments.request_path));
    arguments.target_path = request.target_path;
    arguments.golden_path = request.golden_path;
    arguments.ranks.of_graphs = request.of_graphs;
    if (request.of_graphs) {
      arguments.ranks.ranks = request.ranks;
      arguments.ranks.steps = request.steps;
    }
    arguments.options.write_advice = !arguments.compare_only;
    if (!request.stack_path.empty()) {
      arguments.options.show_stack = arguments.stack_mode;
      arguments.options.stack_path = request.stack_path;
    }
    return {};
  }
  if (!named) {
    if (arguments.paths.size() != 2) {
      return Error(ErrorCode::kInvalidArgument, "expected two paths: TARGET GOLDEN");
    }
    arguments.target_path = arguments.paths[0];
    arguments.golden_path = arguments.paths[1];
  }
  const bool no_target = arguments.target_path.empty();
  if (no_target || arguments.golden_path.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: is empty or missing (expected the paths of both sides)",
                             no_target ? "TARGET (-tp)" : "GOLDEN (-gp)"));
  }
  return {};
}

// With --secure: what is read and written, before anything is.
Status CheckSecure(const CompareArguments& arguments) {
  const CompareOptions& options = arguments.options;
  for (const std::string& path :
       {arguments.target_path, arguments.golden_path, options.noise_path, options.stack_path,
        options.postprocess_path, arguments.request_path, arguments.module_map}) {
    if (!path.empty()) PL_TRY(load::CheckSecureInput(path));
  }
  const MappingFiles& mappings = options.mappings;
  if (!mappings.data.empty()) PL_TRY(load::CheckSecureInput(mappings.data));
  for (const auto& path : {mappings.api, mappings.cell, mappings.layer}) {
    if (path && !path->empty()) PL_TRY(load::CheckSecureInput(*path));
  }
  if (!arguments.next_config.empty()) PL_TRY(load::CheckSecureOutput(arguments.next_config));
  return load::CheckSecureOutput(options.output_dir);
}

// How far the comparison is, on a terminal.
std::function<void(double)> TerminalProgress() {
  const auto progress = std::make_shared<Progress>("comparing tensors", "");
  if (!progress->is_on()) return {};
  return [progress](double done_ratio) { progress->Show({.share = done_ratio}); };
}

// Holds the comparison until the process ends, which takes its memory at once: giving back the
// millions of small texts of a long step one by one would keep the user waiting.
Comparison& Kept(Comparison comparison) {
  static auto* const kept = new std::deque<Comparison>;  // never destroyed
  return kept->emplace_back(std::move(comparison));
}

// Two recordings of one rank.
Result<Comparison> Compared(const CompareArguments& arguments) {
  if (!arguments.ranks.training) {
    return CompareRuns(arguments.target_path, arguments.golden_path, arguments.options);
  }
  return compare::CompareTraining(arguments.target_path, arguments.golden_path,
                                  *arguments.ranks.training, arguments.options);
}

Status ReadTrainingRules(CompareArguments& arguments) {
  const bool has_backend = !arguments.backend.empty();
  if (arguments.consistent_check && !has_backend) {
    return Error(ErrorCode::kInvalidArgument,
                 "--consistent_check: needs --backend (expected fsdp or megatron)");
  }
  if (!arguments.consistent_check && (has_backend || !arguments.module_map.empty())) {
    return Error(ErrorCode::kInvalidArgument,
                 "--backend, --module-map: belong to --consistent_check");
  }
  if (!arguments.consistent_check) return {};
  PL_TRY_ASSIGN(arguments.ranks.training,
                compare::TrainingRulesOf(arguments.backend, arguments.module_map));
  return {};
}

// Two recordings, once nothing else is meant.
Result<int> CompareRecordings(const CompareArguments& arguments) {
  PL_TRY_ASSIGN(Comparison compared, Compared(arguments));
  Comparison& comparison = Kept(std::move(compared));
  PL_TRY(WriteComparison(comparison, arguments.options));
  // The answer is printed whatever becomes of the next configuration.
  Status next_config;
  if (!arguments.next_config.empty()) {
    next_config = explain::WriteNextConfig(arguments.next_config, comparison);
  }
  if (arguments.tensor_log) LogTensors(comparison);
  const std::string text = arguments.machine ? SummaryJson(comparison) : SummaryText(comparison);
  Print(text);
  PL_TRY(std::move(next_config));
  PL_TRY_ASSIGN(const bool fails, FailsOn(comparison, arguments.fail_on));
  return fails ? kDifferencesFound : 0;
}

// --consistent_check is about modules, which only recordings of calls have.
Status CheckTrainingPaths(const CompareArguments& arguments) {
  for (const std::string& path : {arguments.target_path, arguments.golden_path}) {
    const bool has_calls = !load::IsAtbDump(path) && !hdf5::IsHdf5(path) &&
                           !load::LooksLikeTorchair(path) && !load::IsGraphDump(path);
    if (!has_calls || AreFiles(path, path)) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: is no recording of modules (--consistent_check expects two "
                               "dump.json, or directories with them)",
                               path));
    }
  }
  return {};
}

// Options about recorded calls, for dumps that have none.
Status RefuseOptionsOfCalls(const CompareArguments& arguments, std::string_view dumps) {
  if (!arguments.machine && arguments.next_config.empty()) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("--json, --next-config: not for {}", dumps));
}

// One side holds device dumps and no recording: what is wrong is the other one.
Status CheckOneSided(const CompareArguments& arguments, const std::string& with_dumps) {
  if (with_dumps.empty()) return {};
  const Result<std::vector<std::string>> recordings = load::ListDumpJson(with_dumps);
  if (recordings && !recordings->empty()) return {};
  const bool is_target = with_dumps == arguments.target_path;
  const std::string& other = is_target ? arguments.golden_path : arguments.target_path;
  if (KindOf(other) == PathKind::kMissing) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: no such file or directory", other));
  }
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: holds no device dumps that can be read (expected some, as {} does)",
                           other, with_dumps));
}

// One side is a dump file of a device, the other something else: what is wrong is the other one.
Status CheckOneDumpFile(const CompareArguments& arguments) {
  const bool is_target = load::DumpNameOf(arguments.target_path).has_value();
  const bool is_golden = load::DumpNameOf(arguments.golden_path).has_value();
  if (is_target == is_golden) return {};
  const std::string& dump = is_target ? arguments.target_path : arguments.golden_path;
  const std::string& other = is_target ? arguments.golden_path : arguments.target_path;
  if (KindOf(other) == PathKind::kMissing) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: no such file or directory", other));
  }
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: no dump file of a device (expected one, as {} is). `plumb convert` "
                           "turns such files into arrays",
                           other, dump));
}

// A side without any recording, before the other one is found fault with.
Status CheckRecordings(const CompareArguments& arguments) {
  for (const std::string& path : {arguments.target_path, arguments.golden_path}) {
    if (load::IsGraphDump(path)) continue;
    const Result<std::string> found = load::ResolveDumpJson(path);
    if (!found && found.error().code() == ErrorCode::kNotFound) return found.error();
  }
  return {};
}

// --postprocess is about tensors of recorded calls.
Status CheckPostprocess(const CompareArguments& arguments) {
  if (arguments.options.postprocess_path.empty()) return {};
  if (arguments.consistent_check) {
    return Error(ErrorCode::kInvalidArgument, "--postprocess: not with --consistent_check");
  }
  const load::PairKind kind = load::KindOfPair(arguments.target_path, arguments.golden_path, false);
  const bool has_calls = kind == load::PairKind::kRecording || kind == load::PairKind::kRanks;
  if (has_calls && !load::IsGraphDump(arguments.target_path)) return {};
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format("--postprocess: {} and {} hold no recorded calls (expected two dump.json, "
                  "or directories with them)",
                  arguments.target_path, arguments.golden_path));
}

// A run on several ranks and one on one rank: first brought together, then compared.
Result<int> CompareUnsharded(CompareArguments& arguments) {
  if (!arguments.ranks.ranks.empty() || !arguments.ranks.steps.empty() ||
      arguments.ranks.diff_analyze || arguments.ranks.check_collectives ||
      arguments.ranks.share.is_shared()) {
    return Error(ErrorCode::kInvalidArgument,
                 "--unshard: is about all ranks of one step (not with --rank, --step, --shard, "
                 "--engine, --diff_analyze, --check_collectives)");
  }
  std::string directory = JoinPath(arguments.options.output_dir, "unsharded");
  for (int next = 2; KindOf(directory) != PathKind::kMissing; ++next) {
    directory = JoinPath(arguments.options.output_dir, fmt::format("unsharded_{}", next));
  }
  PL_TRY_ASSIGN(
      const view::UnshardReport report,
      view::Unshard({arguments.target_path, arguments.golden_path, directory, arguments.layout}));
  arguments.target_path = report.target;
  arguments.golden_path = report.golden;
  PL_TRY_ASSIGN(const int status, CompareRecordings(arguments));
  const std::string plan = fmt::format("{}recordings: {} (plumb view {} {})\n", report.Text(),
                                       directory, report.target, report.golden);
  // Beside JSON the plan is no part of the answer.
  if (arguments.machine) {
    std::fputs(plan.c_str(), stderr);
  } else {
    Print(plan);
  }
  return status;
}

RankRequest RequestOf(const CompareArguments& arguments) {
  return {arguments.target_path, arguments.golden_path, arguments.options, arguments.fail_on,
          arguments.machine};
}

// --shard and --engine are about ranks and steps.
Status CheckShard(const CompareArguments& arguments) {
  PL_TRY(CheckShare(arguments.ranks.share));
  if (!arguments.ranks.share.is_shared()) return {};
  for (const std::string& path : {arguments.target_path, arguments.golden_path}) {
    if (KindOf(path) == PathKind::kMissing) {
      return Error(ErrorCode::kNotFound, fmt::format("{}: no such file or directory", path));
    }
  }
  const load::PairKind kind = load::KindOfPair(arguments.target_path, arguments.golden_path,
                                               !arguments.options.mappings.data.empty());
  const bool is_recording = kind == load::PairKind::kRecording || kind == load::PairKind::kRanks;
  if (is_recording && MeansRanks(arguments.target_path, arguments.golden_path,
                                 !arguments.request_path.empty(), arguments.ranks)) {
    return {};
  }
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: {} and {} do not hold several ranks or steps. Leave it out",
                  arguments.ranks.share.option(), arguments.target_path, arguments.golden_path));
}

Result<int> CompareManyRanks(const CompareArguments& arguments) {
  if (!arguments.next_config.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "--next-config: is about one rank (expected two dump.json or rank directories)");
  }
  const RankRequest request = RequestOf(arguments);
  const ShareArguments& share = arguments.ranks.share;
  if (!share.engine.empty()) {
    return RunOnCluster(
        {"compare", arguments.words, JoinPath(arguments.options.output_dir, "compare_ranks"),
         arguments.options.threads},
        share);
  }
  if (share.shard.empty()) return RunCompareRanks(request, arguments.ranks);
  return RunCompareShard(request, arguments.ranks, arguments.words);
}

// What is neither resolved nor checked any more: by what the paths hold.
Result<int> CompareByKind(CompareArguments& arguments) {
  PL_TRY(CheckPostprocess(arguments));
  if (arguments.ranks.training) PL_TRY(CheckTrainingPaths(arguments));
  if (arguments.mode == "atb" ||
      (load::IsAtbDump(arguments.target_path) && load::IsAtbDump(arguments.golden_path))) {
    return CompareAtbDumps(arguments.target_path, arguments.golden_path, arguments.options,
                           arguments.fail_on);
  }
  if (hdf5::IsHdf5(arguments.target_path) || hdf5::IsHdf5(arguments.golden_path)) {
    PL_TRY(RefuseOptionsOfCalls(arguments, "operator dumps"));
    return CompareHdf5Dumps(arguments.target_path, arguments.golden_path, arguments.options,
                            arguments.fail_on);
  }
  if (arguments.mode == "torchair" || load::LooksLikeTorchair(arguments.target_path)) {
    PL_TRY(RefuseOptionsOfCalls(arguments, "dumps of torchair"));
    return CompareTorchairDumps(arguments.target_path, arguments.golden_path, arguments.options,
                                arguments.fail_on, arguments.ranks.ranks);
  }
  const int graphs =
      load::IsGraphDump(arguments.target_path) + load::IsGraphDump(arguments.golden_path);
  // A graph against calls: one rank and step of either, where a mapping says what is the same.
  const bool is_mapped_graph = graphs == 1 && !arguments.options.mappings.data.empty();
  arguments.ranks.of_graphs = !is_mapped_graph && (arguments.ranks.of_graphs || graphs > 0);
  if (!arguments.ranks.of_graphs) {
    PL_TRY_ASSIGN(const load::OperatorTrees trees,
                  load::FindOperatorTrees(arguments.target_path, arguments.golden_path));
    if (!trees.pairs.empty()) {
      PL_TRY(RefuseOptionsOfCalls(arguments, "device dumps"));
      return CompareOperatorDumps(trees.pairs, arguments.options, arguments.fail_on);
    }
    if (AreFiles(arguments.target_path, arguments.golden_path)) {
      return CompareFiles(arguments.target_path, arguments.golden_path, arguments.options,
                          arguments.fail_on, arguments.machine);
    }
    if (load::DumpNameOf(arguments.target_path) && load::DumpNameOf(arguments.golden_path)) {
      PL_TRY(RefuseOptionsOfCalls(arguments, "device dumps"));
      return CompareTwoDumpFiles(arguments.target_path, arguments.golden_path, arguments.options,
                                 arguments.fail_on);
    }
    if (!is_mapped_graph) {
      PL_TRY(CheckOneDumpFile(arguments));
      PL_TRY(CheckOneSided(arguments, trees.one_sided));
    }
  }
  if (!is_mapped_graph && MeansRanks(arguments.target_path, arguments.golden_path,
                                     !arguments.request_path.empty(), arguments.ranks)) {
    return CompareManyRanks(arguments);
  }
  if (arguments.ranks.of_graphs) {
    arguments.options.suffix = load::GraphSuffix(arguments.target_path);
  }
  PL_TRY(CheckRecordings(arguments));
  return CompareRecordings(arguments);
}

Result<int> CompareOne(const MixedRequest& part, const CompareArguments& all) {
  CompareArguments arguments = all;
  arguments.target_path = part.target;
  arguments.golden_path = part.golden;
  arguments.options.output_dir = part.output;
  return CompareByKind(arguments);
}

// What the options say, before anything is looked at.
Status Prepare(CompareArguments& arguments) {
  PL_TRY(ResolvePaths(arguments));
  PL_TRY(ReadTrainingRules(arguments));
  PL_TRY_ASSIGN(arguments.options.formats, ReportFormatsOf(arguments.formats));
  return {};
}

Result<int> RunCompare(CompareArguments& arguments) {
  PL_TRY(Prepare(arguments));
  if (arguments.secure) PL_TRY(CheckSecure(arguments));
  PL_TRY(CheckShard(arguments));
  arguments.options.on_progress = TerminalProgress();
  if (arguments.unshard) return CompareUnsharded(arguments);
  if (!arguments.layout.empty()) {
    return Error(ErrorCode::kInvalidArgument, "--layout: belongs to --unshard");
  }
  if (!arguments.consistent_check && AreMixed(arguments.target_path, arguments.golden_path)) {
    if (arguments.machine || !arguments.next_config.empty()) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: --json and --next-config are about one step (expected "
                               "graph/STEP or pynative/STEP below it)",
                               arguments.target_path));
    }
    return CompareMixed({arguments.target_path, arguments.golden_path, arguments.options.output_dir,
                         arguments.fail_on},
                        [&](const MixedRequest& part) { return CompareOne(part, arguments); });
  }
  return CompareByKind(arguments);
}

void AddUnshardOptions(CLI::App& command, CompareArguments& arguments) {
  command.add_flag("--unshard", arguments.unshard,
                   "TARGET ran on several ranks, GOLDEN on one: bring the ranks together first");
  command
      .add_option("--layout", arguments.layout,
                  "with --unshard: what the run was, such as tp=2,pp=2, where it is not found")
      ->type_name("SIZES");
}

void AddOptions(CLI::App& command, CompareArguments& arguments) {
  CompareOptions& options = arguments.options;
  command
      .add_option("paths", arguments.paths,
                  "TARGET GOLDEN: two dump.json files, two rank, step or dump directories, two "
                  "static-graph dumps, two logs of torch's DebugMode, two arrays or checkpoints")
      ->expected(0, 2);
  command.add_option("--target_path", arguments.target_path, "the run under test (also -tp)")
      ->type_name("PATH");
  command.add_option("--golden_path", arguments.golden_path, "the reference run (also -gp)")
      ->type_name("PATH");
  command.add_option("-i,--input_path", arguments.request_path,
                     "upstream's compare.json: npu_path, bench_path, stack_path, rank_id, step_id");
  AddOutput(command, options.output_dir, "directory of the result files", "--output_path")
      ->capture_default_str();
  command
      .add_option("--format", arguments.formats,
                  "result files: xlsx, csv, json, jsonl, html, sqlite, junit, sarif")
      ->delimiter(',')
      ->allow_extra_args(false)  // what follows is a path
      ->capture_default_str();
  command.add_flag("-s,--stack_mode", arguments.stack_mode,
                   "with a stack_path in compare.json: show the call-stack column");
  command.add_flag("-c,--compare_only", arguments.compare_only, "with -i: write no advisor file");
  command
      .add_option("-m,--mode", arguments.mode,
                  "what the paths hold: auto (found out), atb or torchair")
      ->check(CLI::IsMember({"auto", "atb", "torchair"}))
      ->capture_default_str();
  AddPairingOptions(command, options);
  command.add_flag("--consistent_check", arguments.consistent_check,
                   "TARGET is a training, GOLDEN an inference whose modules are fused");
  command.add_option("--backend", arguments.backend, "with --consistent_check: of the training")
      ->check(CLI::IsMember({"fsdp", "megatron"}));
  command
      .add_option("--module-map", arguments.module_map,
                  "with --consistent_check: YAML of names in the training and in the inference")
      ->type_name("FILE");
  AddUnshardOptions(command, arguments);
  command.add_flag("--is_print_compare_log", arguments.tensor_log,
                   "one line per compared tensor on stderr (also -tensor_log)");
  command.add_flag_callback(
      "--xlsx", [&arguments] { arguments.formats = {"xlsx"}; }, "the same as --format xlsx");
  command.add_flag("--secure", arguments.secure,
                   "refuse links, files of other users and odd characters in paths");
  command.add_flag("--salvage", options.salvage,
                   "compare the complete records of a truncated dump.json");
  command.add_option("--fail-on", arguments.fail_on, "end with status 1 if there is any of these")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"wrong", "unjudged", "any", "suspicious", "broken", "unmatched"}));
  AddThreads(command, options.threads);
  command.add_option("--noise", options.noise_path,
                     "a third run that is right: as far as it is from GOLDEN is noise");
  command.add_option("--next-config", arguments.next_config,
                     "write the config.json whose recording would settle the cause");
  AddJson(command, arguments.machine, "the summary");
  AddRankOptions(command, arguments.ranks);
}

}  // namespace

Result<int> MergeComparedShards(ranks::ShardSet shards) {
  const ranks::RankShardRequest& asked = shards.header.request;
  CLI::App command;
  CompareArguments arguments;
  AddOptions(command, arguments);
  PL_TRY(ParseShardWords(command, asked.words, asked.directory, shards.path));
  PL_TRY(Prepare(arguments));
  arguments.ranks.of_graphs = asked.of_graphs;
  return RunMergeShards(std::move(shards), RequestOf(arguments), arguments.ranks);
}

void AddCompareCommand(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "compare", "Compare two recorded runs and name the first call that went wrong.");
  const auto arguments = std::make_shared<CompareArguments>();
  AddOptions(*command, *arguments);
  command->footer(
      FooterText("Of several ranks --format html and sqlite also give one file over all of them.",
                 {"plumb compare runs/new/step0 runs/good/step0",
                  "plumb compare new/dump.json good/dump.json -o out --format csv,json",
                  "plumb compare -i compare.json -o out -s",
                  "plumb compare new good --fail-on broken,unmatched && echo fine"},
                 {{1, "--fail-on found something"}, {2, "wrong usage, or dumps that do not fit"}}));
  command->callback([arguments, command, &exit_status] {
    arguments->words = WordsOf(*command, kNotOfResult);
    const Result<int> status = RunCompare(*arguments);
    exit_status = status ? *status : ReportError("compare", status.error());
  });
}

}  // namespace plumbline::cli
