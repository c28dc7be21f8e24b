// plumb: record, compare and find the first wrong call.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands.h"
#include "plumbline/c_api.h"

namespace plumbline::cli {
namespace {

constexpr AddCommand kCommands[] = {
    AddCompareCommand, AddExportCommand, AddInspectCommand, AddOverflowCommand, AddRecoverCommand,
};

constexpr int kUsageStatus = 2;

// Short options of several letters, which upstream's scripts use and the parser does not know.
std::string LongForm(std::string argument) {
  static constexpr std::pair<std::string_view, std::string_view> kForms[] = {
      {"-tp", "--target_path"}, {"-gp", "--golden_path"}, {"-fm", "--fuzzy_match"}};
  for (const auto& form : kForms) {
    if (argument == form.first) return std::string(form.second);
  }
  return argument;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Records what a model computes, compares two recordings and names the first call "
      "whose numbers went wrong.",
      "plumb");
  app.set_version_flag("--version", "plumb " PLUMBLINE_VERSION);
  app.require_subcommand(1);
  std::string framework;
  app.add_option("-f,--framework", framework,
                 "accepted for upstream's word order; dumps say what they hold")
      ->check(CLI::IsMember({"pytorch", "mindspore"}));
  int exit_status = 0;
  for (const AddCommand add : kCommands) add(app, exit_status);
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) arguments.push_back(LongForm(argv[i]));  // CLI11 wants reverse
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    // The parser reports by exceptions; they end here.
    return app.exit(error) == 0 ? 0 : kUsageStatus;
  }
  return exit_status;
}

}  // namespace

int ReportError(const char* command, const Error& error) {
  std::fprintf(stderr, "plumb %s: %s\n", command, error.message().c_str());
  return ExitStatus(error.code());
}

}  // namespace plumbline::cli

int main(int argc, char** argv) { return plumbline::cli::Main(argc, argv); }
