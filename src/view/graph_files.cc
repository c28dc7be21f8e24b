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
#include "plumbline/c_api.h"
#include "plumbline/compare.h"
#include "report/result_names.h"
#include "view/graph_writer.h"

namespace plumbline::view {
namespace {

using load::RankPair;

// Graphs that are built side by side: each needs memory for all its values.
constexpr size_t kMostAtOnce = 8;
constexpr std::string_view kDbEnding = ".vis.db", kVisEnding = ".vis";
constexpr std::string_view kStructureTask = "structure";

int64_t RankOf(const RankPair& pair) { return pair.rank().value_or(0); }

bool IsPart(std::string_view name) {
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
    if (!IsPart(name)) others += (others.empty() ? "" : ", ") + name;
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

// One rank, read and, with a golden side, compared.
struct BuiltRank {
  RecordedGraph target;
  std::optional<RecordedGraph> golden;
  std::optional<RankAnswer> answer;
};

vis::Task TaskOf(CompareMode mode) {
  if (mode == CompareMode::kDigest) return vis::kDigests;
  return mode == CompareMode::kTensor ? vis::kTensors : vis::kSummary;
}

// The first line of the answer of plumb compare.
std::string FirstLine(const Comparison& comparison) {
  const std::string text = SummaryText(comparison);
  return text.substr(0, text.find('\n'));
}

// Writes the ranks of one result, in order.
class ResultFiles {
 public:
  ResultFiles(const GraphFileOptions& options, bool is_pair, bool has_many)
      : options_(options), is_pair_(is_pair), has_many_(has_many) {}

  Status Begin() {
    PL_TRY(MakeDirectories(options_.output_dir));
    if (options_.type != GraphFileType::kDb) return {};
    name_.emplace(report::FreePath(options_.output_dir, kind(), kDbEnding));
    PL_TRY_ASSIGN(vis_db::Writer writer, vis_db::Writer::Create(name_->text));
    db_.emplace(std::move(writer));
    return {};
  }

  Status Add(const RankPair& pair, BuiltRank& rank) {
    const vis::GraphPlace place{false, pair.step.value_or(0), RankOf(pair)};
    Count(pair, place, rank);
    if (db_) return Write(place, rank, *db_);
    const report::FreeName name = report::FreePath(options_.output_dir, Prefix(pair), kVisEnding);
    PL_TRY_ASSIGN(vis_json::Writer file, vis_json::Writer::Create(name.text, is_pair_));
    PL_TRY(Write(place, rank, file));
    vis::Summary summary = SummaryOf();
    summary.micro_steps = rank.target.graph.micro_steps;
    PL_TRY(file.Finish(summary));
    report_.files.push_back(name.text);
    return {};
  }

  Result<GraphFileReport> Finish(const std::string& target, const std::string& golden) {
    report_.ranks = ranks_.size();
    report_.steps = steps_.size();
    if (!db_) return std::move(report_);
    vis_db::Facts facts = {{"tool", "plumbline " PLUMBLINE_VERSION}, {"status", "complete"}};
    const SourceNames& named = options_.sources;
    PL_TRY_ASSIGN(std::string path, AbsolutePath(named.target.empty() ? target : named.target));
    facts.emplace_back("target", std::move(path));
    if (is_pair_) {
      PL_TRY_ASSIGN(path, AbsolutePath(named.golden.empty() ? golden : named.golden));
      facts.emplace_back("golden", std::move(path));
    }
    PL_TRY(db_->Finish(SummaryOf(), facts));
    report_.files.push_back(name_->text);
    return std::move(report_);
  }

  std::vector<std::string>& notes() { return report_.notes; }

 private:
  [[nodiscard]] std::string_view kind() const { return is_pair_ ? "compare" : "build"; }

  [[nodiscard]] std::string Prefix(const RankPair& pair) const {
    std::string prefix(kind());
    if (pair.step) prefix += fmt::format("_step{}", *pair.step);
    if (has_many_) prefix += fmt::format("_{}", pair.target->name);
    return prefix;
  }

  template <class Writer>
  static Status Write(vis::GraphPlace place, BuiltRank& rank, Writer& writer) {
    PL_TRY(WriteGraph(place, rank.target, writer));
    if (!rank.golden) return {};
    place.is_golden = true;
    return WriteGraph(place, *rank.golden, writer);
  }

  void Count(const RankPair& pair, const vis::GraphPlace& place, BuiltRank& rank) {
    const ModelGraph& graph = rank.target.graph;
    report_.nodes += graph.nodes.size() - 1;  // the root is none of the model
    report_.micro_steps = std::max(report_.micro_steps, graph.micro_steps);
    report_.overflows += static_cast<uint64_t>(std::ranges::count_if(
        graph.nodes, [](const Node& node) { return node.overflow.has_value(); }));
    Note(pair, is_pair_ ? "target: " : "", graph);
    if (rank.golden) {
      report_.golden_nodes += rank.golden->graph.nodes.size() - 1;
      Note(pair, "golden: ", rank.golden->graph);
    }
    if (rank.answer) {
      rank.answer->label = pair.label();
      task_ = rank.answer->task;
      report_.answers.push_back(std::move(*rank.answer));
    }
    ranks_.insert(place.rank);
    steps_.insert(place.step);
  }

  void Note(const RankPair& pair, std::string_view side, const ModelGraph& graph) {
    for (const std::string& note : graph.notes) {
      const std::string where = has_many_ ? pair.label() + ": " : std::string();
      report_.notes.push_back(fmt::format("{}{}{}", where, side, note));
    }
  }

  [[nodiscard]] vis::Summary SummaryOf() const {
    return {.task = task_,
            .micro_steps = report_.micro_steps,
            .has_overflow_levels = options_.grades_overflow,
            .ranks = {ranks_.begin(), ranks_.end()},
            .steps = {steps_.begin(), steps_.end()}};
  }

  const GraphFileOptions& options_;
  const bool is_pair_, has_many_;
  std::string task_;
  GraphFileReport report_;
  std::set<int64_t> ranks_, steps_;
  std::optional<report::FreeName> name_;  // of the database
  std::optional<vis_db::Writer> db_;
};

BuildOptions BuildOptionsOf(const GraphFileOptions& options) {
  return {{.is_vis = options.type == GraphFileType::kVis}, options.stacks, options.grades_overflow};
}

// Builds some ranks side by side, then writes them.
Status BuildSome(std::span<const RankPair> pairs, const GraphFileOptions& options,
                 ResultFiles& files) {
  const BuildOptions build = BuildOptionsOf(options);
  std::vector<std::optional<Result<RecordedGraph>>> built(pairs.size());
  ParallelFor(pairs.size(), [&](size_t i) { built[i] = BuildGraph(pairs[i].target->path, build); });
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (!*built[i]) return built[i]->error();
    BuiltRank rank{std::move(**built[i]), std::nullopt, std::nullopt};
    built[i].reset();
    PL_TRY(files.Add(pairs[i], rank));
  }
  return {};
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
  rank.answer->answer = FirstLine(comparison);
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

Status WriteRanks(const std::vector<RankPair>& pairs, bool is_pair, const GraphFileOptions& options,
                  ResultFiles& files) {
  const std::span<const RankPair> all = pairs;
  for (size_t i = 0; i < all.size();) {
    if (is_pair) {
      PL_TRY_ASSIGN(BuiltRank rank, ComparePair(all[i], options));
      PL_TRY(files.Add(all[i], rank));
      ++i;
    } else {
      const size_t count = std::min(kMostAtOnce, all.size() - i);
      PL_TRY(BuildSome(all.subspan(i, count), options, files));
      i += count;
    }
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
  ResultFiles files(options, is_pair, !is_one);
  if (!is_one) NoteOthers(target, files.notes());
  std::set<std::string> seen;  // one side may stand for both
  std::ranges::copy_if(found.notes, std::back_inserter(files.notes()),
                       [&](const std::string& note) { return seen.insert(note).second; });
  PL_TRY_ASSIGN(const std::vector<RankPair> pairs,
                CommonRanks(target, golden, found, files.notes()));
  PL_TRY(files.Begin());
  Status written;
  RunWithThreads(options.compare.threads,
                 [&] { written = WriteRanks(pairs, is_pair, options, files); });
  PL_TRY(std::move(written));
  return files.Finish(target, golden);
}

}  // namespace plumbline::view
