// plumb demo [DIRECTORY]: two recordings of a small model, one with a defect, and their comparison.

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "commands.h"
#include "help_page.h"
#include "python_program.h"
#include "terminal.h"

namespace plumbline::cli {
namespace {

struct DemoArguments {
  std::string directory = "plumbline_demo", python;
};

// Returns only where the demonstration cannot begin.
Error RunDemo(const DemoArguments& arguments) {
  const Result<std::string> self = OwnProgram();
  if (!self) return self.error();
  return BecomePython(arguments.python,
                      {"plumbline.demo",
                       "plumb demo: {0}: {1} (expected a Python with plumbline; name it with "
                       "--python)",
                       2},
                      {"--", arguments.directory, *self});
}

}  // namespace

void AddDemoCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<DemoArguments>();
  CLI::App* command = app.add_subcommand(
      "demo", "Record a small model twice, once with a defect, and find the defect.");
  command
      ->add_option("directory", arguments->directory,
                   "a new directory, for the program, both recordings and the result")
      ->capture_default_str();
  command->add_option("--python", arguments->python, "the interpreter that has PyTorch");
  command->footer(FooterText(
      "Trains a Llama of four blocks with random weights for two steps on the CPU, some seconds "
      "each time; nothing is downloaded. The second run has a wrong epsilon in one norm. The "
      "program that trains is left in the directory as train.py: change it, run it into another "
      "directory, and compare again.\n"
      "The interpreter: --python, PLUMBLINE_PYTHON, or the one beside plumb or of PATH.",
      {"plumb demo", "plumb view plumbline_demo/wrong plumbline_demo/good"},
      {{0, "the defect was found where it is"},
       {1, "it was not"},
       {2, "the demonstration cannot run here (a line says why)"},
       {3, "there is no such interpreter"}}));
  command->callback(
      [arguments, &exit_status] { exit_status = ReportError("demo", RunDemo(*arguments)); });
}

}  // namespace plumbline::cli
