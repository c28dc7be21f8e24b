#include "commands/dump_config_new.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/process/log.h"
#include "base/text/text_parts.h"
#include "commands.h"
#include "commands/natural_number.h"
#include "config/graph_dump/dump_plan.h"
#include "help_page.h"
#include "terminal.h"

namespace plumbline::cli {
namespace {

using graph_dump::DumpPlan;
using graph_dump::DumpSettings;

constexpr const char* kDumpConfigName = "dump-config new";

struct DumpConfigNewArguments {
  std::string file;
  std::string device = "cpu";
  std::string from, mode = "graph_kbyk";  // config.json of plumbline
  DumpSettings settings;
  std::vector<std::string> categories;
  std::vector<int64_t> devices;
  std::string file_format;
  int64_t debug_mode = -1, sample_num = 0;  // not given
  bool async = false;
};

// Asks for one value; an empty answer keeps `value`.
void Ask(const char* question, std::string& value) {
  Print(fmt::format("{} [{}]: ", question, value));
  std::fflush(stdout);
  std::string answer;
  if (std::getline(std::cin, answer) && !answer.empty()) value = answer;
}

// Asks for what was not given on the command line.
void AskForSettings(DumpSettings& settings) {
  Ask("directory to write to (absolute)", settings.path);
  Ask("name of the network", settings.net_name);
  Ask("iterations, such as all or 0|5-8", settings.iteration);
  Ask("tensor, statistic or full", settings.saved_data);
  std::string kernels;
  Ask("kernels, separated by commas; nothing: all", kernels);
  for (const std::string_view kernel : SplitAt(kernels, ',')) {
    if (!kernel.empty()) settings.kernels.emplace_back(kernel);
  }
}

DumpSettings SettingsOf(const DumpConfigNewArguments& arguments) {
  DumpSettings settings = arguments.settings;
  settings.support_device = arguments.devices;
  if (settings.support_device.empty()) settings.support_device = {0, 1, 2, 3, 4, 5, 6, 7};
  if (!settings.kernels.empty() && settings.dump_mode == 0) settings.dump_mode = 1;
  if (!arguments.categories.empty()) settings.statistic_category = arguments.categories;
  if (!arguments.file_format.empty()) settings.file_format = arguments.file_format;
  if (arguments.debug_mode >= 0) settings.op_debug_mode = arguments.debug_mode;
  if (arguments.async) {
    if (!settings.op_debug_mode) settings.op_debug_mode = 0;
    return settings;
  }
  settings.sync.emplace();
  if (arguments.sample_num > 0) {
    settings.sync->sample_mode = 1;
    settings.sync->sample_num = arguments.sample_num;
  }
  return settings;
}

Result<DumpSettings> Plan(const DumpConfigNewArguments& arguments) {
  const auto mode = graph_dump::ExecutionModeNamed(arguments.mode);
  const auto device = graph_dump::DeviceKindNamed(arguments.device);
  PL_TRY_ASSIGN(DumpPlan plan,
                graph_dump::PlanDump(arguments.from, {}, {.mode = *mode, .device = *device}));
  if (!plan.is_on) return Error(ErrorCode::kUnsupported, plan.warnings.back()).In(arguments.from);
  for (const std::string& warning : plan.warnings) {
    PrintError(fmt::format("plumb {}: {}\n", kDumpConfigName, OneLine(warning)));
  }
  return std::move(plan.settings);
}

Status WriteNew(const DumpConfigNewArguments& arguments, bool asks) {
  if (KindOf(arguments.file) != PathKind::kMissing) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: is there already. Remove it or name another file", arguments.file));
  }
  DumpSettings settings;
  if (!arguments.from.empty()) {
    PL_TRY_ASSIGN(settings, Plan(arguments));
  } else {
    DumpConfigNewArguments answered = arguments;
    if (asks) AskForSettings(answered.settings);
    if (answered.settings.path.empty()) {
      return Error(ErrorCode::kInvalidArgument,
                   "--path: is missing (expected the directory of the dump)");
    }
    settings = SettingsOf(answered);
  }
  const std::string text = graph_dump::DumpSettingsText(settings);
  PL_TRY_ASSIGN(
      const graph_dump::CheckedSettings checked,
      graph_dump::CheckDumpSettings(text, *graph_dump::DeviceKindNamed(arguments.device)));
  if (!checked.errors.empty()) return Error(ErrorCode::kInvalidArgument, checked.errors.front());
  for (const std::string& warning : checked.warnings) {
    PrintError(fmt::format("plumb {}: {}\n", kDumpConfigName, OneLine(warning)));
  }
  PL_TRY(WriteFileAtomically(arguments.file, text, /*durable=*/false));
  PL_TRY_ASSIGN(const std::string absolute, AbsolutePath(arguments.file));
  Print(fmt::format("file: {}\nexport MINDSPORE_DUMP_CONFIG={}\n", arguments.file, absolute));
  return {};
}

void AddSettings(CLI::App& command, DumpConfigNewArguments& arguments) {
  DumpSettings& settings = arguments.settings;
  command.add_option("--path", settings.path, "directory of the dump, absolute");
  command.add_option("--net-name", settings.net_name, "name of a directory level")
      ->capture_default_str();
  command.add_option("--iteration", settings.iteration, "all, or numbers from 0 such as 0|5-8")
      ->capture_default_str();
  command.add_option("--saved-data", settings.saved_data, "tensor, statistic or full")
      ->capture_default_str();
  command.add_option("--kernels", settings.kernels,
                     "full names, types or name-regex(...); without: all kernels");
  command.add_option("--input-output", settings.input_output, "0 both, 1 inputs, 2 outputs")
      ->capture_default_str();
  command.add_option("--dump-mode", settings.dump_mode, "2: what set_dump() marks")
      ->capture_default_str();
  command.add_option("--support-device", arguments.devices, "device numbers (0 to 7)")
      ->check(NaturalNumber());
  command.add_option("--statistic-category", arguments.categories,
                     "columns of statistic.csv, such as max min avg l2norm");
  command.add_option("--op-debug-mode", arguments.debug_mode, "3 overflow, 4 exceptions (Ascend)")
      ->check(NaturalNumber());
  command.add_option("--file-format", arguments.file_format, "--async: bin or npy");
  command.add_option("--sample-num", arguments.sample_num, "only the first elements (Ascend)")
      ->check(NaturalNumber());
  command.add_flag("--async", arguments.async, "the device writes (Ascend at jit level O2)");
}

}  // namespace

void AddDumpConfigNew(CLI::App& command, int& exit_status) {
  const auto arguments = std::make_shared<DumpConfigNewArguments>();
  CLI::App* made = command.add_subcommand(
      "new", "Write a dump configuration from options, from config.json or by questions.");
  made->add_option("file", arguments->file, "the file to write")->required();
  made->add_option("--device", arguments->device, "where the training runs")
      ->check(CLI::IsMember({"cpu", "gpu", "ascend"}))
      ->capture_default_str();
  made->add_option("--from", arguments->from, "a config.json of plumbline with level L2");
  made->add_option("--mode", arguments->mode, "--from: how the graph runs")
      ->check(CLI::IsMember({"graph_kbyk", "graph_ge", "pynative"}))
      ->capture_default_str();
  AddSettings(*made, *arguments);
  made->footer(
      FooterText("Without --path and --from, questions are asked on a terminal.",
                 {"plumb dump-config new dump.json --path /data/dump --iteration '0|5-8'"}));
  made->callback([arguments, &exit_status] {
    SetLogStream(LogStream::kStderr);
    const bool asks =
        arguments->from.empty() && arguments->settings.path.empty() && ::isatty(STDIN_FILENO) != 0;
    const Status status = WriteNew(*arguments, asks);
    exit_status = status ? 0 : ReportError(kDumpConfigName, status.error());
  });
}

}  // namespace plumbline::cli
