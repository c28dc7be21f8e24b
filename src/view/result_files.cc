#include "view/result_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/file/file.h"
#include "formats/json/vis_json_reader.h"
#include "formats/sqlite/vis_db_reader.h"
#include "overflow/overflow_grade.h"
#include "plumbline/c_api.h"
#include "view/graph_writer.h"

namespace plumbline::view {
namespace {

using load::RankPair;

constexpr std::string_view kDbEnding = ".vis.db", kVisEnding = ".vis";

vis::GraphPlace PlaceOf(const RankPair& pair) {
  return {false, pair.step.value_or(0), pair.rank().value_or(0)};
}

// What a link says of a call: its overflow where those are graded, otherwise its level.
std::string LinkLevel(bool grades_overflow, std::optional<double> index,
                      std::string_view overflow) {
  if (grades_overflow) return overflow.empty() ? "Nan" : std::string(overflow);
  return index ? fmt::format("{}", *index) : "Nan";
}

std::string AbsoluteOr(const std::string& path) {
  const Result<std::string> absolute = AbsolutePath(path);
  return absolute ? *absolute : path;
}

Result<std::unique_ptr<vis::Source>> OpenSource(const std::string& path, bool is_db) {
  return is_db ? vis_db::Open(path) : vis_json::Open(path);
}

}  // namespace

ResultFiles::ResultFiles(const GraphFileOptions& options, const std::string& target,
                         const std::string& golden, bool has_many)
    : options_(options),
      target_(AbsoluteOr(options.sources.target.empty() ? target : options.sources.target)),
      golden_(golden.empty()
                  ? golden
                  : AbsoluteOr(options.sources.golden.empty() ? golden : options.sources.golden)),
      is_pair_(!golden.empty()),
      has_many_(has_many),
      begun_at_(std::chrono::duration_cast<std::chrono::nanoseconds>(
                    std::chrono::system_clock::now().time_since_epoch())
                    .count()) {
  if (options.resumes) {
    finished_ =
        FinishedRanks::In(options.output_dir, is_db() ? kDbEnding : kVisEnding, FileFacts());
  }
}

ResultFiles::~ResultFiles() {
  // A file that cannot be removed is hidden, and harms nobody.
  if (!is_finished_ && options_.resumes) return;
  for (const std::string& part : parts_) static_cast<void>(RemoveFile(part));
}

const std::string& ResultFiles::FingerprintFor(const RankPair& pair) {
  const auto [slot, is_new] = fingerprints_.try_emplace(pair.label());
  if (!is_new) return slot->second;
  const std::string form = fmt::format("{} {} {} {} {}", kind(), is_db() ? kDbEnding : kVisEnding,
                                       static_cast<int>(options_.stacks), options_.grades_overflow,
                                       options_.thresholds.overflow_norm_ratio);
  auto fingerprint = FingerprintOf(pair, options_.compare, form);
  // Without it the rank is made, and cannot be reused.
  if (fingerprint) slot->second = std::move(*fingerprint);
  return slot->second;
}

std::string ResultFiles::Prefix(const RankPair& pair) const {
  std::string prefix(kind());
  if (pair.step) prefix += fmt::format("_step{}", *pair.step);
  if (has_many_) prefix += fmt::format("_{}", pair.target->name);
  return prefix;
}

std::string ResultFiles::PathOfPart(std::string_view name) const {
  return JoinPath(options_.output_dir, fmt::format(".{}{}", name, kPartEnding));
}

Result<bool> ResultFiles::IsThere(const std::vector<RankPair>& pairs) {
  if (!options_.resumes || !is_db()) return false;
  std::vector<const FinishedRank*> found;
  for (const RankPair& pair : pairs) {
    const FinishedRank* const rank = finished_.Find(FingerprintFor(pair));
    const bool is_whole = rank != nullptr && !IsPart(rank->path) &&
                          rank->path == (found.empty() ? rank : found.front())->path;
    if (!is_whole) return false;
    found.push_back(rank);
  }
  PL_TRY_ASSIGN(const auto source, vis_db::Open(found.front()->path));
  const auto held = std::ranges::count_if(
      source->head().facts, [](const auto& fact) { return fact.first.starts_with("step"); });
  if (static_cast<size_t>(held) != pairs.size()) return false;
  for (size_t i = 0; i < pairs.size(); ++i) Count(pairs[i], found[i]->facts);
  report_.reused = pairs.size();
  report_.files.push_back(found.front()->path);
  return true;
}

Status ResultFiles::Begin() {
  PL_TRY(MakeDirectories(options_.output_dir));
  if (!is_db()) return {};
  name_.emplace(report::FreePath(options_.output_dir, kind(), kDbEnding));
  PL_TRY_ASSIGN(vis_db::Writer writer, vis_db::Writer::Create(name_->text));
  db_.emplace(std::move(writer));
  return {};
}

bool ResultFiles::Knows(const RankPair& pair) {
  return options_.resumes && finished_.Find(FingerprintFor(pair)) != nullptr;
}

Result<bool> ResultFiles::Reuse(const RankPair& pair) {
  PL_TRY(CloseStep(pair.step.value_or(0)));
  const FinishedRank* const finished = finished_.Find(FingerprintFor(pair));
  if (finished == nullptr) return false;
  auto pending = PendingOf(pair, *finished);
  if (!pending) return false;  // damaged since it was looked at
  if (db_) {
    PL_TRY(db_->Copy(finished->path, pending->place.step, pending->place.rank));
  } else if (IsPart(finished->path)) {
    pending->name.emplace(report::FreePath(options_.output_dir, Prefix(pair), kVisEnding));
    pending->to = pending->name->text;
  }
  Count(pair, finished->facts);
  ++report_.reused;
  pending_.push_back(std::move(*pending));
  return true;
}

Result<ResultFiles::Pending> ResultFiles::PendingOf(const RankPair& pair,
                                                    const FinishedRank& finished) {
  Pending pending{.place = PlaceOf(pair), .sides = {}};
  pending.from = pending.to = finished.path;
  PL_TRY_ASSIGN(const auto source, OpenSource(finished.path, is_db()));
  for (const bool is_golden : {false, true}) {
    const auto& directory = is_golden ? pair.golden : pair.target;
    if (is_golden && !is_pair_) continue;
    vis::GraphPlace place = pending.place;
    place.is_golden = is_golden;
    Side& side = pending.sides[is_golden ? 1 : 0].emplace();
    PL_TRY_ASSIGN(side.communication, ReadCommunication(directory->path, place.rank));
    if (side.communication.scan.calls.empty()) continue;
    PL_TRY_ASSIGN(const std::vector<vis::NodeRow> nodes, source->ReadNodes(place));
    for (const vis::NodeRow& node : nodes) {
      if (!node.name.starts_with("Distributed")) continue;
      side.levels[node.name] = LinkLevel(options_.grades_overflow, node.index, node.overflow_level);
    }
  }
  return pending;
}

Status ResultFiles::Add(const RankPair& pair, BuiltRank& rank) {
  PL_TRY(CloseStep(pair.step.value_or(0)));
  const RankFacts facts = FactsOf(pair, rank);
  Count(pair, facts);
  Pending pending{.place = PlaceOf(pair), .sides = {}};
  for (const bool is_golden : {false, true}) {
    if (is_golden && !rank.golden) continue;
    RecordedGraph& graph = is_golden ? *rank.golden : rank.target;
    Side& side = pending.sides[is_golden ? 1 : 0].emplace();
    side.communication = std::move(graph.communication);
    side.communication.scan.directory.rank = pending.place.rank;
    for (const CommCall& call : side.communication.scan.calls) {
      const Node* const node = graph.graph.Find(call.name);
      if (node == nullptr) continue;
      const auto index = node->level ? std::optional(vis::IndexOf(*node->level)) : std::nullopt;
      side.levels[call.name] =
          LinkLevel(options_.grades_overflow, index,
                    node->overflow ? OverflowLevelName(*node->overflow) : std::string_view());
    }
  }
  if (db_) {
    if (options_.resumes && has_many_) PL_TRY(WriteDbPart(pair, rank, facts));
    PL_TRY(WriteGraphs(pending.place, rank.target, rank.golden, *db_));
  } else {
    PL_TRY(WriteVis(pair, rank, facts, pending));
  }
  pending_.push_back(std::move(pending));
  return {};
}

Status ResultFiles::WriteDbPart(const RankPair& pair, BuiltRank& rank, const RankFacts& facts) {
  const report::FreeName name = report::FreePath(options_.output_dir, Prefix(pair), kDbEnding);
  const std::string path = PathOfPart(BaseName(name.text));
  PL_TRY_ASSIGN(vis_db::Writer part, vis_db::Writer::Create(path));
  PL_TRY(WriteGraphs(PlaceOf(pair), rank.target, rank.golden, part));
  vis::Facts all = FileFacts();
  const vis::GraphPlace place = PlaceOf(pair);
  all.emplace_back(RankFactsKey(place.step, place.rank), RankFactsText(facts));
  PL_TRY(part.Finish(SummaryOf(facts.micro_steps), all));
  parts_.push_back(path);
  return {};
}

Status ResultFiles::WriteVis(const RankPair& pair, BuiltRank& rank, const RankFacts& facts,
                             Pending& pending) {
  pending.name.emplace(report::FreePath(options_.output_dir, Prefix(pair), kVisEnding));
  pending.to = pending.name->text;
  pending.from = has_many_ ? PathOfPart(BaseName(pending.to)) : pending.to;
  PL_TRY_ASSIGN(vis_json::Writer file, vis_json::Writer::Create(pending.from, is_pair_));
  PL_TRY(WriteGraphs(pending.place, rank.target, rank.golden, file));
  vis::Facts all = FileFacts();
  all.emplace_back(RankFactsKey(pending.place.step, pending.place.rank), RankFactsText(facts));
  PL_TRY(file.Finish(SummaryOf(facts.micro_steps), all));
  if (has_many_) parts_.push_back(pending.from);
  return {};
}

RankFacts ResultFiles::FactsOf(const RankPair& pair, BuiltRank& rank) {
  RankFacts facts;
  const ModelGraph& graph = rank.target.graph;
  facts.nodes = graph.nodes.size() - 1;
  facts.micro_steps = graph.micro_steps;
  facts.overflows = static_cast<uint64_t>(std::ranges::count_if(
      graph.nodes, [](const Node& node) { return node.overflow.has_value(); }));
  facts.fingerprint = FingerprintFor(pair);
  const auto take_notes = [&](std::string_view side, const ModelGraph& of) {
    for (const std::string& note : of.notes) facts.notes.push_back(std::string(side) + note);
  };
  take_notes(is_pair_ ? "target: " : "", graph);
  if (rank.golden) {
    facts.golden_nodes = rank.golden->graph.nodes.size() - 1;
    take_notes("golden: ", rank.golden->graph);
  }
  facts.answer = std::move(rank.answer);
  if (facts.answer) facts.answer->label = pair.label();
  return facts;
}

void ResultFiles::Count(const RankPair& pair, const RankFacts& facts) {
  const vis::GraphPlace place = PlaceOf(pair);
  report_.nodes += facts.nodes;
  report_.golden_nodes += facts.golden_nodes;
  report_.overflows += facts.overflows;
  report_.micro_steps = std::max(report_.micro_steps, facts.micro_steps);
  for (const std::string& note : facts.notes) {
    report_.notes.push_back(has_many_ ? pair.label() + ": " + note : note);
  }
  if (facts.answer) {
    task_ = facts.answer->task;
    report_.answers.push_back(*facts.answer);
  }
  ranks_.insert(place.rank);
  steps_.insert(place.step);
  report_.ranks = ranks_.size();
  report_.steps = steps_.size();
  rank_facts_.emplace_back(RankFactsKey(place.step, place.rank), RankFactsText(facts));
}

Status ResultFiles::CloseStep(std::optional<int64_t> step) {
  if (pending_.empty() || pending_.front().place.step == step) return {};
  std::array<std::vector<TransferTexts>, 2> links;
  for (const size_t at : {size_t{0}, size_t{1}}) {
    std::vector<RankCommunication> ranks;
    for (Pending& rank : pending_) {
      if (rank.sides[at]) ranks.push_back(std::move(rank.sides[at]->communication));
    }
    links[at].resize(pending_.size());
    if (ranks.size() != pending_.size()) continue;
    links[at] = TransfersJson(ranks, LinkRanks(ranks), [&](size_t rank, std::string_view name) {
      const auto& levels = pending_[rank].sides[at]->levels;
      const auto found = levels.find(name);
      return found == levels.end() ? std::string("Nan") : found->second;
    });
  }
  PL_TRY(PlaceLinks(links));
  pending_.clear();
  return {};
}

Status ResultFiles::PlaceLinks(const std::array<std::vector<TransferTexts>, 2>& links) {
  for (size_t i = 0; i < pending_.size(); ++i) {
    const Pending& rank = pending_[i];
    if (!db_) {
      const bool is_linked = !links[0][i].empty() || !links[1][i].empty();
      if (!is_linked && IsPart(rank.from)) {
        PL_TRY(RenameFile(rank.from, rank.to));
      } else if (is_linked || options_.resumes) {
        PL_TRY(vis_json::WriteLinks(rank.from, rank.to, links[0][i], links[1][i]));
      }
      report_.files.push_back(rank.to);
      continue;
    }
    for (const bool is_golden : {false, true}) {
      vis::GraphPlace place = rank.place;
      place.is_golden = is_golden;
      for (const auto& [name, text] : links[is_golden ? 1 : 0][i]) {
        PL_TRY(db_->SetTransfers(place, name, text));
      }
    }
  }
  return {};
}

vis::Summary ResultFiles::SummaryOf(int64_t micro_steps) const {
  return {.task = task_,
          .micro_steps = micro_steps,
          .has_overflow_levels = options_.grades_overflow,
          .ranks = {ranks_.begin(), ranks_.end()},
          .steps = {steps_.begin(), steps_.end()}};
}

vis::Facts ResultFiles::FileFacts() const {
  vis::Facts facts = {{"tool", "plumbline " PLUMBLINE_VERSION}, {"status", "complete"}};
  facts.emplace_back("target", target_);
  if (is_pair_) facts.emplace_back("golden", golden_);
  return facts;
}

Result<GraphFileReport> ResultFiles::Finish() {
  PL_TRY(CloseStep(std::nullopt));
  if (db_) {
    vis::Facts facts = FileFacts();
    if (is_pair_) facts.emplace_back("answer", ComparisonAnswer(report_));
    facts.insert(facts.end(), rank_facts_.begin(), rank_facts_.end());
    PL_TRY(db_->Finish(SummaryOf(report_.micro_steps), facts));
    report_.files.push_back(name_->text);
  }
  is_finished_ = true;
  if (options_.resumes) {
    RemoveAbandoned(options_.output_dir, is_db() ? kDbEnding : kVisEnding, begun_at_);
  }
  parts_.insert(parts_.end(), finished_.parts().begin(), finished_.parts().end());
  return std::move(report_);
}

}  // namespace plumbline::view
