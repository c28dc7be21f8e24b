// plumb inspect: what this machine can run, and what a recording holds.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <memory>
#include <string>

#include "commands.h"
#include "kernels/cpu_target.h"
#include "load/detect.h"
#include "plumbline/run.h"

namespace plumbline::cli {
namespace {

void Print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Status InspectCpu() {
  PL_TRY_ASSIGN(const kernels::CpuTarget chosen, kernels::ChooseTarget());
  std::string usable;
  for (const kernels::CpuTarget target : kernels::UsableTargets()) {
    if (!usable.empty()) usable += ", ";
    usable += kernels::CpuTargetName(target);
  }
  Print(fmt::format("target: {}\nusable: {}\n", kernels::CpuTargetName(chosen), usable));
  return {};
}

void PrintRun(const Run& run) {
  std::array<uint64_t, 4> kinds{};
  for (const Call& call : run.calls()) ++kinds[static_cast<size_t>(call.kind)];
  const RunHeader& header = run.header();
  std::string text = fmt::format(
      "{}\n  task {}, level {}, framework {}\n  {} entries: {} forward, {} backward, {} parameter "
      "gradients, {} other\n",
      run.dump_json_path(), header.task, header.level, header.framework, run.calls().size(),
      kinds[0], kinds[1], kinds[2], kinds[3]);
  if (run.loss().truncated) {
    text += fmt::format("  truncated at byte {}\n", run.loss().byte_offset);
  }
  Print(text);
}

Status InspectPath(const std::string& path, bool salvage) {
  Result<std::vector<std::string>> all = load::ListDumpJson(path);
  // A file, or a directory without dumps: ResolveDumpJson says what is wrong.
  if (!all || all->empty()) {
    PL_TRY_ASSIGN(const std::string one, load::ResolveDumpJson(path));
    all = std::vector<std::string>{one};
  }
  for (const std::string& file : *all) {
    PL_TRY_ASSIGN(const Run run, Run::Open(file, {.salvage = salvage}));
    PrintRun(run);
  }
  return {};
}

}  // namespace

void AddInspectCommand(CLI::App& app, int& exit_status) {
  struct Arguments {
    std::string what;
    bool salvage = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("inspect", "Show what this machine or a recording holds.");
  command->add_option("what", arguments->what, "`cpu`, a dump.json, or a dump directory")
      ->required();
  command->add_flag("--salvage", arguments->salvage,
                    "read a truncated dump.json as far as it goes");
  command->footer("Examples:\n  plumb inspect cpu\n  plumb inspect runs/new");
  command->callback([arguments, &exit_status] {
    const Status status =
        arguments->what == "cpu" ? InspectCpu() : InspectPath(arguments->what, arguments->salvage);
    exit_status = status ? 0 : ReportError("inspect", status.error());
  });
}

}  // namespace plumbline::cli
