#include "pipeline/ranks/rank_outcome.h"

#include <cmath>
#include <unordered_map>
#include <utility>

#include "match/training_match.h"
#include "measure/compared_row.h"
#include "measure/statistic_choice.h"
#include "pipeline/ranks/comm_call.h"
#include "report/fail_conditions.h"

namespace plumbline::pipeline {
namespace {

// Kept per rank: more differ only when nearly everything does.
constexpr size_t kMaxWrong = 256;

// Where every entry of the dump stands, and its communication calls.
class Places {
 public:
  Places(const Run& target, RankOutcome& outcome) {
    EntryPlace place;
    for (const Call& call : target.calls()) {
      place.calls_before = outcome.communication.size();
      places_.insert_or_assign(call.name, place);
      if (const auto api = CommunicationApi(call.name)) {
        CommCall comm = ReadCommCall(call, *api, outcome.groups);
        comm.place = place;
        comm_.insert_or_assign(call.name, outcome.communication.size());
        outcome.communication.push_back(std::move(comm));
        place.sub_layer = 0;
      } else {
        ++place.sub_layer;
      }
      ++place.index;
    }
  }

  // Of several modules that are one on the other side: the first one's.
  [[nodiscard]] const EntryPlace* Find(const std::string& name) const {
    const auto found = places_.find(match::FirstOfShown(name));
    return found == places_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] std::optional<size_t> CommOf(const std::string& name) const {
    const auto found = comm_.find(name);
    return found == comm_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::unordered_map<std::string_view, EntryPlace> places_;
  std::unordered_map<std::string_view, size_t> comm_;
};

void MarkCommunication(const ComparedCall& call, const Comparison& comparison, CommCall& comm) {
  for (uint32_t i = 0; i < call.row_count; ++i) {
    const ComparedRow& row = comparison.rows[call.first_row + i];
    if (!measure::IsBad(row.verdict)) continue;
    std::optional<BadValue>& bad = measure::IsInput(row) ? comm.bad_input : comm.bad_output;
    if (!bad) bad = BadValue{.path = row.item().name, .what = row.reason};
  }
}

// The first row of the call that shows something new; nothing when all is explained.
const ComparedRow* NewlyWrong(const ComparedCall& call, const Comparison& comparison) {
  for (uint32_t i = 0; i < call.row_count; ++i) {
    const ComparedRow& row = comparison.rows[call.first_row + i];
    if (measure::IsBad(row.verdict) && row.reason != "inherited") return &row;
  }
  return nullptr;
}

WrongCall WrongCallOf(const std::string& name, const EntryPlace& place,
                      std::optional<size_t> comm_call, const ComparedRow& row) {
  WrongCall wrong;
  wrong.name = name;
  wrong.place = place;
  wrong.comm_call = comm_call;
  wrong.enters = measure::IsInput(row);
  wrong.item = row.item().name;
  wrong.reason = row.reason;
  wrong.error = row.error;
  wrong.expected = row.expected;
  return wrong;
}

// The rank's own answer, also where no row shows it (a call of another shape).
WrongCall AnswerAsWrongCall(const FirstWrongCall& answer, const EntryPlace& place,
                            std::optional<size_t> comm_call) {
  WrongCall wrong;
  wrong.name = answer.name;
  wrong.place = place;
  wrong.comm_call = comm_call;
  wrong.enters = answer.enters_with_inputs;
  wrong.item = answer.item;
  wrong.error = wrong.expected = std::nan("");
  return wrong;
}

// Where the answer stands in the target's dump: a call that golden alone made, behind the last one
// before it.
EntryPlace PlaceOfAnswer(const Places& places, const Comparison& comparison,
                         const FirstWrongCall& answer) {
  EntryPlace last;
  for (const ComparedCall& call : comparison.calls) {
    const EntryPlace* place = places.Find(call.target_name);
    if (place != nullptr) last = *place;
    if (call.name() == answer.name) break;
  }
  return last;
}

void AddWrongCalls(const Places& places, const Comparison& comparison, RankOutcome& outcome) {
  // What stands before the rank's answer was passed over for it: modules around it.
  uint64_t first_index = 0;
  if (const auto& answer = comparison.first_wrong_call) {
    const EntryPlace* found = places.Find(answer->name);
    const EntryPlace place = found != nullptr ? *found : PlaceOfAnswer(places, comparison, *answer);
    first_index = place.index;
    outcome.wrong.push_back(AnswerAsWrongCall(*answer, place, places.CommOf(answer->name)));
    ++outcome.wrong_calls;
  }
  for (const ComparedCall& call : comparison.calls) {
    const EntryPlace* place = places.Find(call.target_name);
    if (place == nullptr || place->index < first_index) continue;
    const ComparedRow* row = NewlyWrong(call, comparison);
    if (row == nullptr) continue;
    WrongCall wrong = WrongCallOf(call.target_name, *place, places.CommOf(call.target_name), *row);
    if (!outcome.wrong.empty() && outcome.wrong.front().name == call.target_name) {
      outcome.wrong.front() = std::move(wrong);
      continue;
    }
    ++outcome.wrong_calls;
    if (outcome.wrong.size() < kMaxWrong) outcome.wrong.push_back(std::move(wrong));
  }
}

std::string FirstLine(std::string text) {
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

}  // namespace

RankOutcome OutcomeOf(const Run& target, const Comparison& comparison) {
  RankOutcome outcome;
  outcome.mode = comparison.mode;
  outcome.of_xor =
      comparison.mode == CompareMode::kDigest && measure::AreXorDigests(comparison.rows);
  outcome.counts = comparison.counts;
  outcome.limit = comparison.limit;
  outcome.complete = comparison.is_complete();
  outcome.answer_line = FirstLine(SummaryText(comparison));
  for (const std::string_view condition : report::kFailConditions) {
    const Result<bool> fails = FailsOn(comparison, {std::string(condition)});
    if (fails && *fails) outcome.fails_on.emplace_back(condition);
  }
  outcome.first_wrong_call = comparison.first_wrong_call;
  outcome.warnings = comparison.warnings;
  const Places places(target, outcome);
  for (const ComparedCall& call : comparison.calls) {
    const std::optional<size_t> comm = places.CommOf(call.target_name);
    if (comm) MarkCommunication(call, comparison, outcome.communication[*comm]);
  }
  outcome.sent = SentWithinNoise(comparison);
  outcome.wrong_arrivals = WrongArrivals(comparison);
  AddWrongCalls(places, comparison, outcome);
  return outcome;
}

}  // namespace plumbline::pipeline
