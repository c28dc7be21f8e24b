#include "overflow/overflow_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/number_text.h"
#include "formats/json/dump_json.h"
#include "formats/json/json_feed.h"
#include "load/detect.h"
#include "load/rank_directories.h"
#include "overflow/steps_to_check.h"
#include "record/run_files.h"

namespace plumbline {

namespace {

constexpr size_t kMaxNotes = 20;  // of one kind, before the rest is only counted

using load::RankDirectory;

using RankResults = std::vector<std::optional<Result<RankScan>>>;

// Reads them, or takes what others have read of them.
RankResults ScansOf(const std::vector<RankDirectory>& directories,
                    const OverflowCheckOptions& options, std::span<ScannedRank> done) {
  RankResults results(directories.size());
  for (size_t i = 0; i < done.size(); ++i) results[i] = done[i].Take();
  if (!done.empty()) return results;
  RunWithThreads(options.threads, [&] {
    ParallelFor(directories.size(), [&](size_t i) { results[i] = ScanRank(directories[i]); });
  });
  return results;
}

// Fills report.ranks; names the ranks that cannot be read.
Status TakeRanks(const std::vector<RankDirectory>& directories, RankResults results,
                 OverflowReport& report) {
  report.ranks.clear();
  size_t unreadable = 0;
  const Error* first = nullptr;
  for (size_t i = 0; i < results.size(); ++i) {
    if (*results[i]) {
      report.ranks.push_back(std::move(**results[i]));
      continue;
    }
    const Error& error = results[i]->error();
    if (first == nullptr) first = &error;
    if (++unreadable > kMaxNotes) continue;
    report.not_judged.push_back(
        fmt::format("{} is not judged: {}", RankLabel(directories[i]), error.message()));
  }
  if (report.ranks.empty() && first != nullptr) return *first;
  if (unreadable > kMaxNotes) {
    report.not_judged.push_back(
        fmt::format("{} more ranks that cannot be read", unreadable - kMaxNotes));
  }
  report.ranks_not_judged += unreadable;
  return {};
}

// The first of some ranks, and how many there are.
struct RankList {
  std::vector<int64_t> first;  // at most kMaxNotes
  uint64_t count = 0;
};

// Ranks 0 to `highest` without a directory. A name may hold any number: not all are gone through.
RankList GapsBelow(int64_t highest, const std::set<int64_t>& there) {
  RankList gaps;
  for (int64_t rank = 0; rank <= highest && gaps.first.size() < kMaxNotes; ++rank) {
    if (!there.contains(rank)) gaps.first.push_back(rank);
    if (rank == highest) break;
  }
  gaps.count = static_cast<uint64_t>(highest) + 1 - there.size();
  return gaps;
}

void NoteRanks(const RankList& ranks, std::string_view which, OverflowReport& report) {
  if (ranks.count == 0) return;
  report.not_judged.push_back(fmt::format(
      "{}: no directory for {} of the ranks {}: {}{}", report.step_directory, ranks.count, which,
      fmt::join(ranks.first, ", "), ranks.first.size() < ranks.count ? ", ..." : ""));
  report.ranks_not_judged += ranks.count;
}

// Ranks that the numbers of the others or process groups tell of, and the step lacks. `highest`:
// of the steps together, -1 when no rank has a number.
void NoteAbsentRanks(const StepToCheck& step, int64_t highest, OverflowReport& report) {
  std::set<int64_t> there, named;
  for (const RankDirectory& directory : step.ranks) {
    if (directory.rank) there.insert(*directory.rank);
  }
  for (const RankScan& scan : report.ranks) {
    for (const CommGroup& group : scan.groups) named.insert(group.ranks.begin(), group.ranks.end());
  }
  // Whoever names one rank does not ask about the others.
  if (step.is_rank) highest = -1;
  if (highest >= 0) NoteRanks(GapsBelow(highest, there), fmt::format("up to {}", highest), report);
  RankList absent;
  for (const int64_t rank : named) {
    if ((rank >= 0 && rank <= highest) || there.contains(rank)) continue;
    ++absent.count;
    if (absent.first.size() < kMaxNotes) absent.first.push_back(rank);
  }
  NoteRanks(absent, "that process groups name", report);
}

// Files where the directory of a rank is expected, such as an archive that was never unpacked.
Status NoteFilesNamedLikeRanks(const StepToCheck& step, OverflowReport& report) {
  if (step.is_rank) return {};
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(step.path));
  for (const std::string& name : names) {
    constexpr std::string_view kRank = "rank";
    if (!name.starts_with(kRank)) continue;
    if (name.find_first_not_of("0123456789", kRank.size()) != name.npos) continue;
    const std::string path = JoinPath(step.path, name);
    if (KindOf(path) == PathKind::kDirectory) continue;
    report.not_judged.push_back(fmt::format("{}: not a directory (expected that of a rank)", path));
  }
  return {};
}

int64_t HighestRank(const std::vector<StepToCheck>& steps) {
  int64_t highest = -1;
  for (const StepToCheck& step : steps) {
    for (const RankDirectory& directory : step.ranks) {
      highest = std::max(highest, directory.rank.value_or(-1));
    }
  }
  return highest;
}

void NoteCommunication(const OverflowReport& report, std::vector<std::string>& notes) {
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
    report.calls_searched += scan.calls_searched;
    report.hits_origin += scan.hits_origin;
    report.hits_propagated += scan.hits_propagated;
    report.hits_unknown += scan.hits_unknown;
    report.hits_saturated += scan.hits_saturated;
    tensors += scan.tensors;
    report.ranks_not_judged += scan.entries == 0 && !scan.notes.empty() ? 1 : 0;
    report.judged_anything = report.judged_anything || scan.judged();
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

std::vector<std::string> HierarchyOf(const std::string& name, const dump_json::CallTree& tree) {
  std::unordered_map<std::string_view, std::string_view> parents;
  for (const auto& row : tree.rows) parents.emplace(row.name, row.parent);
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
  return row != rows.end() ? *row->second : std::vector<std::string>();
}

// A search records hits alone; stack.json lists the calls that were fine too, in order.
std::vector<std::string> CallsBefore(const std::string& name, const dump_json::StackTable& rows) {
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.first == name; });
  if (row == rows.end()) return {};
  std::vector<std::string> before;
  const auto count = std::min<std::ptrdiff_t>(row - rows.begin(), kPreviousEntries);
  for (auto at = row - count; at != row; ++at) before.push_back(at->first);
  return before;
}

Result<OverflowDetails> ReadDetails(const OverflowReport& report, size_t index) {
  const OverflowOrigin& origin = report.analysis.origins[index];
  const std::string& directory = report.ranks[origin.rank].directory.path;
  OverflowDetails details;
  details.origin = index;
  const std::string path = JoinPath(directory, run_files::kDumpJson);
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  if (origin.place.end > text.size()) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: changed while it was read", path));
  }
  details.data = text.substr(origin.place.begin, origin.place.end - origin.place.begin);
  details.hints = HintsOf(origin.name, origin.place, text);
  // The finding stands without them.
  const auto tree = dump_json::ReadCallTree(JoinPath(directory, run_files::kConstructJson));
  if (!tree) details.problem = tree.error().message();
  details.hierarchy = HierarchyOf(origin.name, tree.value_or(dump_json::CallTree()));
  const auto stacks = dump_json::ReadStack(JoinPath(directory, run_files::kStackJson));
  if (!stacks) details.problem = stacks.error().message();
  details.stack = StackOf(origin.name, stacks.value_or(dump_json::StackTable()));
  if (stacks && report.ranks[origin.rank].task == "overflow_check") {
    std::vector<std::string> before = CallsBefore(origin.name, *stacks);
    if (!before.empty()) details.hints.previous = std::move(before);
  }
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
    const std::string& problem = report.details.back().problem;
    if (!problem.empty()) report.not_judged.push_back(problem);
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

std::string ReasonText(const OverflowOrigin& origin) {
  switch (origin.reason) {
    case OverflowReason::kGiven:
      return "an input already; no recorded call before it on this rank put it out";
    case OverflowReason::kEscalated:
      return "inputs hold nothing worse than -Inf";
    case OverflowReason::kRequested:
      return fmt::format("inputs finite; {} is the number -Inf, as for a mask", origin.argument);
    case OverflowReason::kFlagged:
      return "its inputs are not known";
    case OverflowReason::kProduced:
      break;
  }
  if (!origin.argument.empty()) {
    return fmt::format("inputs finite; the number {} is not", origin.argument);
  }
  return "inputs finite";
}

// "4 ranks in 2 steps"; of one rank "3 steps".
std::string Where(const OverflowReport& report) {
  const std::string steps = CountText(report.steps, "step");
  if (report.steps > 1 && report.rank_count == report.steps) return steps;
  return fmt::format("{} in {}", CountText(report.rank_count, "rank"), steps);
}

}  // namespace

std::string RankLabel(const RankDirectory& directory) {
  return directory.rank ? fmt::format("rank {}", *directory.rank) : directory.name;
}

std::string OverflowAnswer(const OverflowReport& report) {
  if (report.found()) {
    const OverflowOrigin& first = report.analysis.origins.front();
    const uint64_t missing = report.ranks_not_judged;  // one of them may have been earlier
    return fmt::format("first NaN/Inf: {} {}, {} is {} ({}){}",
                       RankLabel(report.ranks[first.rank].directory), first.name, first.value.path,
                       first.value.what, ReasonText(first),
                       missing > 0 ? "; not judged: " + CountText(missing, "rank") : "");
  }
  const std::string examined = fmt::format(
      "{} of {} examined", CountText(report.entries, "entry", "entries"), Where(report));
  if (report.bad_without_origin()) {
    return fmt::format("NaN/Inf in {}, but where it comes from is not known: {}",
                       CountText(report.bad_entries, "entry", "entries"), examined);
  }
  if (!report.not_judged.empty()) {
    const size_t more = report.not_judged.size() - 1;
    return fmt::format("{}: {}; {}{}",
                       report.judged_anything
                           ? "no NaN/Inf found, but not everything could be judged"
                           : "nothing to judge",
                       examined, report.not_judged.front(),
                       more > 0 ? fmt::format("; and {}", CountText(more, "more reason")) : "");
  }
  if (report.entries == 0) {
    return fmt::format("no NaN/Inf: task overflow_check found none in {} of {}",
                       CountText(report.calls_searched, "call"), Where(report));
  }
  return fmt::format("no NaN/Inf: {}", examined);
}

std::string RecordedHitsText(const OverflowReport& report) {
  std::string text;
  for (const auto& [count, word] :
       {std::pair(report.hits_origin, "origin"), std::pair(report.hits_propagated, "propagated"),
        std::pair(report.hits_unknown, "unknown"), std::pair(report.hits_saturated, "saturated")}) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, word);
  }
  return text;
}

Result<OverflowReport> CheckOverflow(const std::string& path, const OverflowCheckOptions& options,
                                     std::vector<ScannedRank> scans) {
  PL_TRY_ASSIGN(const std::vector<StepToCheck> steps, StepsToCheck(path));
  const int64_t highest = HighestRank(steps);
  OverflowReport report;
  std::span<ScannedRank> left(scans);
  for (const StepToCheck& step : steps) {
    report.step_directory = step.path;
    const std::span<ScannedRank> done = left.first(std::min(step.ranks.size(), left.size()));
    left = left.subspan(done.size());
    PL_TRY(TakeRanks(step.ranks, ScansOf(step.ranks, options, done), report));
    NoteAbsentRanks(step, highest, report);
    PL_TRY(NoteFilesNamedLikeRanks(step, report));
    report.analysis = FindFirstOverflow(report.ranks);
    AddSums(report);
    if (report.found()) break;
  }
  if (!report.judged_anything && report.not_judged.empty()) {
    report.not_judged.push_back(fmt::format("{}: no tensors recorded", path));
  }
  if (!report.found()) return report;
  PL_TRY(AddAllDetails(report, options.threads));
  PL_TRY(WriteFiles(options.output_directory, report));
  return report;
}

namespace {

using json::Document;

std::string_view KindName(const OverflowOrigin& origin) {
  return origin.is_communication ? "communication" : "compute";
}

std::string_view PhaseName(OverflowPhase phase) {
  switch (phase) {
    case OverflowPhase::kBefore:
      return "before communication";
    case OverflowPhase::kDuring:
      return "during communication";
    case OverflowPhase::kAfter:
      return "after communication";
  }
  return "before communication";
}

void AddBad(const BadValue& bad, Document& out) {
  out.Open('{');
  out.Member("path", bad.path);
  out.Member("value", bad.what);
  if (!bad.max.empty()) {
    out.Member("Max", bad.max);
    out.Member("Min", bad.min);
  }
  out.Close('}');
}

void AddOptionalBad(std::string_view key, const std::optional<BadValue>& bad, Document& out) {
  out.Key(key);
  if (bad) {
    AddBad(*bad, out);
  } else {
    out.Raw("null");
  }
}

// The members that are plumbline's own.
void AddFacts(const OverflowOrigin& origin, Document& out) {
  out.Member("kind", KindName(origin));
  out.Member("phase", PhaseName(origin.phase));
  out.Number("layer", origin.layer);
  out.Number("sub_layer", origin.place.sub_layer);
  out.Number("index", origin.place.index);
  out.Member("reason", OverflowReasonName(origin.reason));
  out.Truth("minor", origin.is_minor);
  out.Key("evidence");
  AddBad(origin.value, out);
  if (!origin.argument.empty()) out.Member("argument", origin.argument);
}

// Upstream's key of a rank: rank_0.
std::string RankKey(const load::RankDirectory& directory) {
  return directory.rank ? fmt::format("rank_{}", *directory.rank) : directory.name;
}

void AddDetails(const OverflowReport& report, const OverflowDetails& details, Document& out) {
  const OverflowOrigin& origin = report.analysis.origins[details.origin];
  out.Open('{');
  out.Member("op_name", origin.name);
  out.Key("data_info");
  out.Raw(details.data);
  out.Texts("construct_info", details.hierarchy);
  if (details.stack.empty()) {
    out.Key("stack_info");
    out.Raw("{}");
  } else {
    out.Texts("stack_info", details.stack);
  }
  AddFacts(origin, out);
  AddHints(details.hints, out);
  out.Close('}');
}

void AddNode(const OverflowReport& report, const CommNode& node, Document& out) {
  const RankScan& scan = report.ranks[node.rank];
  const CommCall& call = scan.calls[node.call];
  out.Open('{');
  out.Member("rank", RankKey(scan.directory));
  out.Member("op_name", call.name);
  out.Number("layer", report.analysis.graph.layers[node.rank][node.call]);
  AddOptionalBad("input", call.bad_input, out);
  AddOptionalBad("output", call.bad_output, out);
  out.Truth("complete", call.has_output);
  out.Close('}');
}

// Only the ends that are bad: a collective call of a thousand ranks has a thousand others.
void AddEnds(const OverflowReport& report, std::string_view key, const std::vector<CommNode>& nodes,
             bool inputs, Document& out) {
  out.Key(key);
  out.Open('[');
  for (const CommNode& node : nodes) {
    const CommCall& call = report.ranks[node.rank].calls[node.call];
    if (inputs ? call.bad_input.has_value() : call.bad_output || !call.has_output) {
      AddNode(report, node, out);
    }
  }
  out.Close(']');
}

bool CarriesBadValues(const OverflowReport& report, const CommLink& link) {
  const auto call = [&](const CommNode& node) -> const CommCall& {
    return report.ranks[node.rank].calls[node.call];
  };
  return std::any_of(link.from.begin(), link.from.end(),
                     [&](const CommNode& node) { return call(node).bad_input.has_value(); }) ||
         std::any_of(link.to.begin(), link.to.end(),
                     [&](const CommNode& node) { return call(node).bad_output.has_value(); });
}

std::vector<const CommLink*> BadLinks(const OverflowReport& report) {
  std::vector<const CommLink*> links;
  for (const CommLink& link : report.analysis.graph.links) {
    if (CarriesBadValues(report, link)) links.push_back(&link);
  }
  const auto first_of = [](const CommLink* link) {
    return link->from.empty() ? link->to.front() : link->from.front();
  };
  const auto& layers = report.analysis.graph.layers;
  std::stable_sort(links.begin(), links.end(), [&](const CommLink* a, const CommLink* b) {
    const CommNode x = first_of(a), y = first_of(b);
    return std::tie(layers[x.rank][x.call], x) < std::tie(layers[y.rank][y.call], y);
  });
  return links;
}

void AddOrigins(const OverflowReport& report, Document& out) {
  out.Key("origins");
  out.Open('[');
  for (const OverflowOrigin& origin : report.analysis.origins) {
    out.Open('{');
    out.Member("rank", RankKey(report.ranks[origin.rank].directory));
    out.Member("op_name", origin.name);
    AddFacts(origin, out);
    out.Close('}');
  }
  out.Close(']');
}

void AddCounts(const OverflowReport& report, Document& out) {
  out.Member("step", report.step_directory);
  out.Number("steps", report.steps);
  out.Number("ranks", report.rank_count);
  out.Number("ranks_not_judged", report.ranks_not_judged);
  out.Number("entries", report.entries);
  out.Number("bad_entries", report.bad_entries);
  out.Number("tensors", report.tensors);
  out.Number("tensors_not_judged", report.tensors_not_judged);
  out.Key("recorded_hits");
  out.Open('{');
  out.Number("origin", report.hits_origin);
  out.Number("propagated", report.hits_propagated);
  out.Number("unknown", report.hits_unknown);
  out.Number("saturated", report.hits_saturated);
  out.Close('}');
  out.Texts("not_judged", report.not_judged);
}

}  // namespace

Result<std::string> FormatAnomalies(const OverflowReport& report) {
  Document out;
  out.Open('{');
  for (const OverflowDetails& details : report.details) {
    const OverflowOrigin& origin = report.analysis.origins[details.origin];
    out.Key(RankKey(report.ranks[origin.rank].directory));
    out.Open('[');
    AddDetails(report, details, out);
    out.Close(']');
  }
  out.Close('}');
  return out.Finish();
}

Result<std::string> FormatOverflowTrace(const OverflowReport& report) {
  Document out;
  out.Open('{');
  AddCounts(report, out);
  AddOrigins(report, out);
  out.Key("transfers");
  out.Open('[');
  for (const CommLink* link : BadLinks(report)) {
    out.Open('{');
    out.Member("api", link->api);
    AddEnds(report, "from", link->from, true, out);
    AddEnds(report, "to", link->to, false, out);
    out.Close('}');
  }
  out.Close(']');
  out.Close('}');
  return out.Finish();
}

Result<std::string> FormatOverflowResult(const OverflowReport& report) {
  Document out;
  out.Open('{');
  out.Member("answer", OverflowAnswer(report));
  out.Truth("found", report.found());
  out.Key("first");
  if (report.found()) {
    const auto first = std::find_if(report.details.begin(), report.details.end(),
                                    [](const OverflowDetails& d) { return d.origin == 0; });
    AddDetails(report, *first, out);
  } else {
    out.Raw("null");
  }
  AddOrigins(report, out);
  AddCounts(report, out);
  out.Texts("files", report.files);
  out.Close('}');
  return out.Finish();
}

}  // namespace plumbline
