// The verbs compare and file_compare of msaccucmp.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/file/file.h"
#include "base/text/text_parts.h"
#include "commands/msaccucmp.h"
#include "commands/msaccucmp_request.h"
#include "commands/option_words.h"
#include "hdf5_functions.h"
#include "operators/array_pair.h"
#include "operators/compare_hdf5.h"
#include "operators/compare_operators.h"
#include "operators/hdf5_filtered.h"
#include "operators/operator_csv.h"
#include "operators/operator_detail.h"
#include "report/tensor_answer.h"
#include "terminal.h"

namespace plumbline::cli {
namespace {

constexpr const char* kCompare = "compare";
constexpr const char* kFileCompare = "file_compare";

constexpr WordOption kFileCompareOptions[] = {
    {"-m", "--my_dump_path", TakesWords::kOne, "array under test (.npy)"},
    {"-g", "--golden_dump_path", TakesWords::kOne, "reference (.npy)"},
    {"-out", "--output", TakesWords::kOne, "directory of the result"},
    {"-h", "--help", TakesWords::kNone, "this text"},
};

int Fail(const Error& error) { return ReportMsaccucmp(kCompare, error.message(), CodeOf(error)); }

int CompareTwoFiles(const operators::OperatorRequest& request) {
  for (const std::string& path : {request.target, request.golden}) {
    if (!path.ends_with(".npy")) {
      return ReportMsaccucmp(kCompare, path + ": not compared as a file (expected .npy)",
                             DumpCode::kInvalidType);
    }
  }
  const auto pair =
      operators::CompareArrayFiles(request.target, request.golden, request.algorithms, request.own);
  if (!pair) return Fail(pair.error());
  Print(operators::ArrayPairText(*pair));
  return 0;
}

int CompareDirectories(const OptionWords& words, const operators::OperatorRequest& request) {
  const std::string output = words.Get("--output", ".");
  if (words.Has("--mapping")) {
    const auto pairs = operators::PairOperators(request);
    if (!pairs) return Fail(pairs.error());
    const auto path = operators::WriteOperatorMapping(*pairs, output);
    if (!path) return Fail(path.error());
    Print(fmt::format("{}\n", *path));
    return 0;
  }
  operators::OperatorRequest looking = request;
  looking.with_overflow = words.Has("--overflow_detection") || words.Has("--advisor");
  // Never destroyed: the end of the process takes its many small texts at once.
  static auto* const kept = new std::optional<Result<operators::OperatorComparison>>;
  const auto& comparison = kept->emplace(operators::CompareOperators(looking));
  if (!comparison) return Fail(comparison.error());
  const auto path = operators::WriteOperatorCsv(*comparison, output, "result");
  if (!path) return Fail(path.error());
  Print(operators::OperatorText(*comparison));
  Print(fmt::format("result: {}\n", *path));
  if (!words.Has("--advisor")) return 0;
  if (request.range.is_set()) {
    PrintError("msaccucmp compare: warning: -advisor is ignored with -r and -s\n");
    return 0;
  }
  return ReportAdvice(*path, comparison->input_nodes, output);
}

// A natural number from `least` to `most` behind an option, or its default.
DumpResult<uint64_t> NumberOf(const OptionWords& words, const char* name,
                              std::array<uint64_t, 3> default_least_most) {
  const auto [otherwise, least, most] = default_least_most;
  if (!words.Has(name)) return otherwise;
  const auto number = ParseNatural(words.Get(name));
  if (!number || static_cast<uint64_t>(*number) < least || static_cast<uint64_t>(*number) > most) {
    return DumpFailure{
        DumpCode::kInvalidParameter,
        fmt::format("{}: expected a natural number from {} to {}", name, least, most)};
  }
  return static_cast<uint64_t>(*number);
}

// One operator, element by element.
int CompareOperator(const OptionWords& words, const operators::OperatorRequest& recordings) {
  constexpr uint64_t kMostTensors = 1000000;
  const bool is_input = words.Has("--input_index");
  const auto index =
      NumberOf(words, is_input ? "--input_index" : "--output_index", {0, 0, kMostTensors});
  const auto largest = NumberOf(words, "--topn", {20, 1, 10000});
  const auto lines = NumberOf(words, "--max_line", {1000000, 10000, 1000000});
  for (const auto* number : {&index, &largest, &lines}) {
    if (!*number) return ReportMsaccucmp(kCompare, number->error().text, number->error().code);
  }
  operators::DetailRequest request;
  request.recordings = recordings;
  request.op_name = words.Get("--op_name");
  request.place = {is_input, static_cast<size_t>(*index)};
  request.largest = static_cast<size_t>(*largest);
  request.lines_per_file = *lines;
  request.all_elements = !words.Has("--ignore_single_op_result");
  request.output_directory = words.Get("--output", ".");
  const auto detail = operators::DetailOperator(request);
  if (!detail) {
    const bool does_not_fit = detail.error().code() == ErrorCode::kInvalidArgument;
    return ReportMsaccucmp(kCompare, detail.error().message(),
                           does_not_fit ? DumpCode::kInvalidDumpData : CodeOf(detail.error()));
  }
  Print(fmt::format("{}: {}{}{}\n{}", detail->row.tensor, VerdictName(detail->row.verdict.verdict),
                    detail->row.verdict.reason.empty() ? "" : ", ", detail->row.verdict.reason,
                    detail->summary));
  for (const std::string& file : detail->files) Print(fmt::format("file: {}\n", file));
  return 0;
}

// One result per model; a model that cannot be compared does not stop the others.
int CompareBatch(const OptionWords& words, const operators::OperatorRequest& request) {
  const auto batch = operators::FindBatch(request.target, request.fusion_rule);
  if (!batch) return Fail(batch.error());
  const std::string output = words.Get("--output", ".");
  for (const std::string& note : batch->notes) Print(fmt::format("note: {}\n", note));
  int status = 0;
  for (const operators::BatchModel& model : batch->models) {
    operators::OperatorRequest of_model = request;
    of_model.target = model.directory;
    of_model.fusion_rule = model.rule_path;
    of_model.with_overflow = words.Has("--overflow_detection");
    Print(fmt::format("{}:\n", model.directory));
    const auto comparison = operators::CompareOperators(of_model);
    if (!comparison) {
      status = Fail(comparison.error());
      continue;
    }
    const auto path = operators::WriteOperatorCsv(*comparison, output, model.ResultPrefix());
    if (!path) return Fail(path.error());
    Print(operators::OperatorText(*comparison));
    Print(fmt::format("result: {}\n", *path));
  }
  return status;
}

// Whether both sides are HDF5 files of the PyTorch 1.5 era.
bool AreOperatorFiles(const OptionWords& words) {
  return words.Get("--my_dump_path").ends_with(".h5") &&
         words.Get("--golden_dump_path").ends_with(".h5");
}

// The one under test is of an NPU.
int CompareOperatorFilesHere(const OptionWords& words) {
  for (const char* name : {"--fusion_rule_file", "--quant_fusion_rule_file", "--op_name",
                           "--custom_script_path", "--mapping"}) {
    if (!words.Has(name)) continue;
    return ReportMsaccucmp(kCompare, fmt::format("{}: not for .h5 files", name),
                           DumpCode::kInvalidParameter);
  }
  const std::string post_process = words.Get("--post_process", "0");
  if (post_process != "0" && post_process != "1") {
    return ReportMsaccucmp(kCompare, "--post_process: expected 0 or 1",
                           DumpCode::kInvalidParameter);
  }
  const auto request = CompareRequestOf(words);
  if (!request) return ReportMsaccucmp(kCompare, request.error().text, request.error().code);
  const auto hdf5 = LoadHdf5Functions();
  if (!hdf5) return Fail(hdf5.error());
  const auto comparison =
      (*hdf5)->compare(request->target, request->golden, {.algorithms = request->algorithms});
  if (!comparison) {
    const Error& error = comparison.error();
    const bool is_damaged = error.code() == ErrorCode::kCorrupt;
    return ReportMsaccucmp(kCompare, error.message(),
                           is_damaged ? DumpCode::kInvalidDumpData : CodeOf(error));
  }
  if (!comparison->target_is_npu) {
    return ReportMsaccucmp(kCompare, request->target + ": is no dump of an NPU",
                           DumpCode::kInvalidDumpData);
  }
  const std::string output = words.Get("--output", ".");
  const auto path = (*hdf5)->write_result(*comparison, output);
  if (!path) return Fail(path.error());
  Print(report::AnswerText(comparison->answer, "values"));
  Print(fmt::format("result: {}\n", *path));
  if (post_process == "0") return 0;
  const auto filtered =
      (*hdf5)->write_filtered(*comparison, {request->target, request->golden, *path});
  if (!filtered) return Fail(filtered.error());
  Print(fmt::format("filtered: {}\n", *filtered));
  return 0;
}

int CompareOperatorFiles(const OptionWords& words) {
  const Result<int> status =
      RunOnHdf5(words.Get("--my_dump_path") + ", " + words.Get("--golden_dump_path"),
                [&] { return CompareOperatorFilesHere(words); });
  if (status) return *status;
  return ReportMsaccucmp(kCompare, status.error().message(), DumpCode::kInvalidDumpData);
}

}  // namespace

std::span<const WordOption> FileCompareOptions() { return kFileCompareOptions; }

int RunMsaccucmpCompare(const Words& words, RunPlumb /*run_plumb*/) {
  constexpr const char* kRequired[] = {"--my_dump_path", "--golden_dump_path"};
  int status = 0;
  const auto parsed = ParseVerbOptions(kCompare, CompareOptions(), kRequired, words, status);
  if (!parsed) return status;
  if (AreOperatorFiles(*parsed)) return CompareOperatorFiles(*parsed);
  if (const DumpStatus options = CheckOptions(*parsed); !options) {
    return ReportMsaccucmp(kCompare, options.error().text, options.error().code);
  }
  const auto request = CompareRequestOf(*parsed);
  if (!request) return ReportMsaccucmp(kCompare, request.error().text, request.error().code);
  const bool are_files =
      KindOf(request->target) == PathKind::kFile && KindOf(request->golden) == PathKind::kFile;
  if (are_files) return CompareTwoFiles(*request);
  const bool is_batch = KindOf(request->fusion_rule) == PathKind::kDirectory;
  if (parsed->Has("--op_name")) {
    if (!is_batch) return CompareOperator(*parsed, *request);
    return ReportMsaccucmp(kCompare, "-op: not with a directory of rule files",
                           DumpCode::kInvalidParameter);
  }
  return is_batch ? CompareBatch(*parsed, *request) : CompareDirectories(*parsed, *request);
}

int RunMsaccucmpFileCompare(const Words& words, RunPlumb /*run_plumb*/) {
  constexpr const char* kRequired[] = {"--my_dump_path", "--golden_dump_path", "--output"};
  int status = 0;
  const auto parsed = ParseVerbOptions(kFileCompare, kFileCompareOptions, kRequired, words, status);
  if (!parsed) return status;
  for (const char* name : {"--my_dump_path", "--golden_dump_path"}) {
    const std::string path = parsed->Get(name);
    if (!path.ends_with(".npy")) {
      return ReportMsaccucmp(kFileCompare, path + ": wrong type (expected .npy)",
                             DumpCode::kInvalidType);
    }
    if (KindOf(path) == PathKind::kMissing) {
      return ReportMsaccucmp(kFileCompare, path + ": there is no such path",
                             DumpCode::kInvalidPath);
    }
  }
  std::vector<measure::DumpAlgorithm> algorithms = measure::AllDumpAlgorithms();
  std::erase(algorithms, measure::DumpAlgorithm::kKullbackLeiblerDivergence);
  std::erase(algorithms, measure::DumpAlgorithm::kStandardDeviation);
  const auto pair = operators::CompareArrayFiles(parsed->Get("--my_dump_path"),
                                                 parsed->Get("--golden_dump_path"), algorithms);
  if (!pair) {
    const bool is_shape = pair.error().code() == ErrorCode::kInvalidArgument;
    return ReportMsaccucmp(kFileCompare, pair.error().message(),
                           is_shape ? DumpCode::kInvalidShape : DumpCode::kInvalidDumpData);
  }
  const auto path = operators::WriteArrayPair(*pair, parsed->Get("--output"));
  if (!path) return ReportMsaccucmp(kFileCompare, path.error().message(), DumpCode::kWriteError);
  Print(operators::ArrayPairText(*pair));
  Print(fmt::format("result: {}\n", *path));
  return 0;
}

}  // namespace plumbline::cli
