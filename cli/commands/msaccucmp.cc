#include "commands/msaccucmp.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include "commands/msaccucmp_request.h"
#include "help_page.h"
#include "terminal.h"
#include "usage.h"

namespace plumbline::cli {
namespace {

using operators::DumpCode;

constexpr const char* kSummary = "Run a command line written for upstream's program msaccucmp.";

struct Verb {
  std::string_view name, summary, example;
  std::span<const WordOption> (*options)();  // null: those of plumb's command of that name
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
    {"compare", "Compare two recordings of operators, or two .npy files.",
     "msaccucmp compare -m new -g good -f rule.json -out result", CompareOptions,
     RunMsaccucmpCompare},
    {"convert", "Turn dump files into arrays (plumb convert).", "", nullptr, RunConvert},
    {"overflow", "Find overflow records of a device (plumb overflow).", "", nullptr,
     RunOverflowRecords},
    {"file_compare", "Compare two .npy files, with the result in a file.",
     "msaccucmp file_compare -m new.npy -g good.npy -out result", FileCompareOptions,
     RunMsaccucmpFileCompare},
    {"advisor", "Advise on a result of compare (upstream's mscmp_advisor).",
     "msaccucmp advisor -i result/result_20240101000000.csv", AdvisorOptions, RunMsaccucmpAdvisor},
    {"save_log", "Write the texts in the workspaces of a dump (upstream's dump_parser).",
     "msaccucmp save_log -d dump/Add.add.1.1.1 -out logs", SaveLogOptions, RunMsaccucmpSaveLog},
    {"shape_conversion", "Write one tensor of a dump in another layout.",
     "msaccucmp shape_conversion -i dump/Add.add.1.1.1 -format NCHW -o out", ShapeOptions,
     RunMsaccucmpShape},
    {"compare_vector", "Compare by the older command line of compare.",
     "msaccucmp compare_vector -l new -r good -o result.csv -csv", VectorOptions,
     RunMsaccucmpVector},
    {"dump_data_conversion", "Turn arrays into dumps, and dumps into arrays.",
     "msaccucmp dump_data_conversion -target numpy -type tf -i dump -o out", ConversionOptions,
     RunMsaccucmpConversion},
};

const ExitStatuses& Statuses() {
  static const ExitStatuses statuses = {{0, "done"},
                                        {2,
                                         "wrong usage; other numbers are upstream's error numbers "
                                         "(docs/reference/msaccucmp.md)"}};
  return statuses;
}

TreeCommand TreeOfVerb(const Verb& verb) {
  const std::span<const WordOption> options =
      verb.options == nullptr ? std::span<const WordOption>() : verb.options();
  return TreeOf(WordCommand{verb.name, verb.summary, options,
                            FooterWithOwnStatuses("", {std::string(verb.example)}, Statuses())});
}

std::vector<std::string> VerbNames() {
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) names.emplace_back(verb.name);
  return names;
}

}  // namespace

TreeCommand MsaccucmpTree() {
  TreeCommand tree = TreeOf(
      WordCommand{"msaccucmp",
                  kSummary,
                  {},
                  FooterWithOwnStatuses("Each verb has a page of its own (--help).",
                                        {"plumb msaccucmp compare -m new -g good -out result",
                                         "msaccucmp convert -d dump -out arrays"},
                                        Statuses())});
  tree.usage = "VERB [OPTIONS]";
  for (const Verb& verb : kVerbs) tree.commands.push_back(TreeOfVerb(verb));
  return tree;
}

std::optional<OptionWords> ParseVerbOptions(const char* verb, std::span<const WordOption> options,
                                            std::span<const char* const> required,
                                            const Words& words, int& status) {
  auto parsed = OptionWords::Parse(options, words);
  if (!parsed) {
    status = ReportMsaccucmp(verb, parsed.error().message(), DumpCode::kNoDumpFile);
    return std::nullopt;
  }
  if (parsed->Has("--help")) {
    const Verb& page = *std::ranges::find(kVerbs, std::string_view(verb), &Verb::name);
    Print(HelpText(TreeOfVerb(page), fmt::format("msaccucmp {}", verb), TerminalWidth()));
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
  PrintError(fmt::format("msaccucmp {}: {}\n", verb, WithNearestPath(message)));
  return static_cast<int>(code);
}

int RunMsaccucmp(const Words& words, RunPlumb run_plumb) {
  if (words.empty() || words[0] == "-h" || words[0] == "--help") {
    Print(HelpText(MsaccucmpTree(), "msaccucmp", TerminalWidth()));
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
  PrintError(fmt::format("){}\n", MeantHint(words[0], VerbNames())));
  return static_cast<int>(DumpCode::kNoDumpFile);
}

}  // namespace plumbline::cli
