#include "view/graph_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "plumbline/compare.h"
#include "view/build_graph.h"
#include "view/result_files.h"

namespace plumbline::view {
namespace {

using load::RankPair;

// Graphs that are built side by side: each needs memory for all its values.
constexpr size_t kMostAtOnce = 8;
constexpr std::string_view kStructureTask = "structure";

bool NamesPart(std::string_view name) {
  for (const std::string_view prefix : {"rank", "step", "proc"}) {
    if (name.starts_with(prefix)) return true;
  }
  return name.starts_with('.');
}

// What lies beside ranks and steps is named once, so that nobody misses what was left out.
void NoteOthers(const std::string& directory, std::vector<std::string>& notes) {
  if (KindOf(directory) != PathKind::kDirectory) return;
  const auto names = ListDirectory(directory);
  if (!names) return;
  std::string others;
  for (const std::string& name : *names) {
    if (!NamesPart(name)) others += (others.empty() ? "" : ", ") + name;
  }
  if (!others.empty()) {
    notes.push_back(fmt::format("{}: neither ranks nor steps, left out: {}", directory, others));
  }
}

Status CheckNumbers(const load::RankPairs& found) {
  for (const RankPair& pair : found.pairs) {
    if (pair.rank()) continue;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: its name says no rank, and there are others (expected "
                             "rank{{R}}). Name the directory of one rank.",
                             (pair.target ? pair.target : pair.golden)->path));
  }
  return {};
}

vis::Task TaskOf(CompareMode mode) {
  if (mode == CompareMode::kDigest) return vis::kDigests;
  return mode == CompareMode::kTensor ? vis::kTensors : vis::kSummary;
}

BuildOptions BuildOptionsOf(const GraphFileOptions& options) {
  return {.form = {.is_vis = options.type == GraphFileType::kVis},
          .stacks = options.stacks,
          .grades_overflow = options.grades_overflow,
          .overflow_norm_ratio = options.thresholds.overflow_norm_ratio};
}

// Whether both recordings hold no values by their task.
bool AreStructures(const RecordedGraph& target, const RecordedGraph& golden) {
  return target.task == kStructureTask && golden.task == kStructureTask;
}

Result<BuiltRank> BuildPair(const RankPair& pair, const BuildOptions& build) {
  std::optional<Result<RecordedGraph>> target, golden;
  RunBoth([&] { target = BuildGraph(pair.target->path, build); },
          [&] { golden = BuildGraph(pair.golden->path, build); });
  if (!*target) return target->error();
  if (!*golden) return golden->error();
  return BuiltRank{std::move(**target), std::move(**golden), RankAnswer{}};
}

// Fills the answer of a pair that was compared, and what its nodes show.
void FillAnswer(const Comparison& comparison, const ValueForm& form, BuiltRank& rank) {
  rank.answer->task = TaskOf(comparison.mode);
  rank.answer->text = SummaryText(comparison);
  rank.answer->answer = rank.answer->text.substr(0, rank.answer->text.find('\n'));
  rank.answer->first_wrong_call = comparison.first_wrong_call;
  rank.answer->is_complete = comparison.is_complete();
  rank.answer->counts = CompareGraphs(comparison, form, rank.target.graph, rank.golden->graph);
}

Result<BuiltRank> ComparePair(const RankPair& pair, const GraphFileOptions& options) {
  BuildOptions build = BuildOptionsOf(options);
  std::optional<Result<BuiltRank>> built;
  std::optional<Result<Comparison>> compared;
  RunBoth([&] { built = BuildPair(pair, build); },
          [&] { compared = CompareRuns(pair.target->path, pair.golden->path, options.compare); });
  if (!*built) return built->error();
  BuiltRank& rank = **built;
  if (!*compared) {
    if (!AreStructures(rank.target, *rank.golden)) return compared->error();
    rank.answer->task = vis::kStructure;
    rank.answer->counts = PairGraphs(rank.target.graph, rank.golden->graph);
    return std::move(rank);
  }
  if ((*compared)->mode == CompareMode::kDigest && !build.form.is_vis) {
    build.form.has_digests = true;  // which only this mode shows
    PL_TRY_ASSIGN(rank, BuildPair(pair, build));
  }
  if (options.compared) options.compared(**compared);
  FillAnswer(**compared, build.form, rank);
  return std::move(rank);
}

// The ranks that both sides have; a note on the others.
Result<std::vector<RankPair>> CommonRanks(const std::string& target, const std::string& golden,
                                          const load::RankPairs& found,
                                          std::vector<std::string>& notes) {
  std::vector<RankPair> common;
  for (const RankPair& pair : found.pairs) {
    if (pair.paired()) {
      common.push_back(pair);
    } else {
      notes.push_back(
          fmt::format("{}: only in {}, left out", pair.label(), pair.target ? target : golden));
    }
  }
  if (!common.empty()) return common;
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: no rank and step that {} has too", target, golden));
}

Result<BuiltRank> BuildOne(const RankPair& pair, const GraphFileOptions& options) {
  if (pair.golden) return ComparePair(pair, options);
  PL_TRY_ASSIGN(RecordedGraph graph, BuildGraph(pair.target->path, BuildOptionsOf(options)));
  return BuiltRank{std::move(graph), std::nullopt, std::nullopt};
}

// Makes some ranks side by side, but those that are there already, then writes them.
Status WriteSome(std::span<const RankPair> pairs, const GraphFileOptions& options,
                 ResultFiles& files) {
  std::vector<std::optional<Result<BuiltRank>>> built(pairs.size());
  std::vector<size_t> wanted;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (!files.Knows(pairs[i])) wanted.push_back(i);
  }
  ParallelFor(wanted.size(),
              [&](size_t i) { built[wanted[i]] = BuildOne(pairs[wanted[i]], options); });
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (!built[i]) {
      PL_TRY_ASSIGN(const bool is_reused, files.Reuse(pairs[i]));
      if (is_reused) continue;
      built[i] = BuildOne(pairs[i], options);
    }
    if (!*built[i]) return built[i]->error();
    PL_TRY(files.Add(pairs[i], **built[i]));
    built[i].reset();
  }
  return {};
}

Status WriteRanks(const std::vector<RankPair>& pairs, bool is_pair, const GraphFileOptions& options,
                  ResultFiles& files) {
  const std::span<const RankPair> all = pairs;
  for (size_t i = 0; i < all.size();) {
    // A comparison has work for all threads.
    const size_t count = std::min(is_pair ? 1 : kMostAtOnce, all.size() - i);
    PL_TRY(WriteSome(all.subspan(i, count), options, files));
    i += count;
    if (options.progress) options.progress(i, all.size());
  }
  return {};
}

}  // namespace

Result<GraphFileReport> WriteGraphFiles(const std::string& target, const std::string& golden,
                                        const GraphFileOptions& options) {
  const bool is_pair = !golden.empty();
  PL_TRY_ASSIGN(const load::RankPairs found,
                load::FindRankPairs(target, is_pair ? golden : target, options.filter));
  PL_TRY(CheckNumbers(found));
  const bool is_one = found.pairs.size() == 1 && found.pairs.front().target &&
                      found.pairs.front().target->path == target;
  ResultFiles files(options, target, golden, !is_one);
  if (!is_one) NoteOthers(target, files.notes());
  std::set<std::string> seen;  // one side may stand for both
  std::ranges::copy_if(found.notes, std::back_inserter(files.notes()),
                       [&](const std::string& note) { return seen.insert(note).second; });
  PL_TRY_ASSIGN(std::vector<RankPair> pairs, CommonRanks(target, golden, found, files.notes()));
  if (!is_pair) {
    for (RankPair& pair : pairs) pair.golden.reset();
  }
  PL_TRY_ASSIGN(const bool is_there, files.IsThere(pairs));
  if (is_there) return files.Finish();
  PL_TRY(files.Begin());
  Status written;
  RunWithThreads(options.compare.threads,
                 [&] { written = WriteRanks(pairs, is_pair, options, files); });
  PL_TRY(std::move(written));
  return files.Finish();
}

}  // namespace plumbline::view
