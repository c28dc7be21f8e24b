#include "commands/compare_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays/compare_checkpoints.h"
#include "base/file/file.h"
#include "commands.h"
#include "graphs/compare_atb.h"
#include "graphs/compare_torchair.h"
#include "hdf5_functions.h"
#include "load/checkpoint.h"
#include "operators/compare_dump_files.h"
#include "operators/compare_hdf5.h"
#include "operators/compare_operators.h"
#include "operators/operator_csv.h"
#include "terminal.h"

namespace plumbline::cli {
bool AreFiles(const std::string& target, const std::string& golden) {
  return load::LooksLikeCheckpoint(target) && load::LooksLikeCheckpoint(golden);
}

Result<int> CompareAtbDumps(const std::string& target, const std::string& golden,
                            const CompareOptions& options,
                            const std::vector<std::string>& fail_on) {
  PL_TRY_ASSIGN(const graphs::AtbComparison comparison,
                graphs::CompareAtb(target, golden, options.threads));
  PL_TRY_ASSIGN(const std::string path, graphs::WriteAtbWorkbook(comparison, options.output_dir));
  const report::TensorAnswer answer = graphs::AtbAnswer(comparison);
  Print(report::AnswerText(answer, "rows of statistic.csv"));
  Print(fmt::format("file: {}\n", path));
  PL_TRY_ASSIGN(const bool fails, report::AnswerFailsOn(answer, fail_on));
  return fails ? kDifferencesFound : 0;
}

Result<int> CompareTorchairDumps(const std::string& target, const std::string& golden,
                                 const CompareOptions& options,
                                 const std::vector<std::string>& fail_on,
                                 const std::vector<int64_t>& ranks) {
  PL_TRY_ASSIGN(const std::vector<graphs::TorchairComparison> comparisons,
                graphs::CompareTorchair({target, golden, ranks, options.threads}));
  bool fails = false;
  for (const graphs::TorchairComparison& comparison : comparisons) {
    PL_TRY_ASSIGN(const std::string path,
                  graphs::WriteTorchairReport(comparison, options.output_dir));
    Print(graphs::TorchairText(comparison));
    Print(fmt::format("file: {}\n", path));
    PL_TRY_ASSIGN(const bool fails_here, report::AnswerFailsOn(comparison.answer, fail_on));
    fails = fails || fails_here;
  }
  return fails ? kDifferencesFound : 0;
}

namespace {

Status ShowOperators(const operators::OperatorComparison& comparison, const std::string& text,
                     const std::string& directory, const std::string& prefix) {
  PL_TRY_ASSIGN(const std::string path, operators::WriteOperatorCsv(comparison, directory, prefix));
  Print(text);
  Print(fmt::format("file: {}\n", path));
  return {};
}

}  // namespace

Result<int> CompareTwoDumpFiles(const std::string& target, const std::string& golden,
                                const CompareOptions& options, std::vector<std::string> fail_on) {
  PL_TRY_ASSIGN(const operators::OperatorComparison comparison,
                operators::CompareDumpFiles(target, golden, options.threads));
  PL_TRY(ShowOperators(comparison, operators::DumpFilesText(comparison), options.output_dir,
                       "result"));
  // As of two arrays: one question with one answer.
  if (fail_on.empty()) fail_on = {"any"};
  PL_TRY_ASSIGN(const bool fails, report::AnswerFailsOn(comparison.answer, fail_on));
  return fails ? kDifferencesFound : 0;
}

Result<int> CompareOperatorDumps(const std::vector<load::OperatorTree>& trees,
                                 const CompareOptions& options,
                                 const std::vector<std::string>& fail_on) {
  bool fails = false;
  for (const load::OperatorTree& tree : trees) {
    if (!tree.name.empty()) Print(fmt::format("{}:\n", tree.name));
    report::TensorAnswer answer;
    if (tree.target.empty() || tree.golden.empty()) {
      Print(fmt::format("not judged: only on the {} side\n",
                        tree.target.empty() ? "golden" : "target"));
      answer.unpaired = 1;
    } else {
      operators::OperatorRequest request;
      request.target = tree.target;
      request.golden = tree.golden;
      request.threads = options.threads;
      request.with_overflow = true;
      PL_TRY_ASSIGN(const operators::OperatorComparison comparison,
                    operators::CompareOperators(request));
      std::string prefix = "result" + (tree.name.empty() ? "" : "_" + tree.name);
      std::replace(prefix.begin(), prefix.end(), '/', '_');
      PL_TRY(ShowOperators(comparison, operators::OperatorText(comparison), options.output_dir,
                           prefix));
      answer = comparison.answer;
    }
    PL_TRY_ASSIGN(const bool fails_here, report::AnswerFailsOn(answer, fail_on));
    fails = fails || fails_here;
  }
  return fails ? kDifferencesFound : 0;
}

namespace {

Result<int> CompareHdf5Here(const std::string& target, const std::string& golden,
                            const CompareOptions& options,
                            const std::vector<std::string>& fail_on) {
  PL_TRY_ASSIGN(const Hdf5Functions* hdf5, LoadHdf5Functions());
  PL_TRY_ASSIGN(const operators::Hdf5Comparison comparison,
                hdf5->compare(target, golden, {.threads = options.threads}));
  PL_TRY_ASSIGN(const std::string path, hdf5->write_result(comparison, options.output_dir));
  Print(report::AnswerText(comparison.answer, "values"));
  Print(fmt::format("file: {}\n", path));
  PL_TRY_ASSIGN(const bool fails, report::AnswerFailsOn(comparison.answer, fail_on));
  return fails ? kDifferencesFound : 0;
}

}  // namespace

Result<int> CompareHdf5Dumps(const std::string& target, const std::string& golden,
                             const CompareOptions& options,
                             const std::vector<std::string>& fail_on) {
  return RunOnHdf5(target + ", " + golden, [&] {
    const Result<int> status = CompareHdf5Here(target, golden, options, fail_on);
    return status ? *status : ReportError("compare", status.error());
  });
}

Result<int> CompareFiles(const std::string& target, const std::string& golden,
                         const CompareOptions& options, std::vector<std::string> fail_on,
                         bool machine) {
  PL_TRY_ASSIGN(const CheckpointReport report, CompareCheckpointFiles(target, golden, options));
  if (machine) {
    PL_TRY_ASSIGN(const std::string text, CheckpointJson(report.comparison));
    Print(fmt::format("{}\n", text));
  } else {
    Print(CheckpointSummary(report.comparison));
    for (const std::string& file : report.files) Print(fmt::format("  written: {}\n", file));
  }
  // Two files are one question with one answer: the status tells it unasked.
  if (fail_on.empty()) fail_on = {"any"};
  PL_TRY_ASSIGN(const bool fails, FailsOn(report.comparison, fail_on));
  return fails ? kDifferencesFound : 0;
}

}  // namespace plumbline::cli
