#include "ranks/rank_outcome.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "base/text/json.h"
#include "base/text/number_text.h"
#include "formats/json/json_feed.h"
#include "load/rank_scan.h"
#include "match/training_match.h"
#include "measure/compared_row.h"
#include "measure/stats_metrics.h"
#include "report/certainty.h"
#include "report/result_json.h"

namespace plumbline::ranks {

namespace {

// Kept per rank: more differ only when nearly everything does.
constexpr size_t kMaxWrong = 256;

// Where every entry of the dump stands, and its communication calls.
class Places {
 public:
  Places(const Run& target, std::vector<CommCall>& calls, std::vector<CommGroup>& groups) {
    EntryPlace place;
    for (const Call& call : target.calls()) {
      place.calls_before = calls.size();
      places_.insert_or_assign(call.name, place);
      const auto api = CommunicationApi(call.name);
      if (api && !IsCallOfOthers(call)) {
        comm_.insert_or_assign(call.name, calls.size());
        calls.push_back(ReadCommCall(call, *api, groups));
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

bool HasBadInput(const ComparedCall& call, const Comparison& comparison) {
  return std::ranges::any_of(measure::RowsOf(comparison, call), [](const ComparedRow& row) {
    return measure::IsBad(row.verdict) && measure::IsInput(row);
  });
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

// How many communication calls are behind whatever explains it.
size_t ReachOf(const WrongCall& wrong) {
  const bool is_received = wrong.comm_call && !wrong.enters;
  return std::max(wrong.place.calls_before, is_received ? *wrong.comm_call + 1 : 0);
}

// Leaves out calls that are explained by whatever explains an earlier one: the search never gets to
// them.
void DropExplained(std::vector<WrongCall>& wrong) {
  size_t reach = SIZE_MAX;
  std::erase_if(wrong, [&](const WrongCall& call) {
    if (call.place.calls_before >= reach) return true;
    reach = std::min(reach, ReachOf(call));
    return false;
  });
}

std::string FirstLine(std::string text) {
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

}  // namespace

RankOutcome OutcomeOf(const Run& target, const Comparison& comparison) {
  RankOutcome outcome;
  outcome.mode = comparison.mode;
  if (outcome.mode == CompareMode::kDigest) {
    outcome.digests = measure::DigestKindOf(comparison.rows);
  }
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
  std::vector<CommCall> calls;
  const Places places(target, calls, outcome.groups);
  for (const ComparedCall& call : comparison.calls) {
    const std::optional<size_t> comm = places.CommOf(call.target_name);
    if (comm && HasBadInput(call, comparison)) calls[*comm].bad_input.emplace();
  }
  outcome.communication = CommTrace(calls);
  outcome.sent = compare::SentWithinNoise(comparison);
  outcome.wrong_arrivals = compare::WrongArrivals(comparison);
  AddWrongCalls(places, comparison, outcome);
  DropExplained(outcome.wrong);
  return outcome;
}

// RankOutcome as JSON, for results that a later run takes over.

namespace {

using json::Document;
using json::Value;

void AddNumbers(std::string_view key, const std::vector<int64_t>& numbers, Document& out) {
  out.Key(key);
  out.Open('[');
  for (const int64_t number : numbers) out.Raw(std::to_string(number));
  out.Close(']');
}

void AddDouble(std::string_view key, double value, Document& out) {
  if (std::isfinite(value)) {
    out.Key(key);
    out.Raw(PythonFloat(value));
  } else {
    out.Member(key, PythonFloat(value));
  }
}

void AddOptional(std::string_view key, const std::optional<int64_t>& number, Document& out) {
  out.Key(key);
  out.Raw(number ? std::to_string(*number) : "null");
}

void AddPlace(const EntryPlace& place, Document& out) {
  out.Number("index", place.index);
  out.Number("sub_layer", place.sub_layer);
  out.Number("calls_before", place.calls_before);
}

void AddWrong(const WrongCall& wrong, Document& out) {
  out.Open('{');
  out.Member("name", wrong.name);
  AddPlace(wrong.place, out);
  AddOptional(
      "comm_call",
      wrong.comm_call ? std::optional(static_cast<int64_t>(*wrong.comm_call)) : std::nullopt, out);
  out.Truth("enters", wrong.enters);
  out.Member("item", wrong.item);
  out.Member("reason", wrong.reason);
  AddDouble("error", wrong.error, out);
  AddDouble("expected", wrong.expected, out);
  out.Close('}');
}

void AddKind(const CommTrace::Kind& kind, Document& out) {
  out.Open('{');
  out.Member("api", kind.api);
  AddOptional("group", kind.group, out);
  AddOptional("root", kind.root, out);
  out.Key("transfers");
  out.Open('[');
  for (const PeerTransfer& transfer : kind.transfers) {
    out.Open('{');
    out.Truth("sends", transfer.direction == Transfer::kSend);
    AddOptional("peer", transfer.peer, out);
    AddOptional("tag", transfer.tag, out);
    out.Truth("is_object", transfer.is_object);
    out.Close('}');
  }
  out.Close(']');
  out.Truth("waits", kind.waits);
  out.Close('}');
}

// Of each call two numbers: twice its kind, 1 more with a bad input, and the step of its name.
void AddTrace(const CommTrace& trace, Document& out) {
  out.Open('{');
  out.Key("kinds");
  out.Open('[');
  for (const CommTrace::Kind& kind : trace.kinds()) AddKind(kind, out);
  out.Close(']');
  out.Texts("other_names", trace.other_names());
  out.Key("calls");
  out.Open('[');
  trace.ForEach([&](const CommTrace::Record& record) {
    out.Raw(std::to_string(2 * record.kind + (record.has_bad_input ? 1 : 0)));
    out.Raw(std::to_string(record.step));
  });
  out.Close(']');
  out.Close('}');
}

void AddGroup(const CommGroup& group, Document& out) {
  out.Open('{');
  out.Member("id", group.id);
  out.Member("name", group.name);
  AddNumbers("ranks", group.ranks, out);
  out.Close('}');
}

void AddContents(const compare::ContentId& contents, Document& out) {
  out.Number("low", contents.low);
  out.Number("high", contents.high);
}

bool Take(const Value& from, bool& value) {
  const bool* const truth = from.AsBool();
  if (truth != nullptr) value = *truth;
  return truth != nullptr;
}
bool Take(const Value& from, std::string& value) {
  const std::string* const text = from.AsText();
  if (text != nullptr) value = *text;
  return text != nullptr;
}
bool Take(const Value& from, int64_t& value) {
  const auto number = from.AsInteger();
  value = number.value_or(value);
  return number.has_value();
}
bool Take(const Value& from, uint64_t& value) {
  const auto number = from.AsNatural();
  value = number.value_or(value);
  return number.has_value();
}

// Reads members of one object; a member that is missing or of another type is remembered.
class Fields {
 public:
  Fields(const Value& object, bool& good) : object_(&object), good_(good) {}

  template <class T>
  T Get(std::string_view key) {
    T value{};
    const Value* const member = object_->Find(key);
    good_ = member != nullptr && Take(*member, value) && good_;
    return value;
  }
  std::string Text(std::string_view key) { return Get<std::string>(key); }
  // The elements of an array; nothing when it is not there.
  const Value::List& List(std::string_view key) {
    static const Value::List none;
    const Value* const member = object_->Find(key);
    const Value::List* const list = member == nullptr ? nullptr : member->AsList();
    good_ = list != nullptr && good_;
    return list == nullptr ? none : *list;
  }
  std::vector<std::string> Texts(std::string_view key) {
    std::vector<std::string> texts;
    for (const Value& item : List(key)) good_ = Take(item, texts.emplace_back()) && good_;
    return texts;
  }
  std::optional<int64_t> Optional(std::string_view key) {
    const Value* const member = Member(key);
    if (member == nullptr) return std::nullopt;
    int64_t number = 0;
    good_ = Take(*member, number) && good_;
    return number;
  }
  double Double(std::string_view key) {
    const Value* const member = object_->Find(key);
    if (member == nullptr) {
      good_ = false;
    } else if (const std::string* text = member->AsText()) {
      if (*text == "inf" || *text == "-inf") return *text == "inf" ? INFINITY : -INFINITY;
    } else if (const auto number = member->AsReal()) {
      return *number;
    } else {
      good_ = false;
    }
    return std::nan("");
  }
  // Null where it is missing or null.
  const Value* Member(std::string_view key) {
    const Value* const member = object_->Find(key);
    return member == nullptr || member->is_null() ? nullptr : member;
  }
  bool& good() { return good_; }

 private:
  const Value* object_;
  bool& good_;
};

EntryPlace PlaceFrom(Fields& fields) {
  EntryPlace place;
  place.index = fields.Get<uint64_t>("index");
  place.sub_layer = fields.Get<uint64_t>("sub_layer");
  place.calls_before = fields.Get<uint64_t>("calls_before");
  return place;
}

FirstWrongCall AnswerFrom(Fields fields) {
  FirstWrongCall answer;
  report::VisitMembers(answer, [&]<class T>(std::string_view key, T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = fields.Get<bool>(key);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = fields.Text(key);
    } else {
      value = fields.Texts(key);
    }
  });
  return answer;
}

WrongCall WrongFrom(Fields fields) {
  WrongCall wrong;
  wrong.name = fields.Text("name");
  wrong.place = PlaceFrom(fields);
  if (const auto comm = fields.Optional("comm_call")) wrong.comm_call = static_cast<size_t>(*comm);
  wrong.enters = fields.Get<bool>("enters");
  wrong.item = fields.Text("item");
  wrong.reason = fields.Text("reason");
  wrong.error = fields.Double("error");
  wrong.expected = fields.Double("expected");
  return wrong;
}

CommTrace::Kind KindFrom(Fields fields) {
  CommTrace::Kind kind;
  kind.api = fields.Text("api");
  kind.group = static_cast<int>(fields.Optional("group").value_or(-1));
  kind.root = fields.Optional("root");
  for (const Value& item : fields.List("transfers")) {
    Fields of(item, fields.good());
    PeerTransfer transfer;
    transfer.direction = of.Get<bool>("sends") ? Transfer::kSend : Transfer::kReceive;
    transfer.peer = of.Optional("peer");
    transfer.tag = of.Optional("tag").value_or(0);
    transfer.is_object = of.Get<bool>("is_object");
    kind.transfers.push_back(transfer);
  }
  kind.waits = fields.Get<bool>("waits");
  return kind;
}

CommTrace TraceFrom(const Value* member, bool& good) {
  good = good && member != nullptr;
  if (!good) return {};
  Fields fields(*member, good);
  std::vector<CommTrace::Kind> kinds;
  for (const Value& item : fields.List("kinds")) kinds.push_back(KindFrom(Fields(item, good)));
  CommTrace trace(std::move(kinds), fields.Texts("other_names"));
  const Value::List& numbers = fields.List("calls");
  for (size_t i = 0; i + 1 < numbers.size(); i += 2) {
    uint64_t head = 0, step = 0;
    good = Take(numbers[i], head) && Take(numbers[i + 1], step) &&
           trace.Add({head / 2, head % 2 == 1, step}) && good;
  }
  return trace;
}

compare::ContentId ContentsFrom(Fields& fields) {
  return {fields.Get<uint64_t>("low"), fields.Get<uint64_t>("high")};
}

CommGroup GroupFrom(Fields fields) {
  CommGroup group;
  group.id = fields.Text("id");
  group.name = fields.Text("name");
  for (const Value& rank : fields.List("ranks")) {
    int64_t number = 0;
    fields.good() = Take(rank, number) && fields.good();
    group.ranks.push_back(number);
  }
  return group;
}

CompareCounts CountsFrom(Fields& fields) {
  const Value::List& items = fields.List("counts");
  CountList list{};
  fields.good() = fields.good() && items.size() == list.size();
  for (size_t i = 0; fields.good() && i < list.size(); ++i) {
    fields.good() = Take(items[i], list[i]);
  }
  return CountsOf(list);
}

void AddLimit(const DetectionLimit& limit, Document& out) {
  out.Key("limit");
  out.Open('{');
  AddDouble("result", limit.result, out);
  AddDouble("gradient", limit.gradient, out);
  out.Number("roundings", limit.roundings);
  out.Truth("lacks_last_update", limit.lacks_last_update);
  out.Close('}');
}

DetectionLimit LimitFrom(const Value* member, bool& good) {
  DetectionLimit limit;
  good = good && member != nullptr;
  if (!good) return limit;
  Fields fields(*member, good);
  limit.result = fields.Double("result");
  limit.gradient = fields.Double("gradient");
  limit.roundings = fields.Get<uint64_t>("roundings");
  limit.lacks_last_update = fields.Get<bool>("lacks_last_update");
  return limit;
}

// Indexes that the file names must be in it.
bool IsSound(const RankOutcome& outcome) {
  for (const WrongCall& wrong : outcome.wrong) {
    if (wrong.comm_call && *wrong.comm_call >= outcome.communication.size()) return false;
    if (wrong.place.calls_before > outcome.communication.size()) return false;
  }
  return std::ranges::all_of(outcome.communication.kinds(), [&](const CommTrace::Kind& kind) {
    return kind.group < static_cast<int>(outcome.groups.size());
  });
}

}  // namespace

std::string FormatOutcome(const RankOutcome& outcome) {
  Document out;
  out.Open('{');
  out.Number("mode", static_cast<uint64_t>(outcome.mode));
  out.Number("digests", static_cast<uint64_t>(outcome.digests));
  out.Key("counts");
  out.Open('[');
  for (const uint64_t number : ListOf(outcome.counts)) out.Raw(std::to_string(number));
  out.Close(']');
  AddLimit(outcome.limit, out);
  out.Truth("complete", outcome.complete);
  out.Member("answer_line", outcome.answer_line);
  out.Texts("fails_on", outcome.fails_on);
  out.Key("first_wrong_call");
  if (outcome.first_wrong_call) {
    out.Open('{');
    report::AddMembers(*outcome.first_wrong_call, out);
    out.Close('}');
  } else {
    out.Raw("null");
  }
  out.Key("wrong");
  out.Open('[');
  for (const WrongCall& wrong : outcome.wrong) AddWrong(wrong, out);
  out.Close(']');
  out.Number("wrong_calls", outcome.wrong_calls);
  out.Key("communication");
  AddTrace(outcome.communication, out);
  out.Key("groups");
  out.Open('[');
  for (const CommGroup& group : outcome.groups) AddGroup(group, out);
  out.Close(']');
  out.Key("sent");
  out.Open('[');
  for (const compare::SentValue& sent : outcome.sent) {
    out.Open('{');
    AddContents(sent.contents, out);
    AddDouble("explained", sent.explained, out);
    out.Close('}');
  }
  out.Close(']');
  out.Key("wrong_arrivals");
  out.Open('[');
  for (const compare::ContentId& contents : outcome.wrong_arrivals) {
    out.Open('{');
    AddContents(contents, out);
    out.Close('}');
  }
  out.Close(']');
  out.Texts("warnings", outcome.warnings);
  out.Texts("files", outcome.files);
  out.Close('}');
  return out.line();
}

Result<RankOutcome> ReadOutcome(std::string_view text) {
  const Result<Value> root = Value::Parse(text);
  if (!root) return Error(ErrorCode::kCorrupt, "not the stored outcome of a comparison");
  return ReadOutcome(*root);
}

Result<RankOutcome> ReadOutcome(const Value& root) {
  const Error damaged(ErrorCode::kCorrupt, "not the stored outcome of a comparison");
  bool good = true;
  Fields fields(root, good);
  RankOutcome outcome;
  const auto mode = fields.Get<uint64_t>("mode");
  if (mode > static_cast<uint64_t>(CompareMode::kTensor)) return damaged;
  outcome.mode = static_cast<CompareMode>(mode);
  outcome.counts = CountsFrom(fields);
  const auto digests = fields.Get<uint64_t>("digests");
  if (digests > static_cast<uint64_t>(measure::DigestKind::kLogged)) return damaged;
  outcome.digests = static_cast<measure::DigestKind>(digests);
  outcome.limit = LimitFrom(fields.Member("limit"), good);
  outcome.complete = fields.Get<bool>("complete");
  outcome.answer_line = fields.Text("answer_line");
  outcome.fails_on = fields.Texts("fails_on");
  if (const auto answer = fields.Member("first_wrong_call")) {
    outcome.first_wrong_call = AnswerFrom(Fields(*answer, good));
  }
  for (const Value& item : fields.List("wrong")) {
    outcome.wrong.push_back(WrongFrom(Fields(item, good)));
  }
  outcome.wrong_calls = fields.Get<uint64_t>("wrong_calls");
  outcome.communication = TraceFrom(fields.Member("communication"), good);
  for (const Value& item : fields.List("groups")) {
    outcome.groups.push_back(GroupFrom(Fields(item, good)));
  }
  for (const Value& item : fields.List("sent")) {
    Fields sent(item, good);
    const compare::ContentId contents = ContentsFrom(sent);
    outcome.sent.push_back({contents, sent.Double("explained")});
  }
  for (const Value& item : fields.List("wrong_arrivals")) {
    Fields contents(item, good);
    outcome.wrong_arrivals.push_back(ContentsFrom(contents));
  }
  outcome.warnings = fields.Texts("warnings");
  outcome.files = fields.Texts("files");
  if (!good || !IsSound(outcome)) return damaged;
  return outcome;
}

}  // namespace plumbline::ranks
