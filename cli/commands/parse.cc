// plumb parse: dump files of devices and arrays, one by one or in a shell.

#include "commands/parse.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>

#include "arrays/compare_npy_trees.h"
#include "arrays/element_report.h"
#include "base/process/log.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "commands.h"
#include "commands/msaccucmp.h"
#include "commands/option_words.h"
#include "help_page.h"
#include "inspect/call_text.h"
#include "operators/convert_dumps.h"
#include "report/result_names.h"
#include "terminal.h"
#include "usage.h"

namespace plumbline::cli {
namespace {

constexpr const char* kCommand = "parse";
constexpr const char* kSummary = "Convert, print and compare dump files in a shell, or one by one.";

constexpr WordOption kHelp = {"-h", "--help", TakesWords::kNone, "this text"};
constexpr WordOption kParseOutput = {"-out", "--output_path", TakesWords::kOne,
                                     "directory of the result"};
constexpr WordOption kScript = {"-cmp_path", "--msaccucmp_path", TakesWords::kOne,
                                "ignored: nothing of the device's own tools is needed"};

constexpr WordOption kPtOptions[] = {{"-n", "--name", TakesWords::kOne, "the .npy file"}, kHelp};
constexpr WordOption kCnOptions[] = {
    {"-m", "--my_dump_path", TakesWords::kOne, "the .npy file under test"},
    {"-g", "--golden_dump_path", TakesWords::kOne, "the reference"},
    {"-p", "--print", TakesWords::kOne, "rows of each table (default: 20)"},
    {"-al", "--atol", TakesWords::kOne, "absolute tolerance (default: 0.001)"},
    {"-rl", "--rtol", TakesWords::kOne, "relative tolerance (default: 0.001)"},
    {"-s", "--save", TakesWords::kNone, "write both as text beside them"},
    kHelp};
constexpr WordOption kVcOptions[] = {
    {"-m", "--my_dump_path", TakesWords::kOne, "directory under test"},
    {"-g", "--golden_dump_path", TakesWords::kOne, "the reference"},
    kParseOutput,
    kScript,
    kHelp};
constexpr WordOption kDcOptions[] = {
    {"-n", "--name", TakesWords::kOne, "a dump file or a directory"},
    {"-f", "--format", TakesWords::kOne, "layout to convert to, such as NCHW"},
    kParseOutput,
    kScript,
    kHelp};
constexpr WordOption kCadOptions[] = {
    {"-m", "--my_dump_path", TakesWords::kOne, "directory of a device"},
    kParseOutput,
    {"-asc", "--msaccucmp_path", TakesWords::kOne, "ignored, as -cmp_path of the others"},
    kHelp};

constexpr WordOption kPkOptions[] = {
    {"-f", "--file", TakesWords::kOne, "a dump.json, or the .pkl of an older release"},
    {"-n", "--name", TakesWords::kOne, "how the names of the calls start"},
    kHelp};

// Without a verb.
constexpr WordOption kFileOptions[] = {
    {"-d", "--dump_path", TakesWords::kOne, "a dump file, or a directory of them"},
    {"-t", "--type", TakesWords::kOne, "npy or pt (default: pt)"},
    {"-o", "--output_path", TakesWords::kOne, "directory of the result (default: ./output)"},
    kHelp};

int Fail(std::string_view verb, const Error& error) {
  return ReportError(fmt::format("{} {}", kCommand, verb).c_str(), error);
}

TreeCommand TreeOfVerb(const ParseVerb& verb) {
  return TreeOf(
      WordCommand{verb.name, verb.help, verb.options, FooterText("", {std::string(verb.example)})});
}

std::string VerbHelp(std::string_view name) {
  const ParseVerb& verb = *std::ranges::find(ParseVerbs(), name, &ParseVerb::name);
  return HelpText(TreeOfVerb(verb), fmt::format("plumb parse {}", name), TerminalWidth());
}

// The options, or nothing after `status` was set: a help text, or what is wrong with them.
std::optional<OptionWords> Options(std::string_view verb, std::span<const WordOption> options,
                                   const std::vector<std::string>& words, int& status) {
  // What the program makes of -out before it knows the verb.
  std::vector<std::string> known = words;
  std::ranges::replace(known, std::string("--output"), std::string("--output_path"));
  Result<OptionWords> parsed = OptionWords::Parse(options, known);
  if (!parsed) {
    status = Fail(verb, parsed.error());
    return std::nullopt;
  }
  if (parsed->Has("--help")) {
    Print(verb.empty() ? ParseHelp() : VerbHelp(verb));
    status = 0;
    return std::nullopt;
  }
  for (const char* name :
       {"--file", "--name", "--dump_path", "--my_dump_path", "--golden_dump_path"}) {
    const auto option = std::ranges::find(options, name, &WordOption::long_name);
    if (option == options.end() || parsed->Has(name)) continue;
    status = Fail(verb, Error(ErrorCode::kInvalidArgument,
                              fmt::format("{} ({}) is required", option->short_name, name)));
    return std::nullopt;
  }
  if (parsed->Has("--msaccucmp_path")) {
    PrintError("plumb parse: the path of msaccucmp is not needed and was ignored\n");
  }
  return *std::move(parsed);
}

int RunPt(const std::vector<std::string>& words) {
  int status = 0;
  const auto options = Options("pt", kPtOptions, words, status);
  if (!options) return status;
  const Result<std::string> text = PrintArray(options->Get("--name"));
  if (!text) return Fail("pt", text.error());
  Print(*text);
  return 0;
}

int RunPk(const std::vector<std::string>& words) {
  int status = 0;
  const auto options = Options("pk", kPkOptions, words, status);
  if (!options) return status;
  const Result<std::string> text =
      inspect::CallText(options->Get("--file"), options->Get("--name"));
  if (!text) return Fail("pk", text.error());
  Print(*text);
  return 0;
}

Result<double> Tolerance(const OptionWords& options, const char* name, double otherwise) {
  if (!options.Has(name)) return otherwise;
  const std::optional<double> value = ParseReal(options.Get(name));
  if (value && *value > 0) return *value;
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: is no positive number (got \"{}\")", name, options.Get(name)));
}

Result<ElementReport> CompareNpy(const OptionWords& options) {
  ElementReportOptions wanted;
  PL_TRY_ASSIGN(wanted.absolute, Tolerance(options, "--atol", wanted.absolute));
  PL_TRY_ASSIGN(wanted.relative, Tolerance(options, "--rtol", wanted.relative));
  PL_TRY_ASSIGN(const double rows, Tolerance(options, "--print", 20));
  wanted.most_rows = static_cast<size_t>(std::min(rows, 1e9));
  wanted.writes_text = options.Has("--save");
  return CompareElements(options.Get("--my_dump_path"), options.Get("--golden_dump_path"), wanted);
}

int RunCn(const std::vector<std::string>& words) {
  int status = 0;
  const auto options = Options("cn", kCnOptions, words, status);
  if (!options) return status;
  const Result<ElementReport> report = CompareNpy(*options);
  if (!report) return Fail("cn", report.error());
  Print(report->text);
  return 0;
}

int RunVc(const std::vector<std::string>& words) {
  int status = 0;
  const auto options = Options("vc", kVcOptions, words, status);
  if (!options) return status;
  const std::string mine = options->Get("--my_dump_path");
  const std::string golden = options->Get("--golden_dump_path");
  if (!IsNpyTree(mine) || !IsNpyTree(golden)) {
    return RunMsaccucmpCompare({"-m", mine, "-g", golden, "-out",
                                options->Get("--output_path", "parse_data/compare_result")},
                               nullptr);
  }
  const Result<NpyTreeReport> report = CompareNpyTrees(
      mine, golden, options->Get("--output_path", "parse_data/batch_compare_result"));
  if (!report) return Fail("vc", report.error());
  Print(fmt::format("{}: {} rows, {} differ or could not be compared\n", report->path, report->rows,
                    report->differing));
  return 0;
}

// Converts, and says what failed and what is odd; nothing after `status` was set to the error's.
std::optional<operators::ConvertReport> Converted(std::string_view verb,
                                                  const operators::ConvertRequest& request,
                                                  int& status) {
  auto report = operators::ConvertDumps(request);
  if (!report) {
    status = Fail(verb, Error(operators::ErrorCodeOf(report.error().code), report.error().text));
    return std::nullopt;
  }
  const auto say = [&](const std::string& line) {
    PrintError(fmt::format("plumb parse {}: {}\n", verb, OneLine(line)));
  };
  for (const std::string& note : report->notes) say(note);
  for (const std::string& line : report->lines) say(line);
  if (report->left_out > 0) {
    say(CountText(report->left_out, "file") + " left out: no names of dumps");
  }
  if (report->failed > 0) {
    say(CountText(report->failed, "file") + " failed: " + report->failure_list);
  }
  status = report->code ? ExitStatus(operators::ErrorCodeOf(*report->code)) : 0;
  return *std::move(report);
}

// The same, and lists the outputs.
int ConvertAndList(std::string_view verb, const operators::ConvertRequest& request) {
  int status = 0;
  const auto report = Converted(verb, request, status);
  if (!report) return status;
  Print(fmt::format("{}\n", request.dump_path));
  for (const std::string& output : report->outputs) Print(fmt::format("  {}\n", output));
  return status;
}

int RunDc(const std::vector<std::string>& words) {
  int status = 0;
  const auto options = Options("dc", kDcOptions, words, status);
  if (!options) return status;
  operators::ConvertRequest request;
  request.dump_path = options->Get("--name");
  request.output_directory = options->Get("--output_path", "parse_data/dump_convert");
  request.format = options->Get("--format");
  return ConvertAndList("dc", request);
}

int RunCad(const std::vector<std::string>& words) {
  int status = 0;
  const auto options = Options("cad", kCadOptions, words, status);
  if (!options) return status;
  operators::ConvertRequest request;
  request.dump_path = options->Get("--my_dump_path");
  request.output_directory = options->Has("--output_path")
                                 ? options->Get("--output_path")
                                 : report::FreeDirectory("parse_data/batch_dump_convert");
  request.by_operator = true;
  const auto report = Converted("cad", request, status);
  if (!report) return status;
  Print(fmt::format("{}: {} dump files converted, {} failed\n", request.output_directory,
                    report->files - report->failed, report->failed));
  return status;
}

// Files directly in a directory, or the file itself, by what each of them is.
int RunFiles(const std::vector<std::string>& words) {
  int status = 0;
  const auto options = Options("", kFileOptions, words, status);
  if (!options) return status;
  const std::string type = options->Get("--type", "pt");
  if (type != "pt" && type != "npy") {
    return Fail("-t", Error(ErrorCode::kInvalidArgument, type + ": expected npy or pt"));
  }
  operators::ConvertRequest request;
  request.dump_path = options->Get("--dump_path");
  request.output_directory = options->Get("--output_path", "./output");
  request.kind = type == "pt" ? operators::OutputKind::kPt : operators::OutputKind::kNpy;
  request.takes_atb = true;
  return ConvertAndList("-d", request);
}

constexpr ParseVerb kVerbs[] = {
    {"cad", "Convert all dump files of a device, a directory for each operator.", kCadOptions,
     "plumb parse cad -m dump/20240101000000/0 -out arrays", RunCad},
    {"cn", "Compare two .npy files element by element.", kCnOptions,
     "plumb parse cn -m new.npy -g good.npy -al 0.01", RunCn},
    {"dc", "Convert a dump file, or those of a directory.", kDcOptions,
     "plumb parse dc -n dump/20240101000000/0 -f NCHW -out arrays", RunDc},
    {"pk", "Print statistics and call stacks of some calls.", kPkOptions,
     "plumb parse pk -f runs/new/step0/rank0/dump.json -n Functional.conv2d", RunPk},
    {"pt", "Print a .npy file.", kPtOptions, "plumb parse pt -n new.npy", RunPt},
    {"vc", "Compare two directories of arrays or of dump files.", kVcOptions,
     "plumb parse vc -m new -g good -out result", RunVc},
};

std::vector<std::string> VerbNames() {
  std::vector<std::string> names;
  for (const ParseVerb& verb : kVerbs) names.emplace_back(verb.name);
  return names;
}

int RunParse(std::vector<std::string> words) {
  if (words.empty()) return RunParseShell();
  const auto verb = std::ranges::find(kVerbs, words[0], &ParseVerb::name);
  if (verb != std::end(kVerbs)) {
    words.erase(words.begin());
    return verb->run(words);
  }
  if (words[0] == "-h" || words[0] == "--help") {
    Print(ParseHelp());
    return 0;
  }
  if (words[0].starts_with('-')) return RunFiles(words);
  return ReportError(kCommand, Error(ErrorCode::kInvalidArgument,
                                     fmt::format("{}: is no verb (see plumb parse --help).{}",
                                                 words[0], MeantHint(words[0], VerbNames()))));
}

}  // namespace

std::span<const ParseVerb> ParseVerbs() { return kVerbs; }

TreeCommand ParseTree() {
  TreeCommand tree = TreeOf(WordCommand{
      kCommand, kSummary, kFileOptions,
      FooterText(
          "Without words: a shell that takes a verb with its options a line. Other lines run "
          "a program (also \"run ...\"); exit, quit or the end of the input end it. With -d: "
          "tensor files of ATB and dump files as arrays.",
          {"plumb parse", "plumb parse cn -m new.npy -g good.npy",
           "plumb parse -d dump/20240101000000/0 -t npy -o arrays"})});
  tree.usage = "[OPTIONS] [VERB [OPTIONS]]";
  for (const ParseVerb& verb : kVerbs) tree.commands.push_back(TreeOfVerb(verb));
  return tree;
}

std::string ParseHelp() { return HelpText(ParseTree(), "plumb parse", TerminalWidth()); }

void AddParseCommand(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(kCommand, kSummary);
  command->prefix_command();
  command->set_help_flag();  // verbs have their own
  command->callback([command, &exit_status] { exit_status = RunParse(command->remaining()); });
}

}  // namespace plumbline::cli
