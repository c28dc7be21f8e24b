// plumb data2db --db OUT --data DIR: a recording, or what a training monitor wrote, as a database
// for the trend viewer.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/process/log.h"
#include "base/text/number_text.h"
#include "commands.h"
#include "help_page.h"
#include "load/monitor_files.h"
#include "load/rank_directories.h"
#include "progress.h"
#include "terminal.h"
#include "vocabulary.h"
#include "watch/data_to_db.h"
#include "watch/monitor_to_db.h"

namespace plumbline::cli {
namespace {

constexpr int kMaxProcesses = 128;

struct Data2dbArguments {
  std::string output, data;
  std::string format = "auto";
  std::string micro_step;
  std::string process_count = "1";
  DataToDbOptions options;
};

// Checked although one process does the work.
Status CheckProcessCount(const std::string& text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("--process_num {}: process_num must be a positive integer", text));
  }
  if (count > kMaxProcesses) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("--process_num {}: Maximum supported process_num is {}", text, kMaxProcesses));
  }
  return {};
}

std::string Summary(const DataToDbReport& report) {
  std::string text = fmt::format("{}: {} targets, ", OneLine(report.path), report.targets);
  uint64_t rows = 0;
  std::string by_metric;
  for (size_t i = 0; i < report.rows.size(); ++i) {
    rows += report.rows[i];
    if (report.rows[i] == 0) continue;
    by_metric +=
        fmt::format("{}{} {}", by_metric.empty() ? "" : ", ", report.metrics[i], report.rows[i]);
  }
  text += fmt::format("{} rows ({}){}\n", rows, by_metric, report.damage);
  const std::string directories = report.directories > 0
                                      ? CountText(report.directories, "directory", "directories")
                                      : fmt::format("{} step directories", report.steps);
  text +=
      fmt::format("  {}, row steps {} to {} ({}), largest rank {}\n", directories, report.min_step,
                  report.max_step, report.micro_steps ? "micro steps" : "steps", report.max_rank);
  if (report.left_out > 0) {
    text += fmt::format("  {} rows left out: they name a tensor a second time\n", report.left_out);
  }
  if (report.of_earlier > 0) {
    text += fmt::format(
        "  {} left out: a later directory of their rank begins at or before their step\n",
        CountText(report.of_earlier, "row"));
  }
  for (const std::string& note : report.notes) text += "  " + OneLine(note) + "\n";
  return text;
}

using Import = Result<DataToDbReport> (*)(const std::string& data, const std::string& output,
                                          const DataToDbOptions& options);

// Of "auto" what the directory holds, both where it is both.
std::vector<Import> ImportsOf(const Data2dbArguments& arguments) {
  if (arguments.format == "monitor") return {&MonitorToDb};
  if (arguments.format == "dump" || !load::HoldsMonitorDirectories(arguments.data)) {
    return {&DataToDb};
  }
  const auto steps = load::ListStepDirectories(arguments.data);
  if (!steps || steps->empty()) return {&MonitorToDb};
  return {&DataToDb, &MonitorToDb};
}

// The exit status.
Result<int> RunData2db(Data2dbArguments& arguments) {
  int exit_status = 0;
  PL_TRY(CheckProcessCount(arguments.process_count));
  if (!arguments.micro_step.empty()) {
    arguments.options.micro_steps = arguments.micro_step == "true";
  }
  Progress progress("importing", "file");
  if (progress.is_on()) {
    arguments.options.progress = [&](uint64_t done, uint64_t all) {
      progress.Show(PartsDone(done, all));
    };
  }
  for (const Import import : ImportsOf(arguments)) {
    PL_TRY_ASSIGN(const DataToDbReport report,
                  import(arguments.data, arguments.output, arguments.options));
    Print(Summary(report));
    for (const std::string& warning : report.warnings) LogWarning(warning);
    if (!report.damage.empty()) exit_status = kNotAllRead;
  }
  return exit_status;
}

}  // namespace

void AddData2dbCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<Data2dbArguments>();
  CLI::App* command = app.add_subcommand(
      "data2db",
      "Import the steps of a recording, or what a training monitor wrote, into a "
      "database for the trend viewer.");
  AddOutput(*command, arguments->output,
            "directory for dump_data.trend.db or monitor_data.trend.db", "--db")
      ->required();
  command
      ->add_option("--data", arguments->data,
                   "directory that holds step0, step1, ..., or Dec03_21-34-40-rank0-3f9c1a2b, ...")
      ->required();
  command->add_option("--format", arguments->format, "what DIR holds: dump, monitor, or auto")
      ->check(CLI::IsMember({"auto", "dump", "monitor"}))
      ->capture_default_str();
  command->add_option("--mapping", arguments->options.mapping_path,
                      "JSON file {\"old text\": \"new text\"}, applied to the names of calls");
  command
      ->add_option("--micro_step", arguments->micro_step,
                   "count micro steps instead of steps: true or false; default: true, of a dump "
                   "if the modules have one root")
      ->transform(CLI::IsMember({"true", "false"}, CLI::ignore_case));
  command
      ->add_option("--process_num", arguments->process_count,
                   "1 to 128; upstream's, without effect")
      ->capture_default_str();
  command->footer(FooterText("", {"plumb data2db -o trend --data runs/new",
                                  "plumb data2db -o trend --data runs/new --micro_step false",
                                  "plumb data2db -o trend --data monitor_output"},
      {{kNotAllRead, "not everything could be read; the rest is imported"}}));
  command->callback([arguments, &exit_status] {
    SetLogStream(LogStream::kStderr);
    const Result<int> status = RunData2db(*arguments);
    exit_status = status ? *status : ReportError("data2db", status.error());
  });
}

}  // namespace plumbline::cli
