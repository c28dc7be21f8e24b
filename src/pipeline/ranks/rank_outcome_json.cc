// RankOutcome as JSON, for results that a later run takes over.

#include <simdjson.h>

#include <cmath>
#include <type_traits>

#include "base/number_text.h"
#include "formats/json_document.h"
#include "pipeline/ranks/rank_outcome.h"
#include "report/first_wrong_members.h"

namespace plumbline::pipeline {
namespace {

using json::Document;
using simdjson::dom::array;
using simdjson::dom::element;

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

void AddBad(std::string_view key, const std::optional<BadValue>& bad, Document& out) {
  if (!bad) return;
  out.Key(key);
  out.Open('{');
  out.Member("path", bad->path);
  out.Member("what", bad->what);
  out.Close('}');
}

void AddComm(const CommCall& call, Document& out) {
  out.Open('{');
  out.Member("name", call.name);
  out.Member("api", call.api);
  AddPlace(call.place, out);
  AddOptional("group", call.group, out);
  AddOptional("root", call.root, out);
  out.Key("transfers");
  out.Open('[');
  for (const PeerTransfer& transfer : call.transfers) {
    out.Open('{');
    out.Truth("sends", transfer.direction == Transfer::kSend);
    AddOptional("peer", transfer.peer, out);
    AddOptional("tag", transfer.tag, out);
    out.Truth("is_object", transfer.is_object);
    out.Close('}');
  }
  out.Close(']');
  out.Truth("waits", call.waits);
  out.Truth("has_output", call.has_output);
  AddBad("bad_input", call.bad_input, out);
  AddBad("bad_output", call.bad_output, out);
  out.Close('}');
}

void AddGroup(const CommGroup& group, Document& out) {
  out.Open('{');
  out.Member("id", group.id);
  AddNumbers("ranks", group.ranks, out);
  out.Close('}');
}

void AddContents(std::string_view key, const ContentKey& contents, Document& out) {
  out.Key(key);
  out.Open('{');
  out.Member("digest", contents.digest);
  out.Key("statistics");
  out.Open('[');
  for (const uint64_t bits : contents.statistics) out.Raw(std::to_string(bits));
  out.Close(']');
  out.Key("element_count");
  out.Raw(std::to_string(contents.element_count));
  out.Close('}');
}

void AddContentPair(const ContentPair& pair, Document& out) {
  AddContents("target", pair.target, out);
  AddContents("golden", pair.golden, out);
}

// Reads members of one object; a member that is missing or of another type is remembered.
class Fields {
 public:
  Fields(const element& object, bool& good) : object_(object), good_(good) {}

  template <class T>
  T Get(const char* key) {
    T value{};
    if (object_[key].get(value) != simdjson::SUCCESS) good_ = false;
    return value;
  }
  std::string Text(const char* key) { return std::string(Get<std::string_view>(key)); }
  // The elements of an array; nothing when it is not there.
  std::vector<element> List(const char* key) {
    array list;
    if (object_[key].get(list) != simdjson::SUCCESS) {
      good_ = false;
      return {};
    }
    return {list.begin(), list.end()};
  }
  std::vector<std::string> Texts(const char* key) {
    std::vector<std::string> texts;
    for (const element item : List(key)) {
      std::string_view text;
      good_ = item.get(text) == simdjson::SUCCESS && good_;
      texts.emplace_back(text);
    }
    return texts;
  }
  std::optional<int64_t> Optional(const char* key) {
    element value;
    if (object_[key].get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
    int64_t number = 0;
    good_ = value.get(number) == simdjson::SUCCESS && good_;
    return number;
  }
  double Double(const char* key) {
    element value;
    double number = std::nan("");
    if (object_[key].get(value) != simdjson::SUCCESS) {
      good_ = false;
    } else if (value.is_string()) {
      const std::string_view text = value.get_string();
      if (text == "inf" || text == "-inf") number = text == "inf" ? INFINITY : -INFINITY;
    } else {
      good_ = value.get(number) == simdjson::SUCCESS && good_;
    }
    return number;
  }
  std::optional<element> Member(const char* key) {
    element value;
    if (object_[key].get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
    return value;
  }
  bool& good() { return good_; }

 private:
  element object_;
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
  report::VisitMembers(answer, [&]<class T>(const char* key, T& value) {
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

std::optional<BadValue> BadFrom(const std::optional<element>& member, bool& good) {
  if (!member) return std::nullopt;
  Fields fields(*member, good);
  return BadValue{.path = fields.Text("path"), .what = fields.Text("what")};
}

CommCall CommFrom(Fields fields) {
  CommCall call;
  call.name = fields.Text("name");
  call.api = fields.Text("api");
  call.place = PlaceFrom(fields);
  call.group = static_cast<int>(fields.Optional("group").value_or(-1));
  call.root = fields.Optional("root");
  for (const element item : fields.List("transfers")) {
    Fields of(item, fields.good());
    PeerTransfer transfer;
    transfer.direction = of.Get<bool>("sends") ? Transfer::kSend : Transfer::kReceive;
    transfer.peer = of.Optional("peer");
    transfer.tag = of.Optional("tag").value_or(0);
    transfer.is_object = of.Get<bool>("is_object");
    call.transfers.push_back(transfer);
  }
  call.waits = fields.Get<bool>("waits");
  call.has_output = fields.Get<bool>("has_output");
  call.bad_input = BadFrom(fields.Member("bad_input"), fields.good());
  call.bad_output = BadFrom(fields.Member("bad_output"), fields.good());
  return call;
}

ContentKey ContentsFrom(const std::optional<element>& member, bool& good) {
  ContentKey contents;
  good = good && member.has_value();
  if (!good) return contents;
  Fields fields(*member, good);
  contents.digest = fields.Text("digest");
  const std::vector<element> bits = fields.List("statistics");
  good = good && bits.size() == contents.statistics.size();
  for (size_t i = 0; good && i < bits.size(); ++i) {
    good = bits[i].get(contents.statistics[i]) == simdjson::SUCCESS;
  }
  contents.element_count = fields.Get<int64_t>("element_count");
  return contents;
}

ContentPair ContentPairFrom(Fields& fields) {
  return {ContentsFrom(fields.Member("target"), fields.good()),
          ContentsFrom(fields.Member("golden"), fields.good())};
}

CommGroup GroupFrom(Fields fields) {
  CommGroup group;
  group.id = fields.Text("id");
  for (const element rank : fields.List("ranks")) {
    int64_t number = 0;
    fields.good() = rank.get(number) == simdjson::SUCCESS && fields.good();
    group.ranks.push_back(number);
  }
  return group;
}

CompareCounts CountsFrom(Fields& fields) {
  const std::vector<element> items = fields.List("counts");
  CountList list{};
  fields.good() = fields.good() && items.size() == list.size();
  for (size_t i = 0; fields.good() && i < list.size(); ++i) {
    fields.good() = items[i].get(list[i]) == simdjson::SUCCESS;
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

DetectionLimit LimitFrom(const std::optional<element>& member, bool& good) {
  DetectionLimit limit;
  good = good && member.has_value();
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
  for (const CommCall& call : outcome.communication) {
    if (call.group >= static_cast<int>(outcome.groups.size())) return false;
  }
  return true;
}

}  // namespace

void AddMembers(const FirstWrongCall& call, Document& out) {
  report::VisitMembers(call, [&]<class T>(std::string_view key, const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      out.Truth(key, value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      out.Member(key, value);
    } else {
      out.Texts(key, value);
    }
  });
}

Result<std::string> FormatOutcome(const RankOutcome& outcome) {
  Document out;
  out.Open('{');
  out.Number("mode", static_cast<uint64_t>(outcome.mode));
  out.Truth("of_xor", outcome.of_xor);
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
    AddMembers(*outcome.first_wrong_call, out);
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
  out.Open('[');
  for (const CommCall& call : outcome.communication) AddComm(call, out);
  out.Close(']');
  out.Key("groups");
  out.Open('[');
  for (const CommGroup& group : outcome.groups) AddGroup(group, out);
  out.Close(']');
  out.Key("sent");
  out.Open('[');
  for (const SentValue& sent : outcome.sent) {
    out.Open('{');
    AddContentPair(sent.contents, out);
    AddDouble("explained", sent.explained, out);
    out.Close('}');
  }
  out.Close(']');
  out.Key("wrong_arrivals");
  out.Open('[');
  for (const ContentPair& pair : outcome.wrong_arrivals) {
    out.Open('{');
    AddContentPair(pair, out);
    out.Close('}');
  }
  out.Close(']');
  out.Texts("warnings", outcome.warnings);
  out.Texts("files", outcome.files);
  out.Close('}');
  return out.Finish();
}

Result<RankOutcome> ReadOutcome(std::string_view text) {
  simdjson::dom::parser parser;
  element root;
  const Error damaged(ErrorCode::kCorrupt, "not the stored outcome of a comparison");
  if (parser.parse(text.data(), text.size()).get(root) != simdjson::SUCCESS) return damaged;
  bool good = true;
  Fields fields(root, good);
  RankOutcome outcome;
  const auto mode = fields.Get<uint64_t>("mode");
  if (mode > static_cast<uint64_t>(CompareMode::kTensor)) return damaged;
  outcome.mode = static_cast<CompareMode>(mode);
  outcome.counts = CountsFrom(fields);
  outcome.of_xor = fields.Get<bool>("of_xor");
  outcome.limit = LimitFrom(fields.Member("limit"), good);
  outcome.complete = fields.Get<bool>("complete");
  outcome.answer_line = fields.Text("answer_line");
  outcome.fails_on = fields.Texts("fails_on");
  if (const auto answer = fields.Member("first_wrong_call")) {
    outcome.first_wrong_call = AnswerFrom(Fields(*answer, good));
  }
  for (const element item : fields.List("wrong")) {
    outcome.wrong.push_back(WrongFrom(Fields(item, good)));
  }
  outcome.wrong_calls = fields.Get<uint64_t>("wrong_calls");
  for (const element item : fields.List("communication")) {
    outcome.communication.push_back(CommFrom(Fields(item, good)));
  }
  for (const element item : fields.List("groups")) {
    outcome.groups.push_back(GroupFrom(Fields(item, good)));
  }
  for (const element item : fields.List("sent")) {
    Fields sent(item, good);
    outcome.sent.push_back({ContentPairFrom(sent), sent.Double("explained")});
  }
  for (const element item : fields.List("wrong_arrivals")) {
    Fields pair(item, good);
    outcome.wrong_arrivals.push_back(ContentPairFrom(pair));
  }
  outcome.warnings = fields.Texts("warnings");
  outcome.files = fields.Texts("files");
  if (!good || !IsSound(outcome)) return damaged;
  return outcome;
}

}  // namespace plumbline::pipeline
