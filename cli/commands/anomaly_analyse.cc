// plumb anomaly_analyse -d DIR: the alerts of a training monitor, the first cause first.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/process/log.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "commands.h"
#include "help_page.h"
#include "terminal.h"
#include "vocabulary.h"
#include "watch/anomalies.h"

namespace plumbline::cli {
namespace {

struct AnomalyArguments {
  std::string data, output, steps = "[]";
  AnomalyOptions options;
};

// "[3, 4]" as upstream's scripts give it, or "3,4".
Result<std::vector<int64_t>> StepList(std::string_view text) {
  const auto trimmed = [](std::string_view part) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    return part;
  };
  std::string_view list = trimmed(text);
  if (list.starts_with('[') && list.ends_with(']')) {
    list = trimmed(list.substr(1, list.size() - 2));
  }
  std::vector<int64_t> steps;
  if (list.empty()) return steps;
  for (const std::string_view part : SplitAt(list, ',')) {
    const auto step = ParseNatural(trimmed(part));
    if (!step) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("--step {}: The step list must be a resolvable list type (expected "
                               "such as [3, 4])",
                               text));
    }
    steps.push_back(*step);
  }
  return steps;
}

// The exit status.
Result<int> RunAnomalyAnalyse(AnomalyArguments& arguments) {
  PL_TRY_ASSIGN(arguments.options.steps, StepList(arguments.steps));
  PL_TRY_ASSIGN(const AnomalyReport report,
                AnalyseAnomalies(arguments.data, arguments.output, arguments.options));
  std::string text = AnomalyAnswer(report) + "\n";
  for (size_t i = 0; i < report.messages.size(); ++i) {
    text += fmt::format("  {}: {}\n", i, OneLine(report.messages[i]));
  }
  text += fmt::format("  written: {}\n", OneLine(report.path));
  Print(text);
  for (const std::string& warning : report.warnings) LogWarning(warning);
  return report.damaged > 0 ? kNotAllRead : 0;
}

}  // namespace

void AddAnomalyAnalyseCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<AnomalyArguments>();
  CLI::App* command = app.add_subcommand(
      "anomaly_analyse", "Sort the alerts of a training monitor over all ranks, the first first.");
  command
      ->add_option("-d,--data_path", arguments->data,
                   "the directory anomaly_detected, which holds rank0, rank1, ...")
      ->required();
  AddOutput(*command, arguments->output, "directory for anomaly_analyse.json; default: DIR",
            "--out_path");
  command->add_option("-k,--topk", arguments->options.top, "how many are written")
      ->capture_default_str();
  command->add_option("-s,--step,--step_list", arguments->steps,
                      "of these steps alone, such as [3, 4]; default: of all");
  command->footer(FooterText(
      "", {"plumb anomaly_analyse -d monitor_output/anomaly_detected",
           "plumb anomaly_analyse -d monitor_output/anomaly_detected -k 1 -s '[3, 4]'"},
      {{kNotAllRead, "not everything could be read; the rest is sorted"}}));
  command->callback([arguments, &exit_status] {
    SetLogStream(LogStream::kStderr);
    const Result<int> status = RunAnomalyAnalyse(*arguments);
    exit_status = status ? *status : ReportError("anomaly_analyse", status.error());
  });
}

}  // namespace plumbline::cli
