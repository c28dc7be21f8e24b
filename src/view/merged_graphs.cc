#include "view/merged_graphs.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/file/scratch_directory.h"
#include "base/process/parallel.h"
#include "base/text/number_text.h"

namespace plumbline::view {
namespace {

Status CheckOptions(const GraphFileOptions& options) {
  if (options.resumes) {
    return Error(ErrorCode::kInvalidArgument,
                 "--resume: merged ranks are always made anew (leave it out with --rank_size)");
  }
  if (options.filter.ranks.empty()) return {};
  return Error(ErrorCode::kInvalidArgument,
               "--ranks: merging needs all ranks (expected --steps alone with --rank_size)");
}

// How many graphs are left of one step.
int64_t GraphsOf(const ParallelLayout& layout) {
  const int64_t share = layout.tensor * layout.pipeline;
  return share > 0 ? layout.ranks / share : 0;
}

Status CheckReplicas(const ParallelLayout& target, const ParallelLayout& golden) {
  const int64_t ours = GraphsOf(target), theirs = GraphsOf(golden);
  if (ours == theirs) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("merging leaves {} of the target and {} of golden (expected as many on "
                           "both sides). Check --rank_size, --tp and --pp",
                           CountText(static_cast<uint64_t>(ours), "graph"),
                           CountText(static_cast<uint64_t>(theirs), "graph")));
}

std::string MergedText(const MergeReport& report) {
  return fmt::format("{} merged into {}", CountText(report.source_ranks, "rank"),
                     CountText(report.dumps.size(), "recording"));
}

Result<MergeReport> Merge(const MergeRequest& request, int threads,
                          std::vector<std::string>& notes) {
  std::optional<Result<MergeReport>> merged;
  RunWithThreads(threads, [&] { merged = MergeRanks(request); });
  PL_TRY_ASSIGN(MergeReport report, std::move(*merged));
  notes.push_back(fmt::format("{}: {}", request.side, MergedText(report)));
  notes.insert(notes.end(), report.notes.begin(), report.notes.end());
  return report;
}

// The numbers that golden's merged ranks get: those of the target.
std::map<int64_t, std::vector<int64_t>> RanksByStep(const MergeReport& report) {
  std::map<int64_t, std::vector<int64_t>> ranks;
  for (const MergedDump& dump : report.dumps) ranks[dump.step].push_back(dump.rank);
  return ranks;
}

}  // namespace

Result<GraphFileReport> WriteMergedGraphFiles(const std::string& target, const std::string& golden,
                                              const GraphFileOptions& options,
                                              const ParallelOptions& parallel) {
  const bool is_pair = !golden.empty();
  PL_TRY(CheckOptions(options));
  PL_TRY_ASSIGN(const std::vector<ParallelLayout> layouts, LayoutsOf(parallel, is_pair));
  PL_TRY_ASSIGN(const auto scratch, ScratchDirectory::MakeIn(options.output_dir, ".merge"));
  MergeRequest request{target, layouts.front()};
  request.filter = options.filter;
  request.output_dir = JoinPath(scratch->path(), "target");
  PL_TRY(CheckRanks(request));
  MergeRequest other{golden, layouts.back(), "golden"};
  other.filter = options.filter;
  if (is_pair) {
    other.output_dir = JoinPath(scratch->path(), "golden");
    PL_TRY(CheckRanks(other));
    PL_TRY(CheckReplicas(layouts.front(), layouts.back()));
  }
  std::vector<std::string> notes;
  PL_TRY_ASSIGN(const MergeReport ours, Merge(request, options.compare.threads, notes));
  if (is_pair) {
    other.ranks_as = RanksByStep(ours);
    if (other.ranks_as.size() == 1) other.step_as = other.ranks_as.begin()->first;
    PL_TRY(Merge(other, options.compare.threads, notes));
  }
  GraphFileOptions files = options;
  files.sources = {target, golden};
  PL_TRY_ASSIGN(GraphFileReport report,
                WriteGraphFiles(request.output_dir, other.output_dir, files));
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
  return report;
}

Result<MergeReport> WriteMergedDumps(const std::string& target, const GraphFileOptions& options,
                                     const ParallelOptions& parallel) {
  PL_TRY(CheckOptions(options));
  PL_TRY_ASSIGN(const std::vector<ParallelLayout> layouts, LayoutsOf(parallel, false));
  MergeRequest request{target, layouts[0]};
  request.filter = options.filter;
  request.output_dir = options.output_dir;
  request.progress = options.progress;
  std::vector<std::string> notes;
  return Merge(request, options.compare.threads, notes);
}

std::string MergeAnswer(const MergeReport& report) {
  uint64_t nodes = 0;
  for (const MergedDump& dump : report.dumps) nodes += dump.nodes;
  std::string text = fmt::format("{} of {}\n", MergedText(report), CountText(nodes, "node"));
  for (const MergedDump& dump : report.dumps) text += fmt::format("  {}\n", dump.directory);
  return text;
}

}  // namespace plumbline::view
