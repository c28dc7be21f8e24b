// plumb convert -d DUMP -out DIR: device dumps as arrays of other programs.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "base/process/log.h"
#include "base/text/number_text.h"
#include "commands.h"
#include "commands/value_checks.h"
#include "help_page.h"
#include "operators/convert_dumps.h"
#include "progress.h"
#include "terminal.h"
#include "usage.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

using operators::ConvertReport;
using operators::ConvertRequest;
using operators::OutputKind;

struct ConvertArguments {
  ConvertRequest request;
  std::string version = "2";
  std::string kind = "npy";
};

const std::map<std::string, OutputKind>& Kinds() {
  static const std::map<std::string, OutputKind> kinds = {{"npy", OutputKind::kNpy},
                                                          {"msnpy", OutputKind::kMsNpy},
                                                          {"bin", OutputKind::kBin},
                                                          {"pt", OutputKind::kPt},
                                                          {"txt", OutputKind::kTxt}};
  return kinds;
}

std::string Summary(const ConvertRequest& request, const ConvertReport& report) {
  std::string text = fmt::format("{}: {} of {}, {}\n", OneLine(request.output_directory),
                                 CountText(report.outputs.size(), "output"),
                                 CountText(report.files - report.done_before, "dump file"),
                                 CountText(report.output_bytes, "byte"));
  if (report.done_before > 0) {
    text += fmt::format("  {} already done by a run that ended early\n",
                        CountText(report.done_before, "dump file"));
  }
  if (report.left_out > 0) {
    text += fmt::format("  {} left out: no names of dumps\n", CountText(report.left_out, "file"));
  }
  if (report.failed > 0) {
    text += fmt::format("  {} failed: {}\n", CountText(report.failed, "dump file"),
                        OneLine(report.failure_list));
  }
  return text;
}

int Convert(ConvertArguments& arguments) {
  Progress progress("converting", "file");
  if (progress.is_on()) {
    arguments.request.on_progress = [&](const ConvertRequest::Progress& now) {
      const bool is_end = now.files == now.all_files;
      progress.Show({.share = is_end ? 1
                                     : static_cast<double>(now.bytes) /
                                           std::max(1.0, static_cast<double>(now.all_bytes)),
                     .done = now.files,
                     .all = now.all_files,
                     .bytes = now.bytes});
    };
  }
  const auto report = operators::ConvertDumps(arguments.request);
  if (!report) {
    PrintError(fmt::format("plumb convert: {} (error {})\n", WithNearestPath(report.error().text),
                           static_cast<int>(report.error().code)));
    return static_cast<int>(report.error().code);
  }
  for (const std::string& note : report->notes) {
    PrintError(fmt::format("plumb convert: {}\n", OneLine(note)));
  }
  for (const std::string& line : report->lines) {
    PrintError(fmt::format("plumb convert: {}\n", OneLine(line)));
  }
  const std::string text = Summary(arguments.request, *report);
  Print(text);
  return report->code ? static_cast<int>(*report->code) : 0;
}

void AddLayoutOptions(CLI::App& command, ConvertRequest& request) {
  command.add_option("-f,--format", request.format, "layout to convert to, such as NCHW or ND");
  command.add_option("-s,--shape", request.shape, "shape of the result, such as 1,3,224,224");
  command.add_option("-o,--output_tensor", request.output_index, "only that output");
  command.add_option("-i,--input_tensor", request.input_index, "only that input");
  command.add_option("-c,--custom_script_path", request.custom_script_path,
                     "directory with format_convert/convert_FORMAT_to_FORMAT.py of your own");
}

}  // namespace

void AddConvertCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<ConvertArguments>();
  ConvertRequest& request = arguments->request;
  CLI::App* command = app.add_subcommand(
      "convert", "Turn dump files of devices into arrays, with their layout if asked for.");
  command
      ->add_option("-d,--dump_file", request.dump_path,
                   "a dump file, several between commas, or a directory")
      ->required()
      ->check(PathValue());
  AddOutput(*command, request.output_directory, "directory (also -out)", "", "--output")
      ->default_val(".")
      ->check(PathValue());
  command->add_flag("-R,--recursive", request.recursive, "also directories below");
  AddLayoutOptions(*command, request);
  command->add_option("-t,--type", arguments->kind, "kind of the outputs")
      ->check(CLI::IsMember({"npy", "msnpy", "bin", "pt", "txt"}))
      ->capture_default_str();
  command->add_option("-v,--version", arguments->version, "accepted: files say which one they are")
      ->check(CLI::IsMember({"1", "2"}));
  AddThreads(*command, request.threads);
  command->footer(FooterWithOwnStatuses(
      "-o is upstream's --output_tensor here.",
      {"plumb convert -d dump/20240101000000/0 -out arrays",
       "plumb convert -d dump -R -out arrays -f NCHW -t npy",
       "plumb convert -d dump -out arrays -f ND -c my_functions"},
      {{0, "all converted"},
       {2, "wrong usage; else the number of the first failure as msaccucmp has them:"},
       {3, "path"},
       {6, "parameter"},
       {11, "damaged dump"},
       {12, "no such input or output"},
       {19, "cannot write"},
       {21, "element type"},
       {22, "layout"},
       {23, "shape"},
       {26, "converter in Python"},
       {35, "overflow record"},
       {39, "size"},
       {43, "files beside the converters"},
       {46, "files beside the converters"},
       {47, "nano"}}));
  command->callback([arguments, command, &exit_status] {
    SetLogStream(LogStream::kStderr);
    if (const std::string empty = EmptyOption(*command); !empty.empty()) {
      constexpr auto kCode = static_cast<int>(operators::DumpCode::kInvalidParameter);
      PrintError(fmt::format("plumb convert: {} (error {})\n", empty, kCode));
      exit_status = kCode;
      return;
    }
    arguments->request.kind = Kinds().at(arguments->kind);
    exit_status = Convert(*arguments);
  });
}

}  // namespace plumbline::cli
