// The sub-commands of `plumb`. Each has one file in commands/ and one line in main.cc's table.

#ifndef PLUMBLINE_CLI_COMMANDS_H_
#define PLUMBLINE_CLI_COMMANDS_H_

#include <CLI/App.hpp>

#include "plumbline/result.h"

namespace plumbline::cli {

// Registers a sub-command. When it was chosen, its callback sets `exit_status`. Both outlive
// parsing.
using AddCommand = void (*)(CLI::App& app, int& exit_status);

// Exit status of an answer or a conversion to which something that could not be read is missing.
inline constexpr int kNotAllRead = 4;

void AddAnomalyAnalyseCommand(CLI::App& app, int& exit_status);
void AddApiPrecisionCompareCommand(CLI::App& app, int& exit_status);
void AddCheckCommand(CLI::App& app, int& exit_status);
void AddCodeMappingCommand(CLI::App& app, int& exit_status);
void AddCompareCommand(CLI::App& app, int& exit_status);
void AddCompletionCommand(CLI::App& app, int& exit_status);
void AddConfigCheckCommand(CLI::App& app, int& exit_status);
void AddConvertCommand(CLI::App& app, int& exit_status);
void AddCsv2tensorboardCommand(CLI::App& app, int& exit_status);
void AddData2dbCommand(CLI::App& app, int& exit_status);
void AddDemoCommand(CLI::App& app, int& exit_status);
void AddDumpConfigCommand(CLI::App& app, int& exit_status);
void AddExportCommand(CLI::App& app, int& exit_status);
void AddExtractCommand(CLI::App& app, int& exit_status);
void AddFreeBenchmarkCommand(CLI::App& app, int& exit_status);
void AddGradCompareCommand(CLI::App& app, int& exit_status);
void AddGradUnpackCommand(CLI::App& app, int& exit_status);
void AddGraphCommand(CLI::App& app, int& exit_status);
void AddH5copyCommand(CLI::App& app, int& exit_status);
void AddInspectCommand(CLI::App& app, int& exit_status);
void AddLayoutCommand(CLI::App& app, int& exit_status);
void AddMergeCommand(CLI::App& app, int& exit_status);
void AddOpGenerateCommand(CLI::App& app, int& exit_status);
void AddOverflowCommand(CLI::App& app, int& exit_status);
void AddParseCommand(CLI::App& app, int& exit_status);
void AddPrecheckCommand(CLI::App& app, int& exit_status);
void AddRecoverCommand(CLI::App& app, int& exit_status);
void AddRunOverflowCheckCommand(CLI::App& app, int& exit_status);
void AddExplainCommand(CLI::App& app, int& exit_status);
void AddTrendCommand(CLI::App& app, int& exit_status);
void AddViewCommand(CLI::App& app, int& exit_status);
void AddWatchCommand(CLI::App& app, int& exit_status);

// Exit status of a comparison that met a condition of --fail-on.
inline constexpr int kDifferencesFound = 1;

// Prints "plumb <command>: <message>" on stderr, with the path that was meant where one is missing,
// and returns the exit status of the error.
int ReportError(const char* command, const Error& error);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_H_
