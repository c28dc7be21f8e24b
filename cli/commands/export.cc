// plumb export DIR -o OUT: a recording as plain files.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "base/process/log.h"
#include "base/text/number_text.h"
#include "commands.h"
#include "help_page.h"
#include "inspect/export_dump.h"
#include "progress.h"
#include "terminal.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

struct ExportArguments {
  std::string source, target;
  ExportOptions options;
};

Status RunExport(ExportArguments& arguments) {
  Progress progress("copying", "tensor file");
  if (progress.is_on()) {
    arguments.options.progress = [&](uint64_t done, uint64_t all) {
      progress.Show(PartsDone(done, all));
    };
  }
  PL_TRY_ASSIGN(const ExportReport report,
                ExportDump(arguments.source, arguments.target, arguments.options));
  std::string text =
      fmt::format("{}: {}, {}, {}, {}\n", OneLine(arguments.target),
                  CountText(report.dumps, "dump"), CountText(report.tensor_files, "tensor file"),
                  CountText(report.other_files, "other file"), CountText(report.bytes, "byte"));
  if (report.converted > 0) {
    text += fmt::format("  {} converted\n", CountText(report.converted, "tensor file"));
  }
  if (report.widened > 0) {
    text += fmt::format(
        "  {} of them hold float32 now: .npy has no bfloat16 and float8 (the dtype "
        "stands in dump.json)\n",
        report.widened);
  }
  if (report.recovered_calls > 0) {
    text += fmt::format("  {} calls recovered from journals; the source is as it was\n",
                        report.recovered_calls);
  }
  for (const std::string& note : report.notes) text += "  " + OneLine(note) + "\n";
  Print(text);
  return {};
}

}  // namespace

void AddExportCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command =
      app.add_subcommand("export", "Copy a recording into plain files for other tools.");
  command->add_option("dir", arguments->source, "dump, step or rank directory")->required();
  AddOutput(*command, arguments->target, "new or empty directory")->required();
  command->add_flag("--strict-json", arguments->options.strict_json,
                    "NaN and Infinity as texts in dump.json");
  command->add_option("--format", arguments->options.format, "of tensor files: pt or npy")
      ->transform(CLI::Transformer(std::map<std::string, TensorFormat>{
          {"pt", TensorFormat::kPt}, {"npy", TensorFormat::kNpy}}));
  AddThreads(*command, arguments->options.threads);
  command->footer(
      FooterText("", {"plumb export runs/new -o plain",
                      "plumb export runs/new/step0 -o arrays --format npy --strict-json"}));
  command->callback([arguments, &exit_status] {
    SetLogStream(LogStream::kStderr);
    const Status status = RunExport(*arguments);
    exit_status = status ? 0 : ReportError("export", status.error());
  });
}

}  // namespace plumbline::cli
