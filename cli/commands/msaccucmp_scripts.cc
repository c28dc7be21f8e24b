// Verbs for scripts beside upstream's program: compare_vector and dump_data_conversion.

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "base/file/file.h"
#include "base/file/input_files.h"
#include "commands/msaccucmp.h"
#include "commands/msaccucmp_request.h"
#include "commands/option_words.h"
#include "operators/array_dumps.h"
#include "operators/operator_csv.h"
#include "terminal.h"

namespace plumbline::cli {
namespace {

constexpr const char* kVector = "compare_vector";
constexpr const char* kConversion = "dump_data_conversion";

constexpr WordOption kVectorOptions[] = {
    {"-l", "--left", TakesWords::kOne, "recording under test: a directory"},
    {"-r", "--right", TakesWords::kOne, "reference"},
    {"-o", "--output", TakesWords::kOne, "file of the result; with -d a directory"},
    {"-f", "--fusion", TakesWords::kOne, "fusion rule of the compiled model"},
    {"-q", "--quant", TakesWords::kOne, "fusion rule of the quantised model"},
    {"-d", "--detail", TakesWords::kOne, "one operator in detail"},
    {"-t", "--type", TakesWords::kOne, "its input or output (default)"},
    {"-i", "--index", TakesWords::kOne, "which one (default: 0)"},
    {"-csv", "--csv", TakesWords::kNone, "a csv file (default: blanks between the cells)"},
    {"-custom", "--custom", TakesWords::kOne, "directory with functions of your own"},
    {"-ffts", "--ffts", TakesWords::kNone, "parts of operators that FFTS+ cut one by one"},
    {"-h", "--help", TakesWords::kNone, "this text"},
};

constexpr WordOption kConversionOptions[] = {
    {"-target", "--target", TakesWords::kOne, "numpy or dump: what the files become"},
    {"-type", "--type", TakesWords::kOne, "caffe, tf, quant or offline: what the dumps are of"},
    {"-i", "--input", TakesWords::kOne, "a file, or a directory (its top level)"},
    {"-o", "--output", TakesWords::kOne, "directory of the result"},
    {"-h", "--help", TakesWords::kNone, "this text"},
};

// The same as options of compare.
Words CompareWords(const OptionWords& options) {
  Words words;
  const std::pair<const char*, const char*> same[] = {{"-m", "--left"},   {"-g", "--right"},
                                                      {"-f", "--fusion"}, {"-q", "--quant"},
                                                      {"-c", "--custom"}, {"-op", "--detail"}};
  for (const auto& [option, name] : same) {
    if (options.Has(name)) words.insert(words.end(), {option, options.Get(name)});
  }
  if (options.Has("--ffts")) words.emplace_back("-ffts");
  return words;
}

int RunConversion(const OptionWords& options, RunPlumb run_plumb) {
  const std::string type = options.Get("--type"), target = options.Get("--target");
  const std::string input = options.Get("--input"), output = options.Get("--output");
  const bool is_device = type == "offline";
  if (target == "numpy" && is_device) {
    return run_plumb({"convert", "-d", input, "-out", output, "-t", "npy"});
  }
  auto kind = operators::ArrayDumpKind::kFramework;
  if (is_device) kind = operators::ArrayDumpKind::kDevice;
  if (type == "quant") kind = operators::ArrayDumpKind::kQuantised;
  const auto report = target == "dump" ? operators::DumpsFromArrays(input, output, kind)
                                       : operators::ArraysFromDumps(input, output, kind);
  if (!report) {
    return ReportMsaccucmp(kConversion, report.error().text, report.error().code);
  }
  for (const std::string& name : report->left_out) {
    PrintError(fmt::format("msaccucmp {}: warning: {}: left out, a name of another form\n",
                           kConversion, name));
  }
  int status = 0;
  for (const operators::DumpFailure& failure : report->failures) {
    const int code = ReportMsaccucmp(kConversion, failure.text, failure.code);
    if (status == 0) status = code;
  }
  for (const std::string& file : report->files) Print(fmt::format("file: {}\n", file));
  return status;
}

}  // namespace

std::span<const WordOption> ConversionOptions() { return kConversionOptions; }

std::span<const WordOption> VectorOptions() { return kVectorOptions; }

int RunMsaccucmpVector(const Words& words, RunPlumb run_plumb) {
  constexpr const char* kRequired[] = {"--left", "--right", "--output"};
  int status = 0;
  const auto options = ParseVerbOptions(kVector, kVectorOptions, kRequired, words, status);
  if (!options) return status;
  Words all = CompareWords(*options);
  if (options->Has("--detail")) {
    const std::string type = options->Has("--type") ? options->Get("--type") : "output";
    if (type != "input" && type != "output") {
      return ReportMsaccucmp(kVector, "-t: expected input or output", DumpCode::kInvalidParameter);
    }
    all.insert(all.end(), {type == "input" ? "-i" : "-o",
                           options->Has("--index") ? options->Get("--index") : "0", "-out",
                           options->Get("--output")});
    return RunMsaccucmpCompare(all, run_plumb);
  }
  const auto parsed = OptionWords::Parse(CompareOptions(), all);
  if (!parsed) return ReportMsaccucmp(kVector, parsed.error().message(), DumpCode::kNoDumpFile);
  const auto request = CompareRequestOf(*parsed);
  if (!request) return ReportMsaccucmp(kVector, request.error().text, request.error().code);
  const std::string path = options->Get("--output");
  const Status spared =
      InputFiles({request->target, request->golden, request->fusion_rule, request->quant_rule})
          .CheckSpares(path);
  if (!spared) return ReportMsaccucmp(kVector, spared.error().message(), CodeOf(spared.error()));
  const auto comparison = operators::CompareOperators(*request);
  if (!comparison) {
    return ReportMsaccucmp(kVector, comparison.error().message(), CodeOf(comparison.error()));
  }
  const Status written = operators::WriteOperatorTable(*comparison, path, options->Has("--csv"));
  if (!written) return ReportMsaccucmp(kVector, written.error().message(), DumpCode::kWriteError);
  Print(operators::OperatorText(*comparison));
  Print(fmt::format("result: {}\n", path));
  return 0;
}

int RunMsaccucmpConversion(const Words& words, RunPlumb run_plumb) {
  constexpr const char* kRequired[] = {"--target", "--type", "--input", "--output"};
  int status = 0;
  const auto options = ParseVerbOptions(kConversion, kConversionOptions, kRequired, words, status);
  if (!options) return status;
  const std::string type = options->Get("--type"), target = options->Get("--target");
  if (KindOf(options->Get("--input")) == PathKind::kMissing) {
    return ReportMsaccucmp(kConversion, options->Get("--input") + ": there is no such path",
                           DumpCode::kInvalidPath);
  }
  if (target != "numpy" && target != "dump") {
    return ReportMsaccucmp(kConversion, fmt::format("-target {}: expected numpy or dump", target),
                           DumpCode::kInvalidTarget);
  }
  if (type != "caffe" && type != "tf" && type != "quant" && type != "offline") {
    return ReportMsaccucmp(kConversion,
                           fmt::format("-type {}: expected caffe, tf, quant or offline", type),
                           DumpCode::kInvalidType);
  }
  return RunConversion(*options, run_plumb);
}

}  // namespace plumbline::cli
