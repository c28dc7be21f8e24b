#include "view/rank_facts.h"

#include <fmt/format.h>

#include <type_traits>

#include "base/text/json_members.h"
#include "report/result_json.h"

namespace plumbline::view {
namespace {

json::Value Natural(uint64_t number) { return json::Value(static_cast<int64_t>(number)); }

bool TruthAt(const json::Value& object, std::string_view key) {
  const json::Value* const member = object.Find(key);
  const bool* const truth = member == nullptr ? nullptr : member->AsBool();
  return truth != nullptr && *truth;
}

std::vector<std::string> TextsAt(const json::Value& object, std::string_view key) {
  std::vector<std::string> texts;
  for (const json::Value& item : json::ListAt(object, key)) {
    if (const std::string* const text = item.AsText()) texts.push_back(*text);
  }
  return texts;
}

FirstWrongCall CallFrom(const json::Value& value) {
  FirstWrongCall call;
  report::VisitMembers(call, [&]<class T>(std::string_view key, T& member) {
    if constexpr (std::is_same_v<T, bool>) {
      member = TruthAt(value, key);
    } else if constexpr (std::is_same_v<T, std::string>) {
      member = json::TextAt(value, key);
    } else {
      member = TextsAt(value, key);
    }
  });
  return call;
}

json::Value AnswerFacts(const RankAnswer& answer) {
  json::Value value = json::Value::Object();
  value.Put("label", json::Value(std::string_view(answer.label)));
  value.Put("task", json::Value(std::string_view(answer.task)));
  value.Put("answer", json::Value(std::string_view(answer.answer)));
  value.Put("text", json::Value(std::string_view(answer.text)));
  value.Put("complete", json::Value(answer.is_complete));
  json::Value counts = json::Value::Object();
  VisitCounts(answer.counts,
              [&](std::string_view name, uint64_t number) { counts.Put(name, Natural(number)); });
  value.Put("counts", std::move(counts));
  if (answer.first_wrong_call)
    value.Put("first_wrong_call", FirstCallFacts(*answer.first_wrong_call));
  return value;
}

RankAnswer AnswerFrom(const json::Value& value) {
  RankAnswer answer;
  answer.label = json::TextAt(value, "label");
  answer.task = json::TextAt(value, "task");
  answer.answer = json::TextAt(value, "answer");
  answer.text = json::TextAt(value, "text");
  answer.is_complete = TruthAt(value, "complete");
  if (const json::Value* const counts = value.Find("counts")) {
    VisitCounts(answer.counts, [&](std::string_view name, uint64_t& number) {
      number = json::NaturalAt(*counts, name);
    });
  }
  const json::Value* const first = value.Find("first_wrong_call");
  if (first != nullptr && first->is_object()) answer.first_wrong_call = CallFrom(*first);
  return answer;
}

}  // namespace

std::string CountsText(const NodeCounts& counts) {
  std::string text;
  for (const vis::Level level : {vis::Level::kError, vis::Level::kWarning, vis::Level::kPass}) {
    text +=
        fmt::format("{} {}, ", counts.levels[static_cast<size_t>(level)], vis::LevelName(level));
  }
  return text + fmt::format("{} without level, {} and {} without counterpart", counts.not_judged,
                            counts.unmatched_target, counts.unmatched_golden);
}

json::Value FirstCallFacts(const FirstWrongCall& call) {
  json::Value value = json::Value::Object();
  report::VisitMembers(call, [&]<class T>(std::string_view key, const T& member) {
    if constexpr (std::is_same_v<T, std::string>) {
      value.Put(key, json::Value(std::string_view(member)));
    } else {
      value.Put(key, json::Value(member));
    }
  });
  return value;
}

std::string RankFactsKey(int64_t step, int64_t rank) {
  return fmt::format("step{}/rank{}", step, rank);
}

std::string RankFactsText(const RankFacts& facts) {
  json::Value value = json::Value::Object();
  value.Put("nodes", Natural(facts.nodes));
  value.Put("golden_nodes", Natural(facts.golden_nodes));
  value.Put("overflows", Natural(facts.overflows));
  value.Put("micro_steps", json::Value(facts.micro_steps));
  value.Put("fingerprint", json::Value(std::string_view(facts.fingerprint)));
  value.Put("notes", json::Value(facts.notes));
  if (facts.answer) value.Put("comparison", AnswerFacts(*facts.answer));
  return value.Text();
}

Result<RankFacts> ParseRankFacts(std::string_view text) {
  PL_TRY_ASSIGN(const json::Value value, json::Value::Parse(text));
  if (!value.is_object()) return Error(ErrorCode::kCorrupt, "facts of a rank: no JSON object");
  RankFacts facts;
  facts.nodes = json::NaturalAt(value, "nodes");
  facts.golden_nodes = json::NaturalAt(value, "golden_nodes");
  facts.overflows = json::NaturalAt(value, "overflows");
  const json::Value* const steps = value.Find("micro_steps");
  if (steps != nullptr) facts.micro_steps = steps->AsInteger().value_or(1);
  facts.fingerprint = json::TextAt(value, "fingerprint");
  facts.notes = TextsAt(value, "notes");
  const json::Value* const answer = value.Find("comparison");
  if (answer != nullptr && answer->is_object()) facts.answer = AnswerFrom(*answer);
  return facts;
}

}  // namespace plumbline::view
