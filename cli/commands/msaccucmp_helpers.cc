// The helpers of upstream's program: scripts of their own there, verbs here.

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "base/file/file.h"
#include "base/text/text_parts.h"
#include "commands/msaccucmp.h"
#include "commands/msaccucmp_request.h"
#include "commands/option_words.h"
#include "operators/operator_csv.h"
#include "terminal.h"

namespace plumbline::cli {
namespace {

constexpr const char* kAdvisor = "advisor";
constexpr const char* kSaveLog = "save_log";
constexpr const char* kShape = "shape_conversion";

constexpr WordOption kAdvisorOptions[] = {
    {"-i", "--input_file", TakesWords::kOne, "result csv of compare"},
    {"-input_nodes", "--input_nodes", TakesWords::kOne, "names of input nodes between semicolons"},
    {"-o", "--out_path", TakesWords::kOne, "directory of advisor_summary.txt (default: .)"},
    {"-h", "--help", TakesWords::kNone, "this text"},
};

constexpr WordOption kSaveLogOptions[] = {
    {"-d", "--dump_file", TakesWords::kOne, "a dump file"},
    {"-out", "--output", TakesWords::kOne, "directory of the texts (default: .)"},
    {"-h", "--help", TakesWords::kNone, "this text"},
};

constexpr WordOption kShapeOptions[] = {
    {"-i", "--input", TakesWords::kOne, "a dump file"},
    {"-format", "--format", TakesWords::kOne, "layout to convert to"},
    {"-o", "--output", TakesWords::kOne, "directory of the result (default: .)"},
    {"-tensor", "--tensor", TakesWords::kOne, "input or output (default)"},
    {"-index", "--index", TakesWords::kOne, "which one (default: 0)"},
    {"-shape", "--shape", TakesWords::kOne, "shape of the result"},
    {"-custom", "--custom", TakesWords::kOne, "directory with format_convert/ of your own"},
    {"-h", "--help", TakesWords::kNone, "this text"},
};

}  // namespace

std::span<const WordOption> ShapeOptions() { return kShapeOptions; }

std::span<const WordOption> SaveLogOptions() { return kSaveLogOptions; }

std::span<const WordOption> AdvisorOptions() { return kAdvisorOptions; }

// Prints and writes the advice on a result.
int ReportAdvice(const std::string& csv_path, const std::vector<std::string>& input_nodes,
                 const std::string& output) {
  const auto advice = operators::AdviseOn(csv_path, input_nodes);
  if (!advice) return ReportMsaccucmp(kAdvisor, advice.error().message(), DumpCode::kInvalidFile);
  for (const std::string& note : advice->notes) {
    PrintError(fmt::format("msaccucmp {}: warning: {}\n", kAdvisor, note));
  }
  const auto path = operators::WriteAdvice(*advice, csv_path, output);
  if (!path) return ReportMsaccucmp(kAdvisor, path.error().message(), CodeOf(path.error()));
  Print(operators::AdviceText(*advice));
  Print(fmt::format("advice: {}\n", *path));
  return 0;
}

int RunMsaccucmpAdvisor(const Words& words, RunPlumb /*run_plumb*/) {
  constexpr const char* kRequired[] = {"--input_file"};
  int status = 0;
  const auto parsed = ParseVerbOptions(kAdvisor, kAdvisorOptions, kRequired, words, status);
  if (!parsed) return status;
  std::vector<std::string> nodes;
  for (const std::string_view node : SplitAt(parsed->Get("--input_nodes"), ';')) {
    if (!node.empty()) nodes.emplace_back(node);
  }
  return ReportAdvice(parsed->Get("--input_file"), nodes, parsed->Get("--out_path", "."));
}

int RunMsaccucmpSaveLog(const Words& words, RunPlumb /*run_plumb*/) {
  constexpr const char* kRequired[] = {"--dump_file"};
  int status = 0;
  const auto parsed = ParseVerbOptions(kSaveLog, kSaveLogOptions, kRequired, words, status);
  if (!parsed) return status;
  const std::string path = parsed->Get("--dump_file");
  const auto logs = operators::SaveSpaceLogs(path, parsed->Get("--output", "."));
  if (!logs) {
    const bool is_missing = logs.error().code() == ErrorCode::kNotFound;
    return ReportMsaccucmp(kSaveLog, logs.error().message(),
                           is_missing ? DumpCode::kInvalidPath : DumpCode::kInvalidDumpData);
  }
  if (logs->empty())
    return ReportMsaccucmp(kSaveLog, path + ": there is no space", DumpCode::kNoWorkspace);
  for (const std::string& log : *logs) Print(fmt::format("file: {}\n", log));
  return 0;
}

int RunMsaccucmpShape(const Words& words, RunPlumb run_plumb) {
  constexpr const char* kRequired[] = {"--input", "--format"};
  int status = 0;
  const auto parsed = ParseVerbOptions(kShape, kShapeOptions, kRequired, words, status);
  if (!parsed) return status;
  const std::string tensor = parsed->Get("--tensor", "output");
  if (tensor != "input" && tensor != "output") {
    return ReportMsaccucmp(kShape, "-tensor: expected input or output", DumpCode::kNoDumpFile);
  }
  Words all = {"convert", "-d", parsed->Get("--input"), "-f", parsed->Get("--format")};
  all.insert(all.end(), {"-out", parsed->Get("--output", ".")});
  all.insert(all.end(), {tensor == "input" ? "-i" : "-o", parsed->Get("--index", "0")});
  if (parsed->Has("--shape")) all.insert(all.end(), {"-s", parsed->Get("--shape")});
  if (parsed->Has("--custom")) all.insert(all.end(), {"-c", parsed->Get("--custom")});
  return run_plumb(std::move(all));
}

}  // namespace plumbline::cli
