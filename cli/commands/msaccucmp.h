// Command lines written for upstream's program msaccucmp (docs/reference/msaccucmp.md).

#ifndef PLUMBLINE_CLI_COMMANDS_MSACCUCMP_H_
#define PLUMBLINE_CLI_COMMANDS_MSACCUCMP_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "command_tree.h"
#include "commands/option_words.h"
#include "operators/msaccucmp_code.h"

namespace plumbline::cli {

using Words = std::vector<std::string>;
// Runs a command line of plumb itself, command first.
using RunPlumb = int (*)(Words words);

// Runs the words behind the program's name, verb first; the exit status, by upstream's numbers.
int RunMsaccucmp(const Words& words, RunPlumb run_plumb);

// The verb `compare`, and `file_compare` for two arrays.
int RunMsaccucmpCompare(const Words& words, RunPlumb run_plumb);
int RunMsaccucmpFileCompare(const Words& words, RunPlumb run_plumb);
// Upstream's script mscmp_advisor: advice on a result of compare.
int RunMsaccucmpAdvisor(const Words& words, RunPlumb run_plumb);
// Upstream's `dump_parser save_log`: texts in the workspaces of a dump.
int RunMsaccucmpSaveLog(const Words& words, RunPlumb run_plumb);
// Upstream's `shape_conversion`: one tensor in another layout.
int RunMsaccucmpShape(const Words& words, RunPlumb run_plumb);

// Upstream's script `compare_vector`: compare by its older command line.
int RunMsaccucmpVector(const Words& words, RunPlumb run_plumb);
// Upstream's script `dump_data_conversion`: arrays as dumps, and back.
int RunMsaccucmpConversion(const Words& words, RunPlumb run_plumb);

// Prints and writes the advice on a result; the exit status.
int ReportAdvice(const std::string& csv_path, const std::vector<std::string>& input_nodes,
                 const std::string& output);

// The options of the verbs.
std::span<const WordOption> FileCompareOptions();
std::span<const WordOption> AdvisorOptions();
std::span<const WordOption> SaveLogOptions();
std::span<const WordOption> ShapeOptions();
std::span<const WordOption> VectorOptions();
std::span<const WordOption> ConversionOptions();

// The command with its verbs; those that plumb has under the same name are without options.
TreeCommand MsaccucmpTree();

// The options of a verb, or nothing after `status` was set: the help text was printed, or what is
// wrong with them.
std::optional<OptionWords> ParseVerbOptions(const char* verb, std::span<const WordOption> options,
                                            std::span<const char* const> required,
                                            const Words& words, int& status);

// Prints "msaccucmp <verb>: <message>" on stderr and returns `code` as an exit status.
int ReportMsaccucmp(const char* verb, const std::string& message, operators::DumpCode code);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_MSACCUCMP_H_
