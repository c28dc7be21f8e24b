#include "commands/overflow_grade.h"

#include <fmt/format.h>

#include <string_view>

#include "base/process/log.h"
#include "commands.h"
#include "overflow/overflow_check.h"
#include "overflow/overflow_grade.h"
#include "terminal.h"

namespace plumbline::cli {
namespace {

// Those of plumb overflow.
constexpr int kGradesUnusable = 2, kGradesFound = 3, kGradesPartial = 4;
constexpr size_t kMostCalls = 10;  // shown of a level
constexpr size_t kMostRanks = 20;  // shown

std::string LabelOf(const GradeReport& report, const StepGrades& step, const RankGrades& rank) {
  const std::string label = RankLabel(rank.directory);
  return report.steps.size() > 1 ? fmt::format("{} {}", OneLine(step.path), label) : label;
}

void PrintRanks(const GradeReport& report) {
  size_t shown = 0;
  for (const StepGrades& step : report.steps) {
    for (const RankGrades& rank : step.ranks) {
      if (++shown > kMostRanks) continue;
      Print(fmt::format("  {}: {} critical, {} high, {} medium of {} entries\n",
                        LabelOf(report, step, rank), rank.counts[2], rank.counts[1],
                        rank.counts[0], rank.entries));
    }
  }
  if (shown > kMostRanks) Print(fmt::format("  {} more ranks\n", shown - kMostRanks));
}

void PrintLevel(const GradeReport& report, OverflowLevel level) {
  size_t met = 0;
  for (const StepGrades& step : report.steps) {
    for (const RankGrades& rank : step.ranks) {
      for (const GradedCall& call : rank.calls) {
        if (call.grade.level != level || ++met > kMostCalls) continue;
        Print(fmt::format("  {}: {} {} ({})\n", OverflowLevelName(level),
                          LabelOf(report, step, rank), OneLine(call.name),
                          OverflowSceneText(call.grade.scene)));
      }
    }
  }
  if (met > kMostCalls) {
    Print(fmt::format("  {}: {} more\n", OverflowLevelName(level), met - kMostCalls));
  }
}

Result<int> GradeAndPrint(const GradeArguments& arguments) {
  PL_TRY_ASSIGN(const GradeReport report,
                GradeOverflows(arguments.path, arguments.output, arguments.threads));
  if (arguments.is_machine) {
    PL_TRY_ASSIGN(const std::string text, FormatGrades(report));
    Print(text + "\n");
  } else {
    Print(OneLine(GradeAnswer(report)) + "\n");
    PrintRanks(report);
    for (const OverflowLevel level :
         {OverflowLevel::kCritical, OverflowLevel::kHigh, OverflowLevel::kMedium}) {
      PrintLevel(report, level);
    }
    if (!report.file.empty()) Print(fmt::format("  written: {}\n", OneLine(report.file)));
  }
  for (const std::string& note : report.not_judged) {
    PrintError(fmt::format("plumb overflow: not judged: {}\n", OneLine(note)));
  }
  if (report.found() && arguments.fails_on_anomaly) return kGradesFound;
  return report.not_judged.empty() || arguments.allows_partial ? 0 : kGradesPartial;
}

}  // namespace

int RunOverflowGrade(const GradeArguments& arguments) {
  const Result<int> status = GradeAndPrint(arguments);
  if (status) return *status;
  const int reported = ReportError("overflow", status.error());
  const ErrorCode code = status.error().code();
  const bool is_unusable = code == ErrorCode::kNotFound || code == ErrorCode::kUnsupported ||
                           code == ErrorCode::kCorrupt;
  return is_unusable ? kGradesUnusable : reported;
}

}  // namespace plumbline::cli
