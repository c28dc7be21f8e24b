// plumb code_mapping: the lines of the training script behind the tensors of a static-graph dump.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/process/log.h"
#include "base/text/number_text.h"
#include "commands.h"
#include "graphs/source_lines.h"
#include "help_page.h"
#include "terminal.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

Status RunCodeMapping(const graphs::CodeMappingOptions& options) {
  PL_TRY_ASSIGN(const graphs::CodeMappingReport report, graphs::MapCode(options));
  for (const std::string& note : report.notes) {
    PrintError(fmt::format("plumb code_mapping: {}\n", OneLine(note)));
  }
  std::string text = fmt::format("{}: {} with a kernel of the graph",
                                 CountText(report.tensors, "tensor"), report.mapped);
  if (report.ambiguous > 0) text += fmt::format(", {} of them with several", report.ambiguous);
  text += '\n';
  for (const std::string& file : report.files) text += fmt::format("  {}\n", OneLine(file));
  Print(text);
  return {};
}

}  // namespace

void AddCodeMappingCommand(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<graphs::CodeMappingOptions>();
  CLI::App* command = app.add_subcommand(
      "code_mapping", "Find the lines of the script behind the tensors of a static-graph dump.");
  command->add_option("--ir", options->graphs, "compiled graphs: *.ir texts or *.pb")
      ->required()
      ->expected(1, -1);
  command->add_option("--dump_data", options->data, "an .npy file, a statistic.csv, or a directory")
      ->required();
  AddOutput(*command, options->output, "directory of the table, where the dump holds .npy files")
      ->capture_default_str();
  command->footer(FooterText(
      "",
      {"plumb code_mapping --ir graphs/ms_output_trace_code_graph_0.ir --dump_data dump -o out"},
      {{2, "wrong usage, or the graphs name no kernel"},
       {3, "a path is missing or holds no tensors"},
       {5, "a damaged graph or table"}}));
  command->callback([options, &exit_status] {
    SetLogStream(LogStream::kStderr);
    const Status status = RunCodeMapping(*options);
    exit_status = status ? 0 : ReportError("code_mapping", status.error());
  });
}

}  // namespace plumbline::cli
