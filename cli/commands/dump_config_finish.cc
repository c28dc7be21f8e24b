#include "commands/dump_config_finish.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/process/log.h"
#include "base/text/number_text.h"
#include "commands.h"
#include "commands/natural_number.h"
#include "graphs/finish_dump.h"
#include "help_page.h"
#include "terminal.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

constexpr const char* kName = "dump-config finish";

struct DumpConfigFinishArguments {
  std::string tree;
  graphs::FinishOptions options;
  bool is_live = false;
};

Status Finish(const DumpConfigFinishArguments& arguments) {
  PL_TRY_ASSIGN(const graphs::FinishReport report,
                graphs::DumpFinisher(arguments.tree, arguments.options).Pass(arguments.is_live));
  for (const std::string& problem : report.problems) {
    PrintError(fmt::format("plumb {}: {}\n", kName, OneLine(problem)));
  }
  std::string text = fmt::format("{} in {}", CountText(report.rows, "new row"),
                                 CountText(report.directories, "directory", "directories"));
  const auto add = [&](uint64_t count, std::string_view what) {
    if (count > 0) text += fmt::format(", {} {}", CountText(count, "file"), what);
  };
  add(report.sampled, "cut to samples");
  add(report.dropped, "removed");
  add(report.unfinished, "still being written");
  add(report.left_out, "with other names left out");
  add(report.unreadable, "unreadable");
  add(report.contradicted, "kept, with another row");
  Print(fmt::format("{}\n", text));
  if (report.unreadable > 0) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: {} without a row", arguments.tree,
                                                  CountText(report.unreadable, "damaged file")));
  }
  if (report.contradicted == 0) return {};
  return Error(ErrorCode::kCorrupt,
               fmt::format("{}: {} not removed, because statistic.csv has other values for it",
                           arguments.tree, CountText(report.contradicted, "file")));
}

}  // namespace

void AddDumpConfigFinish(CLI::App& command, int& exit_status) {
  const auto arguments = std::make_shared<DumpConfigFinishArguments>();
  CLI::App* finish = command.add_subcommand(
      "finish", "Write statistic.csv from the tensors of a dump, as devices do that CPUs are not.");
  finish->add_option("tree", arguments->tree, "a dump, or a part of one")->required();
  finish->add_option("--statistic-category", arguments->options.items,
                     "its columns (max min avg l2norm)");
  finish->add_flag("--drop-tensors", arguments->options.drops_tensors,
                   "remove tensors once their rows are on the disk");
  CLI::Option* sample =
      finish
          ->add_option("--sample-num", arguments->options.sample_num,
                       "cut larger tensors to that many first elements; shapes go to sample.json")
          ->check(NaturalNumber());
  finish
      ->add_option("--digits", arguments->options.digits,
                   "significant digits; 17: the shortest text that reads back to the same number")
      ->check(CLI::Range(1, 17))
      ->capture_default_str();
  finish->add_flag("--live", arguments->is_live, "the training still runs: take what is complete")
      ->excludes(sample);
  AddThreads(*finish, arguments->options.threads);
  finish->footer(FooterText("A killed pass can be run again and loses nothing.",
                            {"plumb dump-config finish /data/dump --statistic-category max min",
                             "plumb dump-config finish /data/dump --live"},
                            {{2, "wrong usage, no dump there, or a table with other columns"}}));
  finish->callback([arguments, &exit_status] {
    SetLogStream(LogStream::kStderr);
    const Status status = Finish(*arguments);
    exit_status = status ? 0 : ReportError(kName, status.error());
  });
}

}  // namespace plumbline::cli
