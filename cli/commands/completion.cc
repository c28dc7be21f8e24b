// plumb completion SHELL: a script for the shell; plumb man-pages DIR: manual pages. Both are made
// from the commands themselves.

#include "completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "command_tree.h"
#include "commands.h"
#include "commands/msaccucmp.h"
#include "commands/msprobe.h"
#include "commands/parse.h"
#include "help_page.h"
#include "man_page.h"
#include "terminal.h"

namespace plumbline::cli {
namespace {

// With the commands whose words the parser does not know.
TreeCommand ProgramTree(const CLI::App& program) {
  TreeCommand tree = TreeOf(program);
  TreeCommand msaccucmp = MsaccucmpTree();
  for (TreeCommand& verb : msaccucmp.commands) {
    const auto same = std::ranges::find(tree.commands, verb.name, &TreeCommand::name);
    if (verb.options.empty() && same != tree.commands.end()) verb = *same;
  }
  for (TreeCommand& command : tree.commands) {
    if (command.name == "parse") command = ParseTree();
    if (command.name == "msprobe") command = MsprobeTree();
    if (command.name == "msaccucmp") command = msaccucmp;
  }
  return tree;
}

void PrintCompletion(const std::string& shell, const TreeCommand& tree) {
  Print(shell == "bash"  ? BashCompletion(tree)
        : shell == "zsh" ? ZshCompletion(tree)
                         : FishCompletion(tree));
}

// For the build, which installs them.
void AddManPagesCommand(CLI::App& app, int& exit_status) {
  const auto directory = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("man-pages", "Write the manual pages of all commands.");
  command->group("");
  command->add_option("dir", *directory, "where they go")->required();
  command->callback([&app, directory, &exit_status] {
    const Status status = WriteManPages(ProgramTree(app), *directory);
    exit_status = status ? 0 : ReportError("man-pages", status.error());
  });
}

}  // namespace

void AddCompletionCommand(CLI::App& app, int& exit_status) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "completion", "Print the script that completes command lines of plumb in a shell.");
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      FooterText("An installed plumbline brings these scripts along, for shells that look into its "
                 "share directory.",
                 {"source <(plumb completion bash)", "plumb completion zsh > ~/.zfunc/_plumb",
                  "plumb completion fish > ~/.config/fish/completions/plumb.fish"}));
  command->callback([&app, shell, &exit_status] {
    PrintCompletion(*shell, ProgramTree(app));
    exit_status = 0;
  });
  AddManPagesCommand(app, exit_status);
}

}  // namespace plumbline::cli
