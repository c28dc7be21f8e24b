#include "ranks/rank_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "base/process/log.h"
#include "base/text/number_text.h"
#include "formats/json/json_feed.h"
#include "match/comm_graph.h"
#include "report/certainty.h"
#include "report/findings.h"
#include "report/result_json.h"

namespace plumbline::ranks {

namespace {

using json::Document;

constexpr size_t kMaxLines = 16;  // of one kind on a terminal; the machine form has all

// Whether the ranks are the steps of one: then answers count steps.
bool AreSteps(const RanksReport& report) {
  std::set<std::optional<int64_t>> steps;
  for (const ComparedRank& rank : report.ranks) steps.insert(rank.pair.step);
  return report.has_steps && steps.size() > 1 && steps.size() == report.ranks.size();
}

// "3 ranks", "1 rank of step 2", "8 ranks of 4 steps", "2 steps" of one rank; with `kind` "compared
// " "3 compared ranks".
template <typename Chosen>
std::string CountOfRanks(const RanksReport& report, Chosen is_chosen,
                         const std::string& kind = {}) {
  std::set<int64_t> all, steps;
  uint64_t count = 0;
  for (const ComparedRank& rank : report.ranks) {
    if (rank.pair.step) all.insert(*rank.pair.step);
    if (!is_chosen(rank)) continue;
    ++count;
    if (rank.pair.step) steps.insert(*rank.pair.step);
  }
  if (AreSteps(report)) return CountText(count, kind + "step");
  const std::string ranks = CountText(count, kind + "rank");
  if (all.size() < 2 || count == 0) return ranks;
  if (steps.size() == 1) return fmt::format("{} of step {}", ranks, *steps.begin());
  return fmt::format("{} of {}", ranks, CountText(steps.size(), "step"));
}

bool IsIncomplete(const ComparedRank& rank) { return rank.outcome && !rank.outcome->complete; }

// "1 rank missing on one side, 2 steps not comparable": what no answer covers.
std::string LostText(const RanksReport& report) {
  std::string text;
  const auto add = [&](std::string_view what, auto is_lost) {
    if (std::ranges::none_of(report.ranks, is_lost)) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", CountOfRanks(report, is_lost), what);
  };
  const auto is_in = [](RankState state) {
    return [state](const ComparedRank& rank) { return rank.state == state; };
  };
  add("missing on one side", is_in(RankState::kMissing));
  add("not comparable", is_in(RankState::kFailed));
  add("not judged completely", IsIncomplete);
  if (!report.notes.empty()) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", CountText(report.notes.size(), "note"));
  }
  return text;
}

bool ShowsSomethingGood(const RanksReport& report) {
  const auto& rows = report.counts.rows;
  return rows[static_cast<size_t>(Verdict::kSame)] +
             rows[static_cast<size_t>(Verdict::kWithinNoise)] >
         0;
}

// The largest of all ranks and steps. The update after a step is seen in the next one.
DetectionLimit LargestLimit(const RanksReport& report) {
  const auto is_judged = [](const ComparedRank& rank) { return rank.outcome.has_value(); };
  std::optional<int64_t> last;
  for (const ComparedRank& rank : report.ranks) {
    if (is_judged(rank)) last = std::max(last, rank.pair.step);
  }
  DetectionLimit largest;
  for (const ComparedRank& rank : report.ranks) {
    if (!is_judged(rank)) continue;
    const DetectionLimit& limit = rank.outcome->limit;
    largest.result = std::max(largest.result, limit.result);
    largest.gradient = std::max(largest.gradient, limit.gradient);
    largest.roundings += limit.roundings;
    largest.lacks_last_update |= limit.lacks_last_update && rank.pair.step == last;
  }
  return largest;
}

// That of the rank of which the least is known.
plumbline::report::Certainty CertaintyOf(const RanksReport& report) {
  CompareMode weakest = CompareMode::kTensor;
  measure::DigestKind digests = measure::DigestKind::kChecksum;
  for (const ComparedRank& rank : report.ranks) {
    if (!rank.outcome) continue;
    weakest = std::min(weakest, rank.outcome->mode);
    digests = std::max(digests, rank.outcome->digests);
  }
  const bool is_weak = digests != measure::DigestKind::kChecksum;
  return plumbline::report::CertaintyOf(is_weak ? CompareMode::kDigest : weakest, digests,
                                        LargestLimit(report));
}

// The sentence about the answer: the rank's own where it is the rank's first wrong call.
std::string WhatOf(const RanksReport& report) {
  const RankOutcome& outcome = *report.ranks[report.origins.front().rank].outcome;
  const WrongCall& wrong = report.answer();
  if (outcome.first_wrong_call && outcome.first_wrong_call->name == wrong.name) {
    return outcome.first_wrong_call->what;
  }
  if (!std::isfinite(wrong.error)) return fmt::format("{}: {}", wrong.item, wrong.reason);
  return fmt::format("{}: {}, relative error {:.2g}, explained {:.2g}", wrong.item, wrong.reason,
                     wrong.error, wrong.expected);
}

// Ranks of the answer's step whose first unexplained call has the same name.
std::vector<size_t> SameCallOn(const RanksReport& report) {
  std::vector<size_t> ranks;
  for (size_t i = 1; i < report.origins.size(); ++i) {
    const RankOrigin& origin = report.origins[i];
    const WrongCall& wrong = report.ranks[origin.rank].outcome->wrong[origin.call];
    if (wrong.name == report.answer().name) ranks.push_back(origin.rank);
  }
  return ranks;
}

std::string AnswerDetails(const RanksReport& report) {
  const RankOutcome& outcome = *report.ranks[report.origins.front().rank].outcome;
  const auto& first = outcome.first_wrong_call;
  const bool is_first = first && first->name == report.answer().name;
  FirstWrongCall shown_call = is_first ? *first : FirstWrongCall{};
  shown_call.what = WhatOf(report);
  std::string text = report::FactLines(shown_call);
  if (is_first) {
    if (!first->stack_line.empty())
      text += fmt::format("  called at: {}\n", OneLine(first->stack_line));
    if (!first->module_path.empty()) {
      text += fmt::format("  inside: {}\n",
                          OneLine(fmt::format("{}", fmt::join(first->module_path, " < "))));
    }
  }
  const size_t same = SameCallOn(report).size();
  if (same > 0) {
    text += fmt::format("  the same call is the first on {} more\n", CountText(same, "rank"));
  }
  size_t shown = 0;
  for (size_t i = 1; i < report.origins.size(); ++i) {
    const RankOrigin& origin = report.origins[i];
    const WrongCall& wrong = report.ranks[origin.rank].outcome->wrong[origin.call];
    if (wrong.name == report.answer().name || ++shown > kMaxLines) continue;
    text += fmt::format("  also not explained: {} {}\n", report.ranks[origin.rank].pair.label(),
                        OneLine(wrong.name));
  }
  return text;
}

std::string MissingLine(const load::RankPair& pair) {
  const bool has_target = pair.target.has_value();
  return fmt::format("{}: only the {} has it ({})", pair.label(), has_target ? "target" : "golden",
                     has_target ? pair.target->path : pair.golden->path);
}

// One line per rank that says something else than "no wrong call".
std::string RankLines(const RanksReport& report) {
  std::string text;
  size_t shown = 0, left_out = 0;
  for (const ComparedRank& rank : report.ranks) {
    std::string line;
    if (rank.state == RankState::kMissing) {
      line = "missing: " + MissingLine(rank.pair);
    } else if (rank.state == RankState::kFailed) {
      line = fmt::format("failed: {}: {}", rank.pair.label(), rank.error->message());
    } else if (rank.outcome->answer_line != "no wrong call") {
      line = fmt::format("{}: {}", rank.pair.label(), rank.outcome->answer_line);
    }
    if (line.empty()) continue;
    if (++shown > kMaxLines) {
      ++left_out;
    } else {
      text += OneLine(line) + '\n';
    }
  }
  if (left_out > 0)
    text += fmt::format("and {} more such {}\n", left_out, AreSteps(report) ? "steps" : "ranks");
  return text;
}

std::string WarningLines(const RanksReport& report) {
  std::string text;
  for (const std::string& note : report.notes)
    text += fmt::format("not judged: {}\n", OneLine(note));
  size_t shown = 0, all = 0;
  for (const ComparedRank& rank : report.ranks) {
    if (!rank.outcome) continue;
    for (const std::string& warning : rank.outcome->warnings) {
      if (++all > kMaxLines) continue;
      ++shown;
      text += fmt::format("warning: {}: {}\n", rank.pair.label(), OneLine(warning));
    }
  }
  if (all > shown) text += fmt::format("and {} more warnings\n", all - shown);
  return text;
}

void AddCounts(const CompareCounts& counts, Document& out) {
  out.Key("counts");
  out.Open('{');
  for (size_t i = 0; i < kVerdictCount; ++i) {
    out.Number(VerdictName(static_cast<Verdict>(i)), counts.rows[i]);
  }
  out.Number("paired calls", counts.calls);
  out.Number("unmatched target", counts.unmatched_target);
  out.Number("unmatched golden", counts.unmatched_golden);
  out.Number("unreadable files", counts.unreadable_files);
  out.Number("missing values", counts.missing_values);
  out.Close('}');
}

void AddInteger(std::string_view key, std::optional<int64_t> number, Document& out) {
  out.Key(key);
  out.Raw(number ? std::to_string(*number) : "null");
}

void AddFiniteOrNull(std::string_view key, double value, Document& out) {
  out.Key(key);
  if (std::isfinite(value)) {
    out.Raw(PythonFloat(value));
  } else {
    out.Raw("null");
  }
}

void AddOrigin(const RanksReport& report, const RankOrigin& origin, Document& out) {
  const ComparedRank& rank = report.ranks[origin.rank];
  const WrongCall& wrong = rank.outcome->wrong[origin.call];
  out.Open('{');
  AddInteger("step", rank.pair.step, out);
  AddInteger("rank", rank.pair.rank(), out);
  out.Member("directory", rank.pair.target->path);
  out.Member("name", wrong.name);
  out.Member("item", wrong.item);
  out.Member("reason", wrong.reason);
  out.Truth("enters_with_inputs", wrong.enters);
  AddFiniteOrNull("error", wrong.error, out);
  AddFiniteOrNull("explained_error", wrong.expected, out);
  out.Number("layer", origin.layer);
  out.Number("index", wrong.place.index);
  out.Close('}');
}

void AddFirst(const RanksReport& report, Document& out) {
  out.Key("first_wrong_call");
  if (report.origins.empty()) {
    out.Raw("null");
    return;
  }
  const ComparedRank& rank = report.ranks[report.origins.front().rank];
  out.Open('{');
  AddInteger("step", rank.pair.step, out);
  AddInteger("rank", rank.pair.rank(), out);
  report::AddMembers(AnswerCall(report), out);
  out.Close('}');
}

void AddRank(const ComparedRank& rank, Document& out) {
  out.Open('{');
  AddInteger("step", rank.pair.step, out);
  AddInteger("rank", rank.pair.rank(), out);
  out.Member("state", RankStateName(rank.state));
  out.Member("target", rank.pair.target ? rank.pair.target->path : "");
  out.Member("golden", rank.pair.golden ? rank.pair.golden->path : "");
  if (rank.error) out.Member("error", rank.error->message());
  if (rank.outcome) {
    out.Member("mode", CompareModeName(rank.outcome->mode));
    out.Member("answer", rank.outcome->answer_line);
    out.Truth("complete", rank.outcome->complete);
    AddCounts(rank.outcome->counts, out);
    out.Number("wrong_calls", rank.outcome->wrong_calls);
    out.Texts("warnings", rank.outcome->warnings);
    out.Texts("files", rank.outcome->files);
  }
  out.Close('}');
}

}  // namespace

std::string HowToCompareAgain(const ComparedRank& rank) {
  if (rank.shard.empty()) return fmt::format("Compare {} again", rank.pair.label());
  return fmt::format("Run `plumb compare ... --shard {}` again", rank.shard);
}

std::string_view RankStateName(RankState state) {
  switch (state) {
    case RankState::kCompared:
      return "compared";
    case RankState::kTakenOver:
      return "taken over";
    case RankState::kFailed:
      return "failed";
    case RankState::kMissing:
      return "missing";
  }
  return "";
}

size_t RanksReport::CountOf(RankState state) const {
  return static_cast<size_t>(std::count_if(
      ranks.begin(), ranks.end(), [&](const ComparedRank& rank) { return rank.state == state; }));
}

bool RanksReport::is_complete() const {
  return notes.empty() && !ranks.empty() &&
         std::all_of(ranks.begin(), ranks.end(), [](const ComparedRank& rank) {
           return rank.outcome && rank.outcome->complete;
         });
}

FirstWrongCall AnswerCall(const RanksReport& report) {
  const auto& first = report.ranks[report.origins.front().rank].outcome->first_wrong_call;
  FirstWrongCall answer;
  if (first && first->name == report.answer().name) {
    answer = *first;
  } else {
    answer.name = report.answer().name;
    answer.enters_with_inputs = report.answer().enters;
  }
  answer.what = WhatOf(report);
  answer.item = report.answer().item;
  return answer;
}

std::string RanksAnswer(const RanksReport& report) {
  const std::string lost = LostText(report);
  const auto is_compared = [](const ComparedRank& rank) { return rank.outcome.has_value(); };
  const std::string compared = CountOfRanks(report, is_compared, "compared ");
  if (!report.origins.empty()) {
    return fmt::format("first wrong call: {} {}{}{}{}",
                       report.ranks[report.origins.front().rank].pair.label(), report.answer().name,
                       lost.empty() ? "" : " (", lost, lost.empty() ? "" : ")");
  }
  if (report.compared() == 0) {
    return fmt::format("not judged: no {} was compared; {}", AreSteps(report) ? "step" : "rank",
                       lost);
  }
  if (!ShowsSomethingGood(report)) {
    return fmt::format("not judged: no row of the {} could be compared{}{}", compared,
                       lost.empty() ? "" : "; ", lost);
  }
  if (!report.is_complete()) {
    return fmt::format("not judged completely: {}; {} {} no wrong call", lost, compared,
                       report.compared() == 1 ? "shows" : "show");
  }
  return "no wrong call in " + CountOfRanks(report, is_compared);
}

std::string RanksSummaryText(const RanksReport& report) {
  std::string text = OneLine(RanksAnswer(report)) + '\n';
  if (!report.origins.empty()) text += AnswerDetails(report);
  if (ShowsSomethingGood(report) || !report.origins.empty()) {
    text += plumbline::report::CertaintyLine(CertaintyOf(report));
  }
  if (ShowsSomethingGood(report) && report.origins.empty()) {
    text += plumbline::report::LimitLine(LargestLimit(report));
  }
  const CompareCounts& counts = report.counts;
  text +=
      fmt::format("rows: {} same, {} within noise, {} suspicious, {} broken, {} not comparable\n",
                  counts.rows[0], counts.rows[1], counts.rows[2], counts.rows[3], counts.rows[4]);
  text += fmt::format("calls: {} paired, {} unmatched target, {} unmatched golden\n", counts.calls,
                      counts.unmatched_target, counts.unmatched_golden);
  text += fmt::format("{}: {} compared, {} taken over, {} failed, {} missing\n",
                      AreSteps(report) ? "steps" : "ranks", report.CountOf(RankState::kCompared),
                      report.CountOf(RankState::kTakenOver), report.CountOf(RankState::kFailed),
                      report.CountOf(RankState::kMissing));
  for (const CollectiveReport& side : report.collectives) text += CollectiveLines(side);
  text += RankLines(report);
  text += WarningLines(report);
  for (const std::string& file : report.files) text += fmt::format("file: {}\n", OneLine(file));
  return text;
}

Result<std::string> RanksSummaryJson(const RanksReport& report) {
  Document out;
  out.Open('{');
  out.Member("format", "plumbline compare ranks");
  out.Number("version", 1);
  out.Member("answer", RanksAnswer(report));
  out.Member("target", report.target_path);
  out.Member("golden", report.golden_path);
  out.Member("unit", AreSteps(report) ? "step" : "rank");
  AddFirst(report, out);
  out.Key("origins");
  out.Open('[');
  for (const RankOrigin& origin : report.origins) AddOrigin(report, origin, out);
  out.Close(']');
  out.Truth("complete", report.is_complete());
  const plumbline::report::Certainty certainty = CertaintyOf(report);
  out.Key("certainty");
  out.Open('{');
  out.Member("level", certainty.level);
  out.Member("text", certainty.text);
  out.Member("limit", plumbline::report::LimitText(LargestLimit(report)));
  out.Close('}');
  AddCounts(report.counts, out);
  out.Key("ranks");
  out.Open('[');
  for (const ComparedRank& rank : report.ranks) AddRank(rank, out);
  out.Close(']');
  if (!report.collectives.empty()) {
    out.Key("collectives");
    out.Open('[');
    for (const CollectiveReport& side : report.collectives) AddCollectives(side, out);
    out.Close(']');
  }
  out.Texts("notes", report.notes);
  out.Texts("files", report.files);
  out.Close('}');
  PL_TRY_ASSIGN(std::string text, out.Finish());
  return text + '\n';
}

Result<bool> FailsOn(const RanksReport& report, const std::vector<std::string>& conditions) {
  using plumbline::report::AddCondition;
  plumbline::report::MetConditions met;
  for (const ComparedRank& rank : report.ranks) {
    if (!rank.outcome) continue;
    for (const std::string& condition : rank.outcome->fails_on) AddCondition(condition, met);
  }
  for (const CollectiveReport& side : report.collectives) {
    met.differs = met.differs || side.violated > 0;
    met.unjudged = met.unjudged || side.not_judged > 0 || !side.notes.empty();
  }
  if (!report.is_complete() || !ShowsSomethingGood(report)) met.unjudged = met.unmatched = true;
  if (!report.origins.empty()) {
    met.wrong = true;
    // A call may be named of which no number could be measured.
    met.broken = met.broken || !met.suspicious;
    met.suspicious = true;
  }
  return plumbline::report::MeetsAny(met, conditions);
}

// SearchRanks(): which wrong call came first over the ranks of a step.

namespace {

// The compared ranks of one step, as the pairing of communication calls wants them.
class StepSearch {
 public:
  StepSearch(RanksReport& report, size_t begin, size_t end) : report_(report) {
    for (size_t i = begin; i < end; ++i) {
      const ComparedRank& rank = report.ranks[i];
      if (!rank.outcome) continue;
      ranks_.push_back(i);
    }
    std::vector<CommSide> sides;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      sides.push_back({report.ranks[ranks_[i]].pair.target->rank, OutcomeAt(i).groups,
                       &OutcomeAt(i).communication});
    }
    order_.emplace(std::move(sides));
  }

  // Whether any rank of the step has a wrong call.
  bool Run() {
    const bool is_any_wrong = std::ranges::any_of(
        ranks_, [&](size_t rank) { return !report_.ranks[rank].outcome->wrong.empty(); });
    if (!is_any_wrong) return false;
    order_->Order();
    MarkReceivers();
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < ranks_.size(); ++i) AddRank(i, candidates);
    std::sort(candidates.begin(), candidates.end());
    const bool any_unexplained = std::any_of(candidates.begin(), candidates.end(),
                                             [](const auto& c) { return !c.explained; });
    for (const Candidate& candidate : candidates) {
      // Without any origin the calls explain each other in a circle: the earliest one is named.
      if (any_unexplained && candidate.explained) break;
      report_.origins.push_back({ranks_[candidate.rank], candidate.call, candidate.layer});
    }
    return true;
  }

  void NoteCommunication() {
    if (order_->unpaired() == 0 || ranks_.size() < 2) return;
    const CommNode first = order_->first_unpaired();
    report_.notes.push_back(fmt::format(
        "{}: {} communication calls without their counterparts on the compared ranks, first {}; "
        "what they bring is not known",
        report_.ranks[ranks_[first.rank]].pair.label(), order_->unpaired(),
        OutcomeAt(first.rank).communication.NameOf(first.call)));
  }

 private:
  struct Candidate {
    bool explained = false;  // by bad values from another rank
    uint64_t layer = 0, sub_layer = 0;
    size_t rank = 0;
    uint64_t index = 0;
    size_t call = 0;
    friend auto operator<=>(const Candidate&, const Candidate&) = default;
  };

  [[nodiscard]] const RankOutcome& OutcomeAt(size_t rank) const {
    return *report_.ranks[ranks_[rank]].outcome;
  }

  void MarkReceivers() {
    std::vector<std::vector<bool>> gives_bad;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      const CommTrace& trace = OutcomeAt(rank).communication;
      receives_.emplace_back(trace.size(), false);
      std::vector<bool>& bad = gives_bad.emplace_back();
      trace.ForEach([&](const CommTrace::Record& call) { bad.push_back(call.has_bad_input); });
    }
    order_->ForEachLink([&](const CommLink& link) {
      const bool is_bad = std::ranges::any_of(
          link.from, [&](const CommNode& node) { return gives_bad[node.rank][node.call]; });
      if (!is_bad) return;
      for (const CommNode& node : link.to) receives_[node.rank][node.call] = true;
    });
  }

  [[nodiscard]] bool ReceivedBefore(size_t rank, size_t calls) const {
    const auto begin = receives_[rank].begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(calls, receives_[rank].size()));
    return std::find(begin, end, true) != end;
  }

  [[nodiscard]] bool IsExplained(size_t rank, const WrongCall& wrong) const {
    if (ReceivedBefore(rank, wrong.place.calls_before)) return true;
    return wrong.comm_call && !wrong.enters && receives_[rank][*wrong.comm_call];
  }

  // The first wrong call of the rank that nothing explains, else its first one.
  void AddRank(size_t rank, std::vector<Candidate>& candidates) const {
    const std::vector<WrongCall>& wrong = OutcomeAt(rank).wrong;
    if (wrong.empty()) return;
    size_t chosen = 0;
    while (chosen < wrong.size() && IsExplained(rank, wrong[chosen])) ++chosen;
    Candidate candidate;
    candidate.explained = chosen == wrong.size();
    candidate.call = candidate.explained ? 0 : chosen;
    const EntryPlace& place = wrong[candidate.call].place;
    const std::vector<uint64_t> layers = order_->LayersOf(rank);
    const std::optional<size_t> comm_call = wrong[candidate.call].comm_call;
    candidate.layer = comm_call ? layers[*comm_call] : LayerBetween(layers, place.calls_before);
    candidate.sub_layer = place.sub_layer;
    candidate.rank = rank;
    candidate.index = place.index;
    candidates.push_back(candidate);
  }

  RanksReport& report_;
  std::vector<size_t> ranks_;  // that were compared, in RanksReport::ranks
  std::optional<CommOrder> order_;
  std::vector<std::vector<bool>> receives_;  // by rank and call: a bad value came in
};

CompareCounts Sum(const CompareCounts& a, const CompareCounts& b) {
  CountList sum = ListOf(a);
  const CountList more = ListOf(b);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  return CountsOf(sum);
}

}  // namespace

void SearchRanks(RanksReport& report) {
  bool found = false;
  for (size_t begin = 0, end = 0; begin < report.ranks.size(); begin = end) {
    while (end < report.ranks.size() &&
           report.ranks[end].pair.step == report.ranks[begin].pair.step) {
      ++end;
    }
    StepSearch search(report, begin, end);
    if (!found) found = search.Run();
    search.NoteCommunication();
  }
  for (const ComparedRank& rank : report.ranks) {
    if (rank.outcome) report.counts = Sum(report.counts, rank.outcome->counts);
  }
}

}  // namespace plumbline::ranks
