#include "commands/msaccucmp.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include "terminal.h"

namespace plumbline::cli {
namespace {

using pipeline::DumpCode;

constexpr const char* kHelp =
    "Runs command lines written for upstream's program msaccucmp.\n"
    "\n"
    "  compare           two recordings of operators, or two .npy files\n"
    "  convert           dump files as arrays (plumb convert)\n"
    "  overflow          overflow records of a device (plumb overflow)\n"
    "  file_compare      two .npy files, result in a file\n"
    "  advisor           advice on a result of compare (upstream's mscmp_advisor)\n"
    "  save_log          texts in the workspaces of a dump (upstream's dump_parser)\n"
    "  shape_conversion  one tensor of a dump in another layout\n"
    "  compare_vector    compare by its older command line\n"
    "  dump_data_conversion  arrays as dumps, and dumps as arrays\n"
    "\n"
    "Each verb has --help. Exit status: 0, or upstream's error number.\n";

struct Verb {
  std::string_view name;
  int (*run)(const Words& words, RunPlumb run_plumb);
};

// Verbs that plumb itself has, with the same options.
int RunConvert(const Words& words, RunPlumb run_plumb) {
  Words all = {"convert"};
  all.insert(all.end(), words.begin(), words.end());
  return run_plumb(std::move(all));
}

int RunOverflowRecords(const Words& words, RunPlumb run_plumb) {
  Words all = {"overflow"};
  all.insert(all.end(), words.begin(), words.end());
  return run_plumb(std::move(all));
}

constexpr Verb kVerbs[] = {
    {"compare", RunMsaccucmpCompare},
    {"convert", RunConvert},
    {"overflow", RunOverflowRecords},
    {"file_compare", RunMsaccucmpFileCompare},
    {"advisor", RunMsaccucmpAdvisor},
    {"save_log", RunMsaccucmpSaveLog},
    {"shape_conversion", RunMsaccucmpShape},
    {"compare_vector", RunMsaccucmpVector},
    {"dump_data_conversion", RunMsaccucmpConversion},
};

}  // namespace

std::optional<OptionWords> ParseVerbOptions(const char* verb, std::span<const WordOption> options,
                                            std::span<const char* const> required,
                                            const Words& words, int& status) {
  auto parsed = OptionWords::Parse(options, words);
  if (!parsed) {
    status = ReportMsaccucmp(verb, parsed.error().message(), DumpCode::kNoDumpFile);
    return std::nullopt;
  }
  if (parsed->Has("--help")) {
    Print(OptionHelp(options));
    status = 0;
    return std::nullopt;
  }
  for (const char* name : required) {
    if (parsed->Has(name)) continue;
    status = ReportMsaccucmp(verb, std::string(name) + " is required", DumpCode::kNoDumpFile);
    return std::nullopt;
  }
  // An empty value is the default of those that upstream has "" for, and of nothing else.
  std::vector<std::string_view> whole(required.begin(), required.end());
  whole.insert(whole.end(), {"--output", "--op_name"});
  for (const std::string_view name : whole) {
    if (!parsed->Has(name) || !parsed->Get(name).empty()) continue;
    status = ReportMsaccucmp(verb, std::string(name) + " is empty (expected a value)",
                             DumpCode::kInvalidParameter);
    return std::nullopt;
  }
  const std::string version = parsed->Get("--version", "2");
  if (version == "1" || version == "2") return *std::move(parsed);
  status = ReportMsaccucmp(verb, "--version: expected 1 or 2", DumpCode::kNoDumpFile);
  return std::nullopt;
}

int ReportMsaccucmp(const char* verb, const std::string& message, DumpCode code) {
  PrintError(fmt::format("msaccucmp {}: {}\n", verb, message));
  return static_cast<int>(code);
}

int RunMsaccucmp(const Words& words, RunPlumb run_plumb) {
  if (words.empty() || words[0] == "-h" || words[0] == "--help") {
    Print(kHelp);
    return words.empty() ? static_cast<int>(DumpCode::kInvalidParameter) : 0;
  }
  for (const Verb& verb : kVerbs) {
    if (verb.name != words[0]) continue;
    const auto start = std::chrono::steady_clock::now();
    const int status = verb.run({words.begin() + 1, words.end()}, run_plumb);
    if (status != 0) return status;  // an error is one line
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    PrintError(fmt::format("The command was completed and took {:.1f} seconds.\n", took.count()));
    return status;
  }
  PrintError(fmt::format("msaccucmp: unknown verb \"{}\" (expected one of", words[0]));
  for (const Verb& verb : kVerbs) PrintError(fmt::format(" {}", verb.name));
  PrintError(")\n");
  return static_cast<int>(DumpCode::kNoDumpFile);
}

}  // namespace plumbline::cli
