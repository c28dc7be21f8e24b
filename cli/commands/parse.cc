// plumb parse: dump files of devices and arrays, one by one or in a shell.

#include "commands/parse.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/parallel.h"
#include "base/text_parts.h"
#include "commands.h"
#include "commands/msaccucmp.h"
#include "commands/option_words.h"
#include "formats/acl_file_name.h"
#include "formats/atb_bin.h"
#include "pipeline/arrays/compare_npy_trees.h"
#include "pipeline/arrays/element_report.h"
#include "pipeline/arrays/print_array.h"
#include "pipeline/device_dump/convert_dumps.h"
#include "pipeline/device_dump/convert_file.h"
#include "pipeline/device_dump/output_names.h"
#include "pipeline/tensor_convert.h"

namespace plumbline::cli {
namespace {

constexpr const char* kCommand = "parse";
constexpr int kMostLevels = 5;

constexpr WordOption kHelp = {"-h", "--help", TakesWords::kNone, "this text"};
constexpr WordOption kOutput = {"-out", "--output_path", TakesWords::kOne,
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
    kOutput,
    kScript,
    kHelp};
constexpr WordOption kDcOptions[] = {
    {"-n", "--name", TakesWords::kOne, "a dump file or a directory"},
    {"-f", "--format", TakesWords::kOne, "layout to convert to, such as NCHW"},
    kOutput,
    kScript,
    kHelp};
constexpr WordOption kCadOptions[] = {
    {"-m", "--my_dump_path", TakesWords::kOne, "directory of a device"},
    kOutput,
    {"-asc", "--msaccucmp_path", TakesWords::kOne, "ignored, as -cmp_path of the others"},
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
    std::fputs(OptionHelp(options).c_str(), stdout);
    status = 0;
    return std::nullopt;
  }
  for (const char* name : {"--name", "--dump_path", "--my_dump_path", "--golden_dump_path"}) {
    const auto option = std::ranges::find(options, name, &WordOption::long_name);
    if (option == options.end() || parsed->Has(name)) continue;
    status = Fail(verb, Error(ErrorCode::kInvalidArgument,
                              fmt::format("{} ({}) is required", option->short_name, name)));
    return std::nullopt;
  }
  if (parsed->Has("--msaccucmp_path")) {
    std::fprintf(stderr, "plumb parse: the path of msaccucmp is not needed and was ignored\n");
  }
  return *std::move(parsed);
}

std::string OutputOf(const OptionWords& options, const char* otherwise) {
  return options.Has("--output_path") ? options.Get("--output_path") : otherwise;
}

int RunPt(const std::vector<std::string>& words) {
  int status = 0;
  const auto options = Options("pt", kPtOptions, words, status);
  if (!options) return status;
  const Result<std::string> text = PrintArray(options->Get("--name"));
  if (!text) return Fail("pt", text.error());
  std::fputs(text->c_str(), stdout);
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
  std::fputs(report->text.c_str(), stdout);
  return 0;
}

int RunVc(const std::vector<std::string>& words) {
  int status = 0;
  const auto options = Options("vc", kVcOptions, words, status);
  if (!options) return status;
  const std::string mine = options->Get("--my_dump_path");
  const std::string golden = options->Get("--golden_dump_path");
  if (!IsNpyTree(mine) || !IsNpyTree(golden)) {
    return RunMsaccucmpCompare(
        {"-m", mine, "-g", golden, "-out", OutputOf(*options, "parse_data/compare_result")},
        nullptr);
  }
  const Result<NpyTreeReport> report =
      CompareNpyTrees(mine, golden, OutputOf(*options, "parse_data/batch_compare_result"));
  if (!report) return Fail("vc", report.error());
  std::printf("%s: %llu rows, %llu differ or could not be compared\n", report->path.c_str(),
              static_cast<unsigned long long>(report->rows),
              static_cast<unsigned long long>(report->differing));
  return 0;
}

// Converts and lists what was not there before.
int Convert(std::string_view verb, const pipeline::ConvertRequest& request) {
  const auto list = [&] {
    const auto names = ListDirectory(request.output_directory);
    return names ? std::set<std::string>(names->begin(), names->end()) : std::set<std::string>();
  };
  const std::set<std::string> before = list();
  const auto report = pipeline::ConvertDumps(request);
  if (!report) return Fail(verb, Error(ErrorCode::kInvalidArgument, report.error().text));
  for (const std::string& line : report->lines) std::fprintf(stderr, "%s\n", line.c_str());
  std::printf("%s\n", request.dump_path.c_str());
  for (const std::string& name : list()) {
    if (!before.contains(name)) {
      std::printf("  %s\n", JoinPath(request.output_directory, name).c_str());
    }
  }
  return report->failed == 0 ? 0 : ExitStatus(ErrorCode::kCorrupt);
}

int RunDc(const std::vector<std::string>& words) {
  int status = 0;
  const auto options = Options("dc", kDcOptions, words, status);
  if (!options) return status;
  pipeline::ConvertRequest request;
  request.dump_path = options->Get("--name");
  request.output_directory = OutputOf(*options, "parse_data/dump_convert");
  request.format = options->Get("--format");
  return Convert("dc", request);
}

void FindDumps(const std::string& directory, int level, std::vector<std::string>& found) {
  if (level > kMostLevels) return;
  for (const std::string& name : ListDirectory(directory).value_or(std::vector<std::string>())) {
    const std::string path = JoinPath(directory, name);
    if (KindOf(path) == PathKind::kDirectory) {
      FindDumps(path, level + 1, found);
    } else if (acl::ParseDumpFileName(name)) {
      found.push_back(path);
    }
  }
}

// One file to {output}/{op_name}/{timestamp}/; the first problem, or nothing.
std::optional<std::string> ConvertOne(const std::string& path, const std::string& output) {
  const std::string name(BaseName(path));
  const auto parts = acl::ParseDumpFileName(name);
  const std::string place = JoinPath(JoinPath(output, parts->op_name), parts->timestamp);
  const Status made = MakeDirectories(place);
  if (!made) return made.error().message();
  auto directory = pipeline::OutputDirectory::Open(place);
  if (!directory) return directory.error().text;
  const pipeline::FileConversion done = pipeline::ConvertFile(path, name, {}, *directory);
  if (done.failures.empty()) return std::nullopt;
  return fmt::format("{}: {}", path, done.failures.front().failure.text);
}

std::string TimeStamp() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[16];
  return std::string(text, std::strftime(text, sizeof(text), "%Y%m%d%H%M%S", &local));
}

int RunCad(const std::vector<std::string>& words) {
  int status = 0;
  const auto options = Options("cad", kCadOptions, words, status);
  if (!options) return status;
  std::vector<std::string> files;
  FindDumps(options->Get("--my_dump_path"), 1, files);
  if (files.empty()) {
    return Fail("cad", Error(ErrorCode::kNotFound,
                             options->Get("--my_dump_path") + ": holds no dump file"));
  }
  const std::string output =
      OutputOf(*options, ("parse_data/batch_dump_convert/" + TimeStamp()).c_str());
  std::vector<std::optional<std::string>> problems(files.size());
  ParallelFor(files.size(), [&](size_t i) { problems[i] = ConvertOne(files[i], output); });
  size_t failed = 0;
  for (const std::optional<std::string>& problem : problems) {
    if (!problem) continue;
    ++failed;
    std::fprintf(stderr, "%s\n", problem->c_str());
  }
  std::printf("%s: %zu dump files converted, %zu failed\n", output.c_str(), files.size() - failed,
              failed);
  return failed == 0 ? 0 : ExitStatus(ErrorCode::kCorrupt);
}

// A tensor file of ATB keeps its whole name: several may differ in their ends alone.
Status ConvertAtb(const std::string& path, const std::string& output, bool is_pt) {
  PL_TRY_ASSIGN(const atb::BinFile file, atb::BinFile::Open(path));
  PL_TRY(MakeDirectories(output));
  const std::string to =
      JoinPath(output, fmt::format("{}.{}", BaseName(path), is_pt ? "pt" : "npy"));
  PL_TRY(is_pt ? WritePt(file.view(), to) : WriteNpy(file.view(), to));
  std::printf("%s\n", to.c_str());
  return {};
}

// Files directly in a directory, or the file itself, by what each of them is.
int RunFiles(const std::vector<std::string>& words) {
  int status = 0;
  const auto options = Options("", kFileOptions, words, status);
  if (!options) return status;
  const std::string path = options->Get("--dump_path");
  const std::string type = options->Has("--type") ? options->Get("--type") : "pt";
  if (type != "pt" && type != "npy") {
    return Fail("-t", Error(ErrorCode::kInvalidArgument, type + ": expected npy or pt"));
  }
  const std::string output = OutputOf(*options, "./output");
  std::vector<std::string> files;
  if (KindOf(path) == PathKind::kDirectory) {
    for (const std::string& name : ListDirectory(path).value_or(std::vector<std::string>())) {
      const std::string file = JoinPath(path, name);
      if (KindOf(file) == PathKind::kFile) files.push_back(file);
    }
  } else if (KindOf(path) == PathKind::kFile) {
    files.push_back(path);
  }
  if (files.empty()) {
    return Fail("-d", Error(ErrorCode::kNotFound, path + ": is no file or directory of files"));
  }
  pipeline::ConvertRequest request;
  request.output_directory = output;
  request.kind = type == "pt" ? pipeline::OutputKind::kPt : pipeline::OutputKind::kNpy;
  for (const std::string& file : files) {
    int one = 0;
    if (LowerCase(file).ends_with(".bin")) {
      const Status converted = ConvertAtb(file, output, type == "pt");
      if (!converted) one = Fail("-d", converted.error());
    } else {
      request.dump_path = file;
      one = Convert("-d", request);
    }
    if (status == 0) status = one;
  }
  return status;
}

constexpr ParseVerb kVerbs[] = {
    {"cad", "convert all dump files of a device, a directory for each operator", RunCad},
    {"cn", "compare two .npy files element by element", RunCn},
    {"dc", "convert a dump file, or those of a directory", RunDc},
    {"pt", "print a .npy file", RunPt},
    {"vc", "compare two directories of arrays or of dump files", RunVc},
};

int RunParse(std::vector<std::string> words) {
  if (words.empty()) return RunParseShell();
  const auto verb = std::ranges::find(kVerbs, words[0], &ParseVerb::name);
  if (verb != std::end(kVerbs)) {
    words.erase(words.begin());
    return verb->run(words);
  }
  if (words[0] == "-h" || words[0] == "--help") {
    std::fputs(ParseHelp().c_str(), stdout);
    return 0;
  }
  if (words[0].starts_with('-')) return RunFiles(words);
  return ReportError(kCommand,
                     Error(ErrorCode::kInvalidArgument,
                           fmt::format("{}: is no verb (see plumb parse --help)", words[0])));
}

}  // namespace

std::span<const ParseVerb> ParseVerbs() { return kVerbs; }

std::string ParseHelp() {
  std::string text =
      "plumb parse: a shell; with a verb and its options: that verb alone\n"
      "plumb parse -d FILE|DIR [-t npy|pt] [-o DIR]: tensor files of ATB and dump files as "
      "arrays\n\n"
      "Every verb takes -h. In the shell, other lines run a program (also \"run ...\"); exit, "
      "quit\n"
      "or the end of the input end it.\n\n";
  for (const ParseVerb& verb : kVerbs) text += fmt::format("  {:4} {}\n", verb.name, verb.help);
  return text;
}

void AddParseCommand(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      kCommand, "Convert, print and compare dump files in a shell, or one by one.");
  command->prefix_command();
  command->set_help_flag();  // verbs have their own
  command->callback([command, &exit_status] { exit_status = RunParse(command->remaining()); });
}

}  // namespace plumbline::cli
