// plumb recover DIR: final files from the journals of killed processes.

#include "store/recover.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/log.h"
#include "commands.h"

namespace plumbline::cli {
namespace {

void Print(std::string_view line) { std::fprintf(stdout, "%s\n", std::string(line).c_str()); }

void PrintRecovery(const Recovery& recovery) {
  const std::string directory = OneLine(recovery.directory);
  for (const std::string& name : recovery.stale_journals) {
    Print(fmt::format("{}: {} belongs to an earlier run in the same directory; left alone",
                      directory, OneLine(name)));
  }
  if (recovery.in_use) {
    Print(fmt::format("{}: a process is recording into it; nothing done", directory));
    return;
  }
  if (recovery.already_final) {
    Print(fmt::format("{}: the files were complete; journal removed", directory));
    return;
  }
  if (recovery.files_are_newer) {
    Print(
        fmt::format("{}: the files hold more than the journal, which could not be written; kept "
                    "as they are, journal removed",
                    directory));
    return;
  }
  Print(fmt::format("{}: {} calls recovered, {} bytes dropped, {} tensors missing", directory,
                    recovery.calls, recovery.bytes_dropped, recovery.tensors_missing));
  if (recovery.journal_damaged) {
    Print(fmt::format("{}: the journal was damaged, not only cut; kept as .dump.journal.damaged",
                      directory));
  }
  if (recovery.entries_damaged > 0) {
    Print(
        fmt::format("{}: {} records held no readable entry", directory, recovery.entries_damaged));
  }
  const Loss* const cut = CutOf(recovery);
  if (cut != nullptr) {
    Print(
        fmt::format("{}: the journal was not cut by a kill: {} later {} could not be written, "
                    "and {} lost ({})",
                    directory, cut->count, cut->count == 1 ? "record" : "records",
                    cut->count == 1 ? "is" : "are", OneLine(cut->sentence)));
  }
  for (const Loss& loss : recovery.losses) {
    if (&loss == cut) continue;
    Print(fmt::format("{}: lost while recording: {} {} ({})", directory, loss.count,
                      OneLine(loss.counter), OneLine(loss.sentence)));
  }
}

int RunRecover(const std::string& path) {
  const auto report = RecoverAll(path);
  if (!report) return ReportError("recover", report.error());
  for (const Recovery& recovery : report->directories) PrintRecovery(recovery);
  if (report->directories.empty() && report->failures.empty()) {
    Print(fmt::format("{}: nothing to recover, no journal found", OneLine(path)));
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
      "recover", "Write dump.json, stack.json and construct.json from the journals of killed runs");
  const auto path = std::make_shared<std::string>();
  command->add_option("dir", *path, "rank directory, step directory or dump_path")->required();
  command->callback([path, &exit_status] {
    SetLogStream(LogStream::kStderr);
    exit_status = RunRecover(*path);
  });
}

}  // namespace plumbline::cli
