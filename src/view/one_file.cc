#include "view/one_file.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/file/file.h"
#include "base/file/scratch_directory.h"
#include "explain/sample_evidence.h"
#include "load/rank_directories.h"
#include "plumbline/compare.h"
#include "ranks/compare_ranks.h"
#include "report/html_report.h"
#include "report/page_files.h"

namespace plumbline::view {
namespace {

// The parts of the page are made in a directory of their own.
Result<std::string> WriteRanks(const std::string& target, const std::string& golden,
                               const CompareOptions& options, const std::string& path) {
  PL_TRY_ASSIGN(const std::unique_ptr<ScratchDirectory> scratch,
                ScratchDirectory::Make("plumb-view"));
  ranks::CompareRanksOptions of_ranks;
  of_ranks.compare = options;
  of_ranks.compare.output_dir = scratch->path();
  of_ranks.compare.formats = {ReportFormat::kHtml};
  of_ranks.resume = false;
  PL_TRY_ASSIGN(ranks::RanksReport report, ranks::CompareRanks(target, golden, of_ranks));
  if (report.unwritten) return *report.unwritten;
  const auto page = std::ranges::find_if(
      report.files, [](const std::string& file) { return file.ends_with(".html"); });
  if (page == report.files.end()) {
    return Error(ErrorCode::kUnsupported, target + ", " + golden +
                                              ": no rank could be compared, so there is no page: " +
                                              ranks::RanksAnswer(report));
  }
  PL_TRY_ASSIGN(const std::string text, ReadFile(*page));
  PL_TRY(WriteFileAtomically(path, text, false));
  report.files.clear();  // which the answer would name
  return ranks::RanksSummaryText(report);
}

}  // namespace

Result<std::string> WriteOneFile(const std::string& target, const std::string& golden,
                                 const CompareOptions& options, const std::string& path) {
  if (!report::IsPageBuilt()) {
    return Error(ErrorCode::kUnsupported, path + ": " + std::string(report::kPageNotBuilt));
  }
  if (load::HoldRanks(target, golden, 2)) return WriteRanks(target, golden, options, path);
  PL_TRY_ASSIGN(const Comparison comparison, CompareRuns(target, golden, options));
  const std::optional<explain::Evidence> evidence = explain::SampleEvidence(comparison);
  const report::HtmlPart part{
      .label = {}, .comparison = &comparison, .evidence = evidence ? &*evidence : nullptr};
  PL_TRY(report::WriteHtml({&part, 1}, path));
  return SummaryText(comparison);
}

}  // namespace plumbline::view
