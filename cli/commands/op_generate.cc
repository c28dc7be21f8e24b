// plumb op_generate -i config_op.json -o DIR: upstream's program for one recorded call.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/process/log.h"
#include "commands.h"
#include "commands/value_checks.h"
#include "help_page.h"
#include "precheck/op_script.h"
#include "terminal.h"

namespace plumbline::cli {
namespace {

struct OpGenerateArguments {
  std::string config_path, output_dir;
};

Status RunOpGenerate(const OpGenerateArguments& arguments) {
  PL_TRY_ASSIGN(const precheck::OpScriptConfig config,
                precheck::ReadOpScriptConfig(arguments.config_path));
  PL_TRY_ASSIGN(const std::string script,
                precheck::WriteOpScript(config, arguments.output_dir, ""));
  Print(fmt::format("script: {}\n  run it: python {}\n", OneLine(script), OneLine(script)));
  return {};
}

}  // namespace

void AddOpGenerateCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<OpGenerateArguments>();
  CLI::App* command = app.add_subcommand(
      "op_generate", "Write a program that runs one recorded call and shows its errors.");
  command->add_option("-i,--config_input", arguments->config_path, "the config_op.json")
      ->required();
  command
      ->add_option("-o,--api_output_path", arguments->output_dir,
                   "a directory that is there, for the program and its tensors")
      ->required();
  command->footer(FooterText(
      "config_op.json holds dump_json_path, api_name, extract_api_path, propagation (forward or "
      "backward), data_mode (random_data or real_data), random_seed and iter_times. `plumb "
      "extract` "
      "writes the same call as a unit test.",
      {"plumb op_generate -i config_op.json -o scripts"}));
  command->callback([arguments, command, &exit_status] {
    SetLogStream(LogStream::kStderr);
    if (const std::string empty = EmptyOption(*command); !empty.empty()) {
      exit_status = ReportError("op_generate", Error(ErrorCode::kInvalidArgument, empty));
      return;
    }
    const Status status = RunOpGenerate(*arguments);
    exit_status = status ? 0 : ReportError("op_generate", status.error());
  });
}

}  // namespace plumbline::cli
