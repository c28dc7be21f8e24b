#include "pipeline/overflow_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "base/parallel.h"
#include "formats/dump_json.h"
#include "load/detect.h"
#include "load/rank_directories.h"
#include "pipeline/overflow_json.h"

namespace plumbline {
namespace {

constexpr size_t kMaxNotes = 20;  // of one kind, before the rest is only counted

using load::RankDirectory;

// The ranks below `path` when it is a step; the rank itself when it is one.
Result<std::vector<RankDirectory>> RanksOf(const std::string& path) {
  if (KindOf(JoinPath(path, load::kDumpJsonName)) == PathKind::kFile) {
    PL_TRY_ASSIGN(const std::string real, RealPath(path));
    PL_TRY_ASSIGN(const std::vector<RankDirectory> siblings,
                  load::ListRankDirectories(std::string(DirectoryOf(real))));
    const auto self = std::find_if(siblings.begin(), siblings.end(), [&](const RankDirectory& d) {
      return d.name == BaseName(real);
    });
    std::optional<int64_t> rank = 0;
    if (self != siblings.end()) rank = self->rank;
    return std::vector<RankDirectory>{{path, std::string(BaseName(real)), rank}};
  }
  return load::ListRankDirectories(path);
}

struct StepToCheck {
  std::string path;
  std::vector<RankDirectory> ranks;
};

Result<std::vector<StepToCheck>> StepsOf(const std::string& path) {
  if (KindOf(path) != PathKind::kDirectory) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: no such directory", path));
  }
  std::vector<StepToCheck> steps;
  PL_TRY_ASSIGN(std::vector<RankDirectory> ranks, RanksOf(path));
  if (!ranks.empty()) {
    steps.push_back({path, std::move(ranks)});
    return steps;
  }
  PL_TRY_ASSIGN(const std::vector<load::StepDirectory> found, load::ListStepDirectories(path));
  for (const load::StepDirectory& step : found) {
    PL_TRY_ASSIGN(ranks, RanksOf(step.path));
    if (ranks.empty()) {
      return Error(
          ErrorCode::kNotFound,
          fmt::format("{}: no rank directory (expected rank0, rank or proc...)", step.path));
    }
    steps.push_back({step.path, std::move(ranks)});
  }
  if (steps.empty()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no rank directory here nor in a step directory below (expected "
                             "rank0, rank or proc...). Name the directory of one step.",
                             path));
  }
  return steps;
}

Result<std::vector<RankScan>> ScanRanks(const std::vector<RankDirectory>& directories,
                                        int threads) {
  std::vector<std::optional<Result<RankScan>>> results(directories.size());
  RunWithThreads(threads, [&] {
    ParallelFor(directories.size(), [&](size_t i) { results[i] = ScanRank(directories[i]); });
  });
  std::vector<RankScan> scans;
  for (auto& result : results) {
    if (!*result) return (*result).error();
    scans.push_back(std::move(**result));
  }
  return scans;
}

// Ranks that process groups name and the dump lacks.
std::vector<int64_t> AbsentRanks(const std::vector<RankScan>& scans) {
  std::set<int64_t> there, named;
  for (const RankScan& scan : scans) {
    if (scan.directory.rank) there.insert(*scan.directory.rank);
    for (const CommGroup& group : scan.groups) named.insert(group.ranks.begin(), group.ranks.end());
  }
  std::vector<int64_t> absent;
  std::set_difference(named.begin(), named.end(), there.begin(), there.end(),
                      std::back_inserter(absent));
  return absent;
}

void NoteCommunication(const OverflowReport& report, std::vector<std::string>& notes) {
  const std::vector<int64_t> absent = AbsentRanks(report.ranks);
  if (!absent.empty()) {
    const size_t shown = std::min(absent.size(), kMaxNotes);
    notes.push_back(fmt::format(
        "{}: no directory for {} of the ranks that process groups name: {}{}",
        report.step_directory, absent.size(),
        fmt::join(absent.begin(), absent.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
        shown < absent.size() ? ", ..." : ""));
  }
  const CommGraph& graph = report.analysis.graph;
  if (graph.unpaired > 0) {
    const RankScan& scan = report.ranks[graph.first_unpaired.rank];
    notes.push_back(fmt::format(
        "{}: {} communication calls without their counterparts on other ranks, first {} of {}",
        report.step_directory, graph.unpaired, scan.calls[graph.first_unpaired.call].name,
        RankLabel(scan.directory)));
  }
  if (graph.disordered > 0) {
    notes.push_back(fmt::format("{}: the order of communication calls contradicts itself at {}",
                                report.step_directory, graph.disordered));
  }
  uint64_t incomplete = 0;
  for (const RankScan& scan : report.ranks) {
    incomplete += static_cast<uint64_t>(std::count_if(
        scan.calls.begin(), scan.calls.end(), [](const CommCall& c) { return !c.has_output; }));
  }
  if (incomplete > 0) {
    notes.push_back(
        fmt::format("{}: {} communication calls were not complete when recording ended, their "
                    "output is not known",
                    report.step_directory, incomplete));
  }
}

// Adds the step that has just been analysed to the sums.
void AddSums(OverflowReport& report) {
  size_t left_out = 0;
  uint64_t not_judged = 0, tensors = 0;
  for (const RankScan& scan : report.ranks) {
    report.entries += scan.entries;
    report.bad_entries += scan.bad_entries;
    tensors += scan.tensors;
    not_judged += scan.tensors_not_judged;
    report.truncated = report.truncated || scan.truncated;
    for (const std::string& note : scan.notes) {
      if (report.not_judged.size() < kMaxNotes) {
        report.not_judged.push_back(note);
      } else {
        ++left_out;
      }
    }
  }
  if (left_out > 0) report.not_judged.push_back(fmt::format("{} more of these", left_out));
  if (not_judged > 0) {
    report.not_judged.push_back(
        fmt::format("{}: {} of {} tensors have no Max and Min (recorded with checksums only?)",
                    report.step_directory, not_judged, tensors));
  }
  report.tensors += tensors;
  report.tensors_not_judged += not_judged;
  report.rank_count += report.ranks.size();
  ++report.steps;
  NoteCommunication(report, report.not_judged);
}

std::vector<std::string> HierarchyOf(const std::string& name,
                                     const dump_json::ConstructTable& rows) {
  std::unordered_map<std::string_view, std::string_view> parents;
  for (const auto& [child, parent] : rows) parents.emplace(child, parent);
  std::vector<std::string> chain{name};
  std::set<std::string_view> seen{name};
  for (auto at = parents.find(name); at != parents.end() && !at->second.empty();
       at = parents.find(at->second)) {
    if (!seen.insert(at->second).second) break;  // a circle
    chain.emplace_back(at->second);
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

// stack.json holds forward entries; a backward entry was caused by the call of the same name.
std::vector<std::string> StackOf(std::string name, const dump_json::StackTable& rows) {
  const auto find = [&](std::string_view wanted) {
    return std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.first == wanted; });
  };
  auto row = find(name);
  constexpr std::string_view kBackward = "backward";
  const size_t at = name.rfind(kBackward);
  if (row == rows.end() && at != std::string::npos) {
    row = find(name.replace(at, kBackward.size(), "forward"));
  }
  return row != rows.end() ? row->second : std::vector<std::string>();
}

Result<OverflowDetails> ReadDetails(const OverflowReport& report, size_t index) {
  const OverflowOrigin& origin = report.analysis.origins[index];
  const std::string& directory = report.ranks[origin.rank].directory.path;
  OverflowDetails details;
  details.origin = index;
  const std::string path = JoinPath(directory, load::kDumpJsonName);
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  if (origin.place.end > text.size()) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: changed while it was read", path));
  }
  details.data = text.substr(origin.place.begin, origin.place.end - origin.place.begin);
  PL_TRY_ASSIGN(const auto parents,
                dump_json::ReadConstruct(JoinPath(directory, load::kConstructJsonName)));
  details.hierarchy = HierarchyOf(origin.name, parents);
  PL_TRY_ASSIGN(const auto stacks, dump_json::ReadStack(JoinPath(directory, load::kStackJsonName)));
  details.stack = StackOf(origin.name, stacks);
  return details;
}

Status AddAllDetails(OverflowReport& report, int threads) {
  const std::vector<size_t>& reported = report.analysis.reported;
  std::vector<std::optional<Result<OverflowDetails>>> results(reported.size());
  RunWithThreads(threads, [&] {
    ParallelFor(reported.size(), [&](size_t i) { results[i] = ReadDetails(report, reported[i]); });
  });
  for (auto& result : results) {
    if (!*result) return (*result).error();
    report.details.push_back(std::move(**result));
  }
  return {};
}

Status WriteFiles(const std::string& directory, OverflowReport& report) {
  PL_TRY(MakeDirectories(directory));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto clock = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  const std::string analyze = JoinPath(directory, fmt::format("anomaly_analyze_{}.json", clock));
  const std::string trace = JoinPath(directory, fmt::format("overflow_trace_{}.json", clock));
  PL_TRY_ASSIGN(const std::string anomalies, FormatAnomalies(report));
  PL_TRY_ASSIGN(const std::string origins, FormatOverflowTrace(report));
  PL_TRY(WriteFileAtomically(analyze, anomalies, /*durable=*/false));
  PL_TRY(WriteFileAtomically(trace, origins, /*durable=*/false));
  report.files = {analyze, trace};
  return {};
}

std::string Count(uint64_t count, std::string_view what, std::string_view plural) {
  return fmt::format("{} {}", count, count == 1 ? what : plural);
}

std::string ReasonText(const OverflowOrigin& origin) {
  switch (origin.reason) {
    case OverflowReason::kGiven:
      return "an input already; no recorded call before it on this rank put it out";
    case OverflowReason::kEscalated:
      return "inputs hold nothing worse than -Inf";
    case OverflowReason::kRequested:
      return fmt::format("inputs finite; {} is the number -Inf, as for a mask", origin.argument);
    case OverflowReason::kProduced:
      break;
  }
  if (!origin.argument.empty()) {
    return fmt::format("inputs finite; the number {} is not", origin.argument);
  }
  return "inputs finite";
}

}  // namespace

std::string RankLabel(const RankDirectory& directory) {
  return directory.rank ? fmt::format("rank {}", *directory.rank) : directory.name;
}

std::string OverflowAnswer(const OverflowReport& report) {
  if (report.found()) {
    const OverflowOrigin& first = report.analysis.origins.front();
    return fmt::format("first NaN/Inf: {} {}, {} is {} ({})",
                       RankLabel(report.ranks[first.rank].directory), first.name, first.value.path,
                       first.value.what, ReasonText(first));
  }
  const std::string examined =
      fmt::format("{} of {} in {} examined", Count(report.entries, "entry", "entries"),
                  Count(report.rank_count, "rank", "ranks"), Count(report.steps, "step", "steps"));
  if (report.bad_without_origin()) {
    return fmt::format("NaN/Inf in {}, but where it comes from is not known: {}",
                       Count(report.bad_entries, "entry", "entries"), examined);
  }
  if (!report.not_judged.empty()) {
    return fmt::format("no NaN/Inf found, but not everything could be judged: {}; {}", examined,
                       report.not_judged.front());
  }
  if (report.entries == 0) return fmt::format("nothing to judge: {}", examined);
  return fmt::format("no NaN/Inf: {}", examined);
}

Result<OverflowReport> CheckOverflow(const std::string& path, const OverflowCheckOptions& options) {
  PL_TRY_ASSIGN(const std::vector<StepToCheck> steps, StepsOf(path));
  OverflowReport report;
  for (const StepToCheck& step : steps) {
    report.step_directory = step.path;
    PL_TRY_ASSIGN(report.ranks, ScanRanks(step.ranks, options.threads));
    report.analysis = FindFirstOverflow(report.ranks);
    AddSums(report);
    if (report.found()) break;
  }
  if (!report.found()) return report;
  PL_TRY(AddAllDetails(report, options.threads));
  PL_TRY(WriteFiles(options.output_directory, report));
  return report;
}

}  // namespace plumbline
