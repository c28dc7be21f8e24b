#include "view/graph_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "plumbline/c_api.h"
#include "report/result_names.h"
#include "view/graph_writer.h"

namespace plumbline::view {
namespace {

using load::RankPair;

// Ranks that are built side by side: each needs memory for all its values.
constexpr size_t kMostAtOnce = 8;
constexpr std::string_view kDbEnding = ".vis.db", kVisEnding = ".vis";

std::string Prefix(const RankPair& pair, bool is_one_of_many) {
  std::string prefix = "build";
  if (pair.step) prefix += fmt::format("_step{}", *pair.step);
  if (is_one_of_many) prefix += fmt::format("_{}", pair.target->name);
  return prefix;
}

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

Status CheckNumbers(const std::string& path, const load::RankPairs& found) {
  for (const RankPair& pair : found.pairs) {
    if (pair.rank()) continue;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: {} says no rank, and there are others (expected rank{{R}}). "
                             "Name the directory of one rank.",
                             path, pair.target->name));
  }
  return {};
}

// Writes the ranks of one result, in order.
class BuildRun {
 public:
  BuildRun(const GraphFileOptions& options, bool has_many)
      : options_(options), has_many_(has_many) {}

  Status Begin() {
    PL_TRY(MakeDirectories(options_.output_dir));
    if (options_.type != GraphFileType::kDb) return {};
    name_.emplace(report::FreePath(options_.output_dir, "build", kDbEnding));
    PL_TRY_ASSIGN(vis_db::Writer writer, vis_db::Writer::Create(name_->text));
    db_.emplace(std::move(writer));
    return {};
  }

  Status Add(const RankPair& pair, RecordedGraph& recorded) {
    const vis::GraphPlace place{false, pair.step.value_or(0), RankOf(pair)};
    Count(place, recorded);
    if (db_) return WriteGraph(place, recorded, *db_);
    const report::FreeName name =
        report::FreePath(options_.output_dir, Prefix(pair, has_many_), kVisEnding);
    PL_TRY_ASSIGN(vis_json::Writer file, vis_json::Writer::Create(name.text, /*is_pair=*/false));
    PL_TRY(WriteGraph(place, recorded, file));
    vis::Summary summary = SummaryOf();
    summary.micro_steps = recorded.graph.micro_steps;
    PL_TRY(file.Finish(summary));
    report_.files.push_back(name.text);
    return {};
  }

  Result<GraphFileReport> Finish(const std::string& path) {
    report_.ranks = ranks_.size();
    report_.steps = steps_.size();
    if (!db_) return std::move(report_);
    vis_db::Facts facts = {{"tool", "plumbline " PLUMBLINE_VERSION}, {"status", "complete"}};
    PL_TRY_ASSIGN(std::string target, AbsolutePath(path));
    facts.emplace_back("target", std::move(target));
    PL_TRY(db_->Finish(SummaryOf(), facts));
    report_.files.push_back(name_->text);
    return std::move(report_);
  }

  GraphFileReport& report() { return report_; }

 private:
  void Count(const vis::GraphPlace& place, const RecordedGraph& recorded) {
    const ModelGraph& graph = recorded.graph;
    report_.nodes += graph.nodes.size() - 1;  // the root is none of the model
    report_.micro_steps = std::max(report_.micro_steps, graph.micro_steps);
    report_.overflows += static_cast<uint64_t>(
        std::ranges::count_if(graph.nodes, [](const Node& node) { return node.overflow.has_value(); }));
    for (const std::string& note : graph.notes) {
      report_.notes.push_back(has_many_ ? fmt::format("rank {}: {}", place.rank, note) : note);
    }
    ranks_.insert(place.rank);
    steps_.insert(place.step);
  }

  [[nodiscard]] vis::Summary SummaryOf() const {
    return {.micro_steps = report_.micro_steps,
            .has_overflow_levels = options_.grades_overflow,
            .ranks = {ranks_.begin(), ranks_.end()},
            .steps = {steps_.begin(), steps_.end()}};
  }

  const GraphFileOptions& options_;
  const bool has_many_;
  GraphFileReport report_;
  std::set<int64_t> ranks_, steps_;
  std::optional<report::FreeName> name_;  // of the database
  std::optional<vis_db::Writer> db_;
};

// Builds some ranks side by side, then writes them.
Status BuildSome(std::span<const RankPair> pairs, const GraphFileOptions& options, BuildRun& run) {
  const bool is_vis = options.type == GraphFileType::kVis;
  const BuildOptions build{{.is_vis = is_vis}, options.stacks, options.grades_overflow};
  std::vector<std::optional<Result<RecordedGraph>>> built(pairs.size());
  RunWithThreads(options.threads, [&] {
    ParallelFor(pairs.size(),
                [&](size_t i) { built[i] = BuildGraph(pairs[i].target->path, build); });
  });
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (!*built[i]) return built[i]->error();
    PL_TRY(run.Add(pairs[i], **built[i]));
    built[i].reset();
  }
  return {};
}

}  // namespace

Result<GraphFileReport> WriteGraphFiles(const std::string& path, const GraphFileOptions& options) {
  PL_TRY_ASSIGN(load::RankPairs found, load::FindRankPairs(path, path, options.filter));
  PL_TRY(CheckNumbers(path, found));
  const bool is_one = found.pairs.size() == 1 && found.pairs.front().target->path == path;
  BuildRun run(options, !is_one);
  if (!is_one) NoteOthers(path, run.report().notes);
  std::set<std::string> seen;  // notes of both sides, which are one
  for (const std::string& note : found.notes) {
    if (seen.insert(note).second) run.report().notes.push_back(note);
  }
  PL_TRY(run.Begin());
  const std::span<const RankPair> pairs = found.pairs;
  for (size_t i = 0; i < pairs.size(); i += kMostAtOnce) {
    const size_t count = std::min(kMostAtOnce, pairs.size() - i);
    PL_TRY(BuildSome(pairs.subspan(i, count), options, run));
    if (options.progress) options.progress(i + count, pairs.size());
  }
  return run.Finish(path);
}

std::string GraphAnswer(const GraphFileReport& report) {
  std::string text = fmt::format(
      "graph of {}: {}, {}, {}", CountText(report.nodes, "node"), CountText(report.ranks, "rank"),
      CountText(report.steps, "step"),
      CountText(static_cast<uint64_t>(report.micro_steps), "micro step"));
  if (report.overflows > 0) {
    text += fmt::format("; {} with NaN, Inf or a jump of norms",
                        CountText(report.overflows, "node"));
  }
  return text;
}

}  // namespace plumbline::view
