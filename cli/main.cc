// plumb: record, compare and find the first wrong call.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/file/lost_mapping.h"
#include "base/file/object_store.h"
#include "beside_store.h"
#include "command_tree.h"
#include "commands.h"
#include "commands/msaccucmp.h"
#include "commands/msprobe.h"
#include "help_page.h"
#include "kernels/cpu_target.h"
#include "plumbline/c_api.h"
#include "terminal.h"
#include "usage.h"

namespace plumbline::cli {
namespace {

constexpr AddCommand kCommands[] = {
    AddAnomalyAnalyseCommand,
    AddApiPrecisionCompareCommand,
    AddCheckCommand,
    AddCodeMappingCommand,
    AddCompareCommand,
    AddCompletionCommand,
    AddConfigCheckCommand,
    AddConvertCommand,
    AddCsv2tensorboardCommand,
    AddData2dbCommand,
    AddDemoCommand,
    AddDumpConfigCommand,
    AddExplainCommand,
    AddExportCommand,
    AddExtractCommand,
    AddFreeBenchmarkCommand,
    AddGradCompareCommand,
    AddGradUnpackCommand,
    AddGraphCommand,
    AddH5copyCommand,
    AddInspectCommand,
    AddLayoutCommand,
    AddMergeCommand,
    AddOverflowCommand,
    AddOpGenerateCommand,
    AddParseCommand,
    AddPrecheckCommand,
    AddRecoverCommand,
    AddRunOverflowCheckCommand,
    AddTrendCommand,
    AddViewCommand,
    AddWatchCommand,
};

constexpr int kUsageStatus = 2;
constexpr const char* kMsprobe = "msprobe";
constexpr const char* kMsaccucmp = "msaccucmp";

// Short options of several letters, which upstream's scripts use and the parser does not know.
std::string LongForm(std::string argument) {
  static constexpr std::pair<std::string_view, std::string_view> kForms[] = {
      {"-tp", "--target_path"},
      {"-gp", "--golden_path"},
      {"-fm", "--fuzzy_match"},
      {"-da", "--diff_analyze"},
      {"-oc", "--overflow_check"},
      {"-cs", "--complete_stack"},
      {"-config", "--config"},
      {"-dm", "--data_mapping"},
      {"-cm", "--cell_mapping"},
      {"-am", "--api_mapping"},
      {"-lm", "--layer_mapping"},
      {"-tensor_log", "--is_print_compare_log"},
      {"-progress_log", "--is_print_progress_log"},
      {"-vc", "--verl-compare"},
      {"-vv", "--verl-verify"},
      {"-out", "--output"},
      {"-npu", "--npu_csv_path"},
      {"-gpu", "--gpu_csv_path"},
      {"-csv_path", "--csv_path"},
      {"-api_info", "--api_info"},
      {"-save_error_data", "--save_error_data"}};
  for (const auto& form : kForms) {
    if (argument == form.first) return std::string(form.second);
  }
  return argument;
}

bool NamesCommand(const CLI::App& app, const std::string& word) {
  const auto all = app.get_subcommands([](const CLI::App*) { return true; });
  return std::ranges::any_of(all,
                             [&](const CLI::App* command) { return command->check_name(word); });
}

// Parses the words after `plumb` and runs the command they name.
int Run(std::vector<std::string> words) {
  CLI::App app(
      "Records what a model computes, compares two recordings and names the first call "
      "whose numbers went wrong.",
      "plumb");
  app.formatter_fn([](const CLI::App* command, const std::string& name, CLI::AppFormatMode) {
    return HelpText(TreeOf(*command), name, TerminalWidth());
  });
  app.set_version_flag("-V,--version", "plumb " PLUMBLINE_VERSION);
  app.require_subcommand(1);
  app.failure_message([&words](const CLI::App* command, const CLI::Error& error) {
    return UsageProblem(*command, words, error) + "\n";
  });
  std::string framework;
  app.add_option("-f,--framework", framework,
                 "accepted for upstream's word order; dumps say what they hold")
      ->check(CLI::IsMember({"pytorch", "mindspore"}));
  int exit_status = 0;
  for (const AddCommand add : kCommands) add(app, exit_status);
  // For the list of commands only: Main() rewrites its words before they are parsed.
  app.add_subcommand(kMsprobe, "Run a command line written for upstream's program msprobe.");
  app.add_subcommand(kMsaccucmp, "Run a command line written for upstream's program msaccucmp.");
  app.footer(
      FooterText("plumb help COMMAND, or plumb COMMAND --help, prints the page of a command.\n"
                 "A path may be one of an object store: s3://bucket/run.",
                 {"plumb compare runs/new/step0 runs/good/step0", "plumb help compare"},
                 {{1, "what --fail-on or a rule names was found"}}));
  if (!words.empty() && !words[0].starts_with('-') && !NamesCommand(app, words[0])) {
    PrintError(UsageProblem(app, words, CLI::CallForHelp()) + "\n");
    return kUsageStatus;
  }
  for (std::string& word : words) word = LongForm(std::move(word));
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // as the parser wants
  } catch (const CLI::ParseError& error) {
    // The parser reports by exceptions; they end here.
    return app.exit(error) == 0 ? 0 : kUsageStatus;
  }
  return exit_status;
}

int RunMsprobe(const std::vector<std::string>& words) {
  const Result<MsprobeCommand> translated = TranslateMsprobe(words);
  if (!translated) return ReportError(kMsprobe, translated.error());
  if (translated->words.empty()) {
    Print(HelpText(MsprobeTree(), "plumb msprobe", TerminalWidth()));
    return 0;
  }
  const std::string& command = translated->words[0];
  if (command == kMsaccucmp) {
    return RunMsaccucmp({translated->words.begin() + 1, translated->words.end()}, Run);
  }
  return Run(translated->words);
}

int Main(int argc, char** argv) {
  // A CPU target that this machine cannot run is an error, not a silent fallback.
  const Result<kernels::CpuTarget> target = kernels::ChooseTarget();
  if (!target) {
    PrintError(fmt::format("plumb: {}\n", target.error().message()));
    return ExitStatus(target.error().code());
  }
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const std::vector<std::string> stored = StoredPaths(words);
  if (!stored.empty() && !object_store::IsOpen()) {
    return ReportError(words[0].c_str(), RunBesideStore(words, stored));
  }
  // A link of that name beside the program stands in for upstream's script.
  const std::string_view name = argc == 0 ? std::string_view() : BaseName(argv[0]);
  if (name == kMsaccucmp || name == "msaccucmp.py") return RunMsaccucmp(words, Run);
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  if (!words.empty() && words[0] == kMsprobe) {
    words.erase(words.begin());
    return RunMsprobe(words);
  }
  if (!words.empty() && words[0] == kMsaccucmp) {
    words.erase(words.begin());
    return RunMsaccucmp(words, Run);
  }
  return Run(std::move(words));
}

}  // namespace

int ReportError(const char* command, const Error& error) {
  PrintError(fmt::format("plumb {}: {}\n", command, WithNearestPath(error.message())));
  return ExitStatus(error.code());
}

}  // namespace plumbline::cli

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its write
  plumbline::EndWithLineOnLostMapping(plumbline::ExitStatus(plumbline::ErrorCode::kIo));
  const int status = plumbline::cli::Main(argc, argv);
  // An answer that nobody can read is no success.
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  plumbline::cli::PrintError("plumb: cannot write to standard output\n");
  return plumbline::ExitStatus(plumbline::ErrorCode::kIo);
}
