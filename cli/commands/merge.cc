// plumb merge: chosen calls of all ranks side by side, one sheet per metric; or the shards of one
// command as one answer.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/file/object_store.h"
#include "beside_store.h"
#include "commands.h"
#include "commands/compare_ranks.h"
#include "commands/shared_work.h"
#include "help_page.h"
#include "ranks/merge_results.h"
#include "terminal.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

constexpr const char* kNotes =
    "Shards are the parts of a command with --shard; all of them together give the answer, the "
    "files\n"
    "and the status of the one command (docs/how-to/cluster.md).\n"
    "\n"
    "The configuration names calls and, if not all are wanted, metrics "
    "(docs/how-to/compare-ranks.md):\n"
    "  api:\n"
    "  - Distributed.all_reduce\n"
    "  compare_index:\n"
    "  - Max diff\n"
    "\n"
    "Inside one group: outputs of all_reduce, all_gather and broadcast are equal on all ranks,\n"
    "those of reduce_scatter are different slices, what irecv gets is what isend of its partner "
    "gave.";

struct MergeArguments {
  std::vector<std::string> inputs;
  std::string input_option, output = "./output", config;
  bool has_output = false;
  int threads = 0;
};

// What the command of the shards reads and writes may be in a store, too.
plumbline::Status ListStored(const ShardRequest& request, const std::vector<std::string>& shards) {
  std::vector<std::string> paths = StoredPaths(request.words);
  if (std::ranges::all_of(paths, object_store::IsListed)) return {};
  for (const std::string& path : StoredPaths(shards)) paths.push_back(path);
  std::vector<std::string> words = {"merge"};
  words.insert(words.end(), shards.begin(), shards.end());
  return RunBesideStore(words, paths);
}

// Whatever command they are of.
Result<int> MergeAnyShards(const std::vector<std::string>& paths) {
  PL_TRY_ASSIGN(const std::vector<std::string> files, ShardFiles(paths));
  PL_TRY_ASSIGN(const ShardRequest request, RequestOfShard(files.front()));
  PL_TRY(ListStored(request, paths));
  if (request.command == "overflow") return MergeOverflowShards(request, files);
  if (request.command == "watch") return MergeWatchShards(request, files);
  if (request.command == "precheck") return MergePrecheckShards(request, files);
  PL_TRY_ASSIGN(ranks::ShardSet shards, ranks::ReadShards(files));
  return MergeComparedShards(std::move(shards));
}

Result<int> RunMerge(const MergeArguments& arguments) {
  if (arguments.config.empty() && !arguments.inputs.empty() && arguments.input_option.empty()) {
    if (arguments.has_output) {
      return Error(ErrorCode::kInvalidArgument,
                   "-o: shards know where their results go. Leave it out, or name the calls of "
                   "tables with --config");
    }
    return MergeAnyShards(arguments.inputs);
  }
  if (arguments.config.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "name shards, or a directory of results and --config FILE");
  }
  if (arguments.inputs.size() > 1 || arguments.inputs.empty() == arguments.input_option.empty()) {
    return Error(ErrorCode::kInvalidArgument, "name the directory of the results once");
  }
  PL_TRY_ASSIGN(const ranks::MergeConfig config, ranks::ReadMergeConfig(arguments.config));
  const std::string& input =
      arguments.inputs.empty() ? arguments.input_option : arguments.inputs.front();
  PL_TRY_ASSIGN(const ranks::MergeReport report,
                ranks::MergeResults(input, arguments.output, config, arguments.threads));
  std::string text =
      fmt::format("merged: {} ranks, {} rows on each of {} sheets ({})\n", report.ranks.size(),
                  report.rows, report.metrics.size(), fmt::join(report.metrics, ", "));
  for (const auto* lines : {&report.warnings, &report.left_out}) {
    for (const std::string& line : *lines) text += fmt::format("warning: {}\n", line);
  }
  text += fmt::format("file: {}\n", report.file);
  Print(text);
  return report.left_out.empty() ? 0 : 1;
}

}  // namespace

void AddMergeCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<MergeArguments>();
  CLI::App* command = app.add_subcommand(
      "merge",
      "Put shards of a command together, or chosen calls of the compared ranks side by side.");
  command->alias("merge_result");
  command->add_option("paths", arguments->inputs,
                      "shards of one command or their directory; with --config the "
                      "directory of the results of `plumb compare`");
  command->add_option("-i,--input_dir", arguments->input_option, "the same, as upstream spells it")
      ->group("");
  const CLI::Option* const output =
      AddOutput(*command, arguments->output, "where the workbook goes", "--output_dir")
          ->capture_default_str();
  command->add_option("--config,--config-path", arguments->config,
                      "YAML file that names the calls and metrics (also -config)");
  AddThreads(*command, arguments->threads);
  command->footer(FooterText(
      kNotes,
      {"plumb compare runs/new/step0 runs/good/step0 -o out",
       "plumb merge out -o merged --config merge.yaml", "plumb compare new good -o out --shard 0/2",
       "plumb compare new good -o out --shard 1/2 && plumb merge out"},
      {{1,
        "a rank was left out (a line says which and why); of shards: as "
        "of the command"},
       {2, "wrong usage; shards of several commands; of tables: nothing to merge"},
       {3, "shards are missing (a line says which), or there are none"}}));
  command->callback([arguments, output, &exit_status] {
    arguments->has_output = output->count() > 0;
    const Result<int> status = RunMerge(*arguments);
    exit_status = status ? *status : ReportError("merge", status.error());
  });
}

}  // namespace plumbline::cli
