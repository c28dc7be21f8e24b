// plumb dump-config: the configuration of MindSpore's own dump of static graphs.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/file/file.h"
#include "base/process/log.h"
#include "base/text/number_text.h"
#include "commands.h"
#include "commands/dump_config_finish.h"
#include "commands/dump_config_new.h"
#include "config/acl_json.h"
#include "config/graph_dump/dump_settings.h"
#include "graphs/graph_sheets.h"
#include "help_page.h"
#include "terminal.h"

namespace plumbline::cli {
namespace {

using graph_dump::CheckedSettings;
using graph_dump::DeviceKind;

struct CheckArguments {
  std::string file, device, tree;
};

void PrintLine(const std::string& line) { Print(fmt::format("{}\n", OneLine(line))); }

void PrintIterations(const graph_dump::Iterations& iterations) {
  std::string text;
  for (const auto& [first, last] : iterations.ranges) {
    text += text.empty() ? "" : ", ";
    text += first == last ? fmt::format("{}", first) : fmt::format("{} to {}", first, last);
  }
  PrintLine("iterations, counted from 0: " + (iterations.all ? "all"
                                              : text.empty() ? "none"
                                                             : text));
}

Status PrintSelection(const CheckedSettings& checked, const std::string& tree) {
  PL_TRY_ASSIGN(const graphs::KernelSelection selection,
                graphs::SelectKernels(checked.settings.kernels, tree));
  for (const graphs::EntrySelection& entry : selection.entries) {
    std::string text = fmt::format("\"{}\": {}", entry.text, CountText(entry.kernels, "kernel"));
    if (!entry.first.empty()) text += fmt::format(", first {}", entry.first);
    if (!entry.nearest.empty()) text += fmt::format(". Did you mean {}?", entry.nearest);
    PrintLine(text);
  }
  const bool all = checked.settings.dump_mode != 1;
  PrintLine(fmt::format("kernels selected: {} of {} in {}",
                        all ? selection.kernels : selection.selected, selection.kernels,
                        CountText(selection.graphs, "graph")));
  return {};
}

Status CheckFile(const CheckArguments& arguments) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(arguments.file));
  const DeviceKind device =
      graph_dump::DeviceKindNamed(arguments.device).value_or(DeviceKind::kUnknown);
  const Result<CheckedSettings> checked = graph_dump::CheckDumpSettings(text, device);
  if (!checked) return checked.error().In(arguments.file);
  for (const std::string& error : checked->errors) PrintLine("error: " + error);
  for (const std::string& warning : checked->warnings) PrintLine("warning: " + warning);
  if (!checked->errors.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: {}", arguments.file, CountText(checked->errors.size(), "error")));
  }
  PrintIterations(checked->iterations);
  if (!arguments.tree.empty()) PL_TRY(PrintSelection(*checked, arguments.tree));
  PrintLine(
      fmt::format("{}: valid, {}", arguments.file, CountText(checked->warnings.size(), "warning")));
  return {};
}

void AddCheck(CLI::App& command, int& exit_status) {
  const auto arguments = std::make_shared<CheckArguments>();
  CLI::App* check = command.add_subcommand(
      "check", "Check the file that MINDSPORE_DUMP_CONFIG names against every rule of MindSpore.");
  check->add_option("file", arguments->file, "the configuration")->required();
  check
      ->add_option("--device", arguments->device, "where the training will run: not all can do all")
      ->check(CLI::IsMember({"cpu", "gpu", "ascend"}));
  check->add_option("--tree", arguments->tree,
                    "an earlier dump of the network: count the kernels that each entry selects");
  check->footer(FooterText("", {"plumb dump-config check data_dump.json --device cpu"},
                           {{0, "valid"}, {2, "wrong usage, or an error in the file"}}));
  check->callback([arguments, &exit_status] {
    SetLogStream(LogStream::kStderr);
    const Status status = CheckFile(*arguments);
    exit_status = status ? 0 : ReportError("dump-config check", status.error());
  });
}

struct AclArguments {
  std::string file;
  bool is_lenient = false;
};

// What the runtime takes goes to stdout, everything else to stderr.
Status CheckAclFile(const AclArguments& arguments) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(arguments.file));
  const Result<acl_json::CheckedAclJson> checked = acl_json::Check(text, arguments.is_lenient);
  if (!checked) return checked.error().In(arguments.file);
  const auto say = [](const char* what, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      PrintError(fmt::format("{}: {}\n", what, OneLine(line)));
    }
  };
  say("repaired", checked->repairs);
  say("warning", checked->warnings);
  say("error", checked->errors);
  if (!checked->errors.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: {}", arguments.file, CountText(checked->errors.size(), "error")));
  }
  // As it is, for a file.
  std::fputs(checked->text.c_str(), stdout);
  if (!checked->text.ends_with('\n')) std::fputs("\n", stdout);
  return {};
}

void AddCheckAcl(CLI::App& command, int& exit_status) {
  const auto arguments = std::make_shared<AclArguments>();
  CLI::App* check = command.add_subcommand(
      "check-acl", "Check an acl.json, by which the ACL runtime of a device dumps, and print it.");
  check->add_option("file", arguments->file, "the acl.json")->required();
  check->add_flag("--lenient", arguments->is_lenient,
                  "repair comments and commas as documents print them");
  check->footer(FooterText("", {"plumb dump-config check-acl acl.json --lenient > repaired.json"},
                           {{0, "valid"}, {2, "wrong usage, or an error in the file"}}));
  check->callback([arguments, &exit_status] {
    const Status status = CheckAclFile(*arguments);
    exit_status = status ? 0 : ReportError("dump-config check-acl", status.error());
  });
}

}  // namespace

void AddDumpConfigCommand(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "dump-config", "Check or write configurations of MindSpore's dump, and finish its trees.");
  command->require_subcommand(1);
  command->footer(FooterText("Each command has a page of its own.",
                             {"plumb dump-config new data_dump.json --path /data/dump",
                              "plumb dump-config check data_dump.json"}));
  AddCheck(*command, exit_status);
  AddCheckAcl(*command, exit_status);
  AddDumpConfigNew(*command, exit_status);
  AddDumpConfigFinish(*command, exit_status);
}

}  // namespace plumbline::cli
