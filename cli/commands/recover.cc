// plumb recover DIR: final files from the journals of killed processes.

#include "store/recover.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/process/log.h"
#include "commands.h"
#include "help_page.h"
#include "terminal.h"

namespace plumbline::cli {
namespace {

void SayLine(const std::string& line) { Print(line + "\n"); }

void PrintRecovery(const Recovery& recovery) {
  const std::string directory = OneLine(recovery.directory);
  for (const std::string& name : recovery.stale_journals) {
    SayLine(fmt::format("{}: {} belongs to an earlier run in the same directory; left alone",
                        directory, OneLine(name)));
  }
  if (recovery.in_use) {
    SayLine(fmt::format("{}: a process is recording into it; nothing done", directory));
    return;
  }
  if (recovery.already_final) {
    SayLine(fmt::format("{}: the files were complete; journal removed", directory));
    return;
  }
  if (recovery.files_are_newer) {
    SayLine(
        fmt::format("{}: the files hold more than the journal, which could not be written; kept "
                    "as they are, journal removed",
                    directory));
    return;
  }
  SayLine(fmt::format("{}: {} calls recovered, {} bytes dropped, {} tensors missing", directory,
                      recovery.calls, recovery.bytes_dropped, recovery.tensors_missing));
  if (recovery.journal_damaged) {
    SayLine(fmt::format("{}: the journal was damaged, not only cut; kept as .dump.journal.damaged",
                        directory));
  }
  if (recovery.entries_damaged > 0) {
    SayLine(
        fmt::format("{}: {} records held no readable entry", directory, recovery.entries_damaged));
  }
  const Loss* const cut = CutOf(recovery);
  if (cut != nullptr) {
    SayLine(
        fmt::format("{}: the journal was not cut by a kill: {} later {} could not be written, "
                    "and {} lost ({})",
                    directory, cut->count, cut->count == 1 ? "record" : "records",
                    cut->count == 1 ? "is" : "are", OneLine(cut->sentence)));
  }
  for (const Loss& loss : recovery.losses) {
    if (&loss == cut) continue;
    SayLine(fmt::format("{}: lost while recording: {} {} ({})", directory, loss.count,
                        OneLine(loss.counter), OneLine(loss.sentence)));
  }
}

int RunRecover(const std::string& path) {
  const auto report = RecoverAll(path);
  if (!report) return ReportError("recover", report.error());
  for (const Recovery& recovery : report->directories) PrintRecovery(recovery);
  if (report->directories.empty() && report->failures.empty()) {
    SayLine(fmt::format("{}: nothing to recover, no journal found", OneLine(path)));
  }
  int status = 0;
  for (const Error& failure : report->failures) {
    const int failed = ReportError("recover", failure);
    if (status == 0) status = failed;
  }
  return status;
}

}  // namespace

void AddRecoverCommand(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "recover",
      "Write dump.json, stack.json and construct.json from the journals of killed runs.");
  const auto path = std::make_shared<std::string>();
  command->add_option("dir", *path, "rank directory, step directory or dump_path")->required();
  command->footer(FooterText("", {"plumb recover runs/new", "plumb recover runs/new/step0/rank0"}));
  command->callback([path, &exit_status] {
    SetLogStream(LogStream::kStderr);
    exit_status = RunRecover(*path);
  });
}

}  // namespace plumbline::cli
