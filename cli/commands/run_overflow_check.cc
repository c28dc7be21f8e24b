// plumb run_overflow_check -api_info DUMP: recorded forward calls again, to tell a normal overflow
// from one that only the device has.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/process/log.h"
#include "base/text/text_parts.h"
#include "commands.h"
#include "commands/recording_file.h"
#include "commands/value_checks.h"
#include "help_page.h"
#include "precheck/overflow/overflow_replay.h"
#include "precheck/overflow/overflow_report.h"
#include "progress.h"
#include "terminal.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

using precheck::OverflowReplayOptions;
using precheck::OverflowReplayReport;

constexpr const char* kSwitch = "-j,--jit_compile,--jit-compile";

struct RunOverflowCheckArguments {
  std::string path, api_info;
  double api_timeout = 600;
  std::vector<std::string> fail_on;
  bool machine = false;
  OverflowReplayOptions options;
};

bool MeetsFailOn(const OverflowReplayReport& report, const std::vector<std::string>& fail_on) {
  return std::ranges::any_of(report.rows, [&](const precheck::OverflowRow& row) {
    return std::ranges::find(fail_on, precheck::OverflowWord(row.result)) != fail_on.end();
  });
}

Result<int> RunOverflowCheck(RunOverflowCheckArguments& arguments) {
  OverflowReplayOptions& options = arguments.options;
  PL_TRY_ASSIGN(options.dump_json,
                RecordingFile(arguments.path.empty() ? arguments.api_info : arguments.path));
  options.api_timeout = Milliseconds(arguments.api_timeout);
  Progress progress("Processing", "call");
  if (progress.is_on()) {
    options.on_progress = [&](uint64_t done, uint64_t all) { progress.Show(PartsDone(done, all)); };
  }
  options.is_stopped = WasInterrupted;
  AwaitInterrupts();
  PL_TRY_ASSIGN(const OverflowReplayReport report, RunOverflowReplay(options));
  for (const std::string& warning : report.warnings) PrintNote("run_overflow_check", warning);
  Print(arguments.machine ? AnswerJson(report) : AnswerText(report));
  if (report.was_interrupted) {
    PrintError("plumb run_overflow_check: interrupted; the file has the calls up to then\n");
    return kInterrupted;
  }
  return MeetsFailOn(report, arguments.fail_on) ? kDifferencesFound : 0;
}

// -j: by itself, or with a word that says which.
void AddSwitch(CLI::App& command, bool& is_on) {
  const auto take = [&is_on](const std::vector<std::string>& values) {
    const std::string word = values.empty() ? std::string() : LowerCase(values.front());
    is_on = word.empty() || word == "true" || word == "1";
    return is_on || word == "false" || word == "0";
  };
  command
      .add_option(kSwitch, take,
                  "compile operators of an NPU: the option alone, or true or false (default: "
                  "false)")
      ->expected(0, 1)
      ->type_name("[BOOL]");
}

void AddOptions(CLI::App& command, RunOverflowCheckArguments& arguments) {
  OverflowReplayOptions& options = arguments.options;
  command.add_option("dump", arguments.path, "dump.json, or a rank or step directory");
  command.add_option("--api_info,--api_info_file", arguments.api_info, "the same")->group("");
  AddOutput(command, options.output_dir, "directory of the result file", "--out_path")
      ->capture_default_str();
  command
      .add_option("--device_type,--device-type", options.device_type,
                  "device under test: auto (an NPU, else CUDA, else the CPU), npu, cuda, cpu, or "
                  "what PyTorch calls it")
      ->capture_default_str();
  command.add_option("-d,--device", options.device, "number of the device")
      ->check(CLI::Range(0, 4095))
      ->capture_default_str();
  command.add_option("--seed", options.seed, "of drawn inputs")->capture_default_str();
  command
      .add_option("--api_timeout,--api-timeout", arguments.api_timeout,
                  "seconds after which a call is given up")
      ->check(Seconds())
      ->capture_default_str();
  command.add_option("--python", options.python, "the interpreter that has PyTorch")
      ->type_name("FILE");
  command
      .add_option("--fail-on,--fail_on", arguments.fail_on,
                  "end with status 1 if there is any of these")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"abnormal", "normal", "not_reproduced", "skip", "error"}));
  AddJson(command, arguments.machine, "the summary");
  AddSwitch(command, arguments.options.compiles_operators);
}

}  // namespace

void AddRunOverflowCheckCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<RunOverflowCheckArguments>();
  CLI::App* command = app.add_subcommand(
      "run_overflow_check",
      "Run recorded calls again and say whether an overflow is the device's own.");
  AddOptions(*command, *arguments);
  command->footer(FooterText(
      "Each forward call is run on the device and on the CPU in its recorded types, with the "
      "recorded tensors or with inputs drawn from their statistics. An overflow of both is normal, "
      "one of a single side abnormal. With --device_type cpu the recorded types are compared with "
      "raised ones.",
      {"plumb run_overflow_check runs/new/step0/rank0 -o result",
       "plumb run_overflow_check dump.json --device_type npu -d 1 --fail-on abnormal"},
      {{1, "--fail-on found something"},
       {kInterrupted, "interrupted; what was judged is in the file"}}));
  command->callback([arguments, command, &exit_status] {
    SetLogStream(LogStream::kStderr);
    // Of the options -j alone may have no value; it is the last one that is looked at.
    std::string problem = EmptyOption(*command);
    if (problem.starts_with("-j:")) problem.clear();
    if (problem.empty() && arguments->path.empty() == arguments->api_info.empty()) {
      problem = "name one recording: DUMP or -api_info DUMP";
    }
    if (!problem.empty()) {
      exit_status = ReportError("run_overflow_check", Error(ErrorCode::kInvalidArgument, problem));
      return;
    }
    const Result<int> status = RunOverflowCheck(*arguments);
    if (!status && WasInterrupted()) {
      PrintError("plumb run_overflow_check: interrupted\n");
      exit_status = kInterrupted;
      return;
    }
    exit_status = status ? *status : ReportError("run_overflow_check", status.error());
  });
}

}  // namespace plumbline::cli
