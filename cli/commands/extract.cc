// plumb extract RUN [CALL]: one recorded call as a unit test.

#include "precheck/extract.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/file/object_store.h"
#include "base/process/log.h"
#include "base/text/json.h"
#include "commands.h"
#include "commands/value_checks.h"
#include "help_page.h"
#include "report/findings.h"
#include "terminal.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

struct ExtractArguments {
  precheck::ExtractOptions options;
  bool machine = false;
};

std::string AnswerJson(const precheck::ExtractedTest& test) {
  json::Value answer = json::Value::Object();
  answer.Put("call", json::Value(test.call));
  answer.Put("test", json::Value(test.test_path));
  answer.Put("fails", json::Value(test.fails));
  answer.Put("recorded_data", json::Value(test.has_recorded_data));
  answer.Put("lines", json::Value(test.lines));
  return answer.Text(2) + "\n";
}

std::string AnswerText(const precheck::ExtractedTest& test) {
  std::string text = fmt::format("{}: {}\n", OneLine(test.call),
                                 test.lines.empty() ? "" : OneLine(test.lines.front()));
  for (size_t i = 1; i < test.lines.size(); ++i) {
    text += fmt::format("  {}\n", OneLine(test.lines[i]));
  }
  if (!test.has_recorded_data) {
    text +=
        "  inputs: drawn from the recorded statistics (task tensor records them as they were)\n";
  }
  return text + fmt::format("test: {}\n  run it: python -m pytest -q {}\n", OneLine(test.test_path),
                            OneLine(report::ShellWord(test.test_path)));
}

int RunExtract(ExtractArguments& arguments) {
  arguments.options.on_note = [](const std::string& text) { PrintNote("extract", text); };
  const auto extracted = precheck::ExtractCall(arguments.options);
  if (!extracted) return ReportError("extract", extracted.error());
  Print(arguments.machine ? AnswerJson(*extracted) : AnswerText(*extracted));
  return 0;
}

}  // namespace

void AddExtractCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<ExtractArguments>();
  precheck::ExtractOptions& options = arguments->options;
  CLI::App* command = app.add_subcommand(
      "extract", "Write one recorded call as a unit test that needs PyTorch and pytest alone.");
  command
      ->add_option("run", options.run,
                   "a recording, or the result of a comparison (its .json file or directory)")
      ->required();
  command->add_option("call", options.call,
                      "name of the call; left out: the one that the comparison named");
  command->add_option("-g,--golden", options.golden,
                      "the recording that has the call as it should be");
  AddOutput(*command, options.output_dir, "the folder of the test is made here")
      ->capture_default_str();
  command->add_flag("--reduce", options.reduce,
                    "shrink tensors and arguments while the test still fails");
  command->add_option("--time_limit,--time-limit", options.seconds, "most seconds for --reduce")
      ->check(Seconds())
      ->capture_default_str();
  command
      ->add_option("--api_timeout,--api-timeout", options.call_seconds,
                   "seconds after which the call is given up")
      ->check(Seconds())
      ->capture_default_str();
  command->add_option("--device", options.device, "where the test runs (cpu, npu, cuda:0, ...)")
      ->capture_default_str();
  command->add_option("--seed", options.seed, "of inputs that are drawn from statistics")
      ->capture_default_str();
  AddJson(*command, arguments->machine, "the answer");
  command->footer(FooterText(
      "The folder holds test_<call>.py and data.pt. The test compares with what the call of the "
      "golden run (without one: the call itself) gives in float64 on the CPU. DEVICE=NAME runs it "
      "elsewhere, SIDE=golden with the golden run's arguments.",
      {"plumb extract result", "plumb extract result --reduce",
       "plumb extract runs/new/step0 Functional.softmax.3 --device npu"}));
  command->callback([arguments, command, &exit_status] {
    SetLogStream(LogStream::kStderr);
    if (const std::string empty = EmptyOption(*command); !empty.empty()) {
      exit_status = ReportError("extract", Error(ErrorCode::kInvalidArgument, empty));
      return;
    }
    if (const std::string& output = arguments->options.output_dir;
        !object_store::NamedBy(output).empty()) {
      exit_status = ReportError("extract", Error(ErrorCode::kInvalidArgument,
                                                 output + ": a test is written to a file system "
                                                          "(expected a directory there)"));
      return;
    }
    exit_status = RunExtract(*arguments);
  });
}

}  // namespace plumbline::cli
