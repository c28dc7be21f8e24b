// plumb compare: two recordings in, the first wrong call and the result files out.

#include "plumbline/compare.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "commands/compare_files.h"
#include "commands/compare_mappings.h"
#include "commands/compare_ranks.h"
#include "kernels/cpu_target.h"
#include "load/atb_dump.h"
#include "load/compare_request.h"
#include "load/graph_dump.h"
#include "load/secure_paths.h"
#include "pipeline/graph_pairs.h"
#include "pipeline/next_config.h"

namespace plumbline::cli {
namespace {

constexpr int kDifferencesFound = 1;

struct Arguments {
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
  CompareOptions options;
  RankArguments ranks;
};

constexpr const char* kExamples =
    "Examples:\n"
    "  plumb compare runs/new/step0 runs/good/step0\n"
    "  plumb compare new/dump.json good/dump.json -o out --format csv,json\n"
    "  plumb compare -i compare.json -o out -s\n"
    "  plumb compare new good --fail-on broken,unmatched && echo fine\n"
    "\n"
    "Exit status: 0 done, 1 --fail-on found something, 2 wrong usage or dumps that do not fit,\n"
    "3 file not found, 4 not supported, 5 damaged file, 6 input or output error.";

// Fills target and golden from whichever form was used.
Status ResolvePaths(Arguments& arguments) {
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
  if (arguments.target_path.empty() || arguments.golden_path.empty()) {
    return Error(ErrorCode::kInvalidArgument, "expected both -tp and -gp");
  }
  return {};
}

// With --secure: what is read and written, before anything is.
Status CheckSecure(const Arguments& arguments) {
  const CompareOptions& options = arguments.options;
  for (const std::string& path : {arguments.target_path, arguments.golden_path, options.noise_path,
                                  options.stack_path, arguments.request_path}) {
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

// A line on a terminal, once the work has lasted a second.
std::function<void(double)> TerminalProgress() {
  if (isatty(STDERR_FILENO) == 0) return {};
  const auto start = std::chrono::steady_clock::now();
  return [start](double done_ratio) {
    const auto elapsed = std::chrono::steady_clock::now() - start;
    if (elapsed < std::chrono::seconds(1)) return;
    std::fprintf(stderr, "\rcomparing tensors: %3.0f %%%s", done_ratio * 100,
                 done_ratio >= 1 ? "\n" : "");
  };
}

Result<int> RunCompare(Arguments& arguments) {
  // A CPU target that this machine cannot run is an error, not a silent fallback.
  PL_TRY(kernels::ChooseTarget());
  PL_TRY(ResolvePaths(arguments));
  if (arguments.secure) PL_TRY(CheckSecure(arguments));
  PL_TRY_ASSIGN(arguments.options.formats, ReportFormatsOf(arguments.formats));
  arguments.options.on_progress = TerminalProgress();
  if (arguments.mode == "atb" ||
      (load::IsAtbDump(arguments.target_path) && load::IsAtbDump(arguments.golden_path))) {
    return CompareAtbDumps(arguments.target_path, arguments.golden_path, arguments.options,
                           arguments.fail_on);
  }
  arguments.ranks.of_graphs = arguments.ranks.of_graphs ||
                              load::IsGraphDump(arguments.target_path) ||
                              load::IsGraphDump(arguments.golden_path);
  if (!arguments.ranks.of_graphs && AreFiles(arguments.target_path, arguments.golden_path)) {
    return CompareFiles(arguments.target_path, arguments.golden_path, arguments.options,
                        arguments.fail_on, arguments.machine);
  }
  if (MeansRanks(arguments.target_path, arguments.golden_path, !arguments.request_path.empty(),
                 arguments.ranks)) {
    if (!arguments.next_config.empty()) {
      return Error(ErrorCode::kInvalidArgument,
                   "--next-config: is about one rank (expected two dump.json or rank directories)");
    }
    return RunCompareRanks({arguments.target_path, arguments.golden_path, arguments.options,
                            arguments.fail_on, arguments.machine},
                           arguments.ranks);
  }
  if (arguments.ranks.of_graphs) {
    arguments.options.suffix = pipeline::GraphSuffix(arguments.target_path);
  }
  PL_TRY_ASSIGN(Comparison comparison,
                CompareRuns(arguments.target_path, arguments.golden_path, arguments.options));
  PL_TRY(WriteComparison(comparison, arguments.options));
  // The answer is printed whatever becomes of the next configuration.
  Status next_config;
  if (!arguments.next_config.empty()) {
    next_config = pipeline::WriteNextConfig(arguments.next_config, comparison);
  }
  if (arguments.tensor_log) LogTensors(comparison);
  const std::string text = arguments.machine ? SummaryJson(comparison) : SummaryText(comparison);
  std::fwrite(text.data(), 1, text.size(), stdout);
  PL_TRY(std::move(next_config));
  PL_TRY_ASSIGN(const bool fails, FailsOn(comparison, arguments.fail_on));
  return fails ? kDifferencesFound : 0;
}

void AddOptions(CLI::App& command, Arguments& arguments) {
  CompareOptions& options = arguments.options;
  command
      .add_option("paths", arguments.paths,
                  "TARGET GOLDEN: two dump.json files, two rank, step or dump directories, two "
                  "static-graph dumps, two arrays or checkpoints")
      ->expected(0, 2);
  command.add_option("--target_path", arguments.target_path, "the run under test (also -tp)");
  command.add_option("--golden_path", arguments.golden_path, "the reference run (also -gp)");
  command.add_option("-i,--input_path", arguments.request_path,
                     "upstream's compare.json: npu_path, bench_path, stack_path, rank_id, step_id");
  command.add_option("-o,--output_path", options.output_dir, "directory of the result files")
      ->capture_default_str();
  command
      .add_option("--format", arguments.formats,
                  "result files: xlsx, csv, json, jsonl, html, sqlite, junit, sarif")
      ->delimiter(',')
      ->capture_default_str();
  command.add_flag("-s,--stack_mode", arguments.stack_mode,
                   "with a stack_path in compare.json: show the call-stack column");
  command.add_flag("-c,--compare_only", arguments.compare_only, "with -i: write no advisor file");
  command.add_option("-m,--mode", arguments.mode, "what the paths hold: auto (found out), or atb")
      ->check(CLI::IsMember({"auto", "atb"}))
      ->capture_default_str();
  AddPairingOptions(command, options);
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
      ->check(CLI::IsMember({"suspicious", "broken", "unmatched", "any"}));
  command.add_option("--threads", options.threads, "worker threads; 0: one per core")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  command.add_option("--noise", options.noise_path,
                     "a third run that is right: as far as it is from GOLDEN is noise");
  command.add_option("--next-config", arguments.next_config,
                     "write the config.json whose recording would settle the cause");
  command.add_flag("--json", arguments.machine, "print the summary as one JSON object");
  AddRankOptions(command, arguments.ranks);
}

}  // namespace

void AddCompareCommand(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "compare", "Compare two recorded runs and name the first call that went wrong.");
  const auto arguments = std::make_shared<Arguments>();
  AddOptions(*command, *arguments);
  command->footer(kExamples);
  command->callback([arguments, &exit_status] {
    const Result<int> status = RunCompare(*arguments);
    exit_status = status ? *status : ReportError("compare", status.error());
  });
}

}  // namespace plumbline::cli
