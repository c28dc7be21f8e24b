#include "view/query/answers.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "base/text/json.h"
#include "view/query/query_hits.h"
#include "view/query/query_language.h"
#include "view/store/name_index.h"
#include "view/store/store_for_test.h"

namespace plumbline::view {
namespace {

using for_test::PlainNode;
using for_test::RandomResult;
using Asked = std::map<std::string, std::string, std::less<>>;

json::Value Ask(const ResultStore& store, std::string_view question, const Asked& asked,
                const ResultStore* base = nullptr) {
  const auto answer = Answer(store, question, Parameters(asked), base);
  EXPECT_TRUE(answer) << (answer ? "" : answer.error().message());
  std::string text = answer.value_or("null");
  // Bytes of names that are no UTF-8 travel as lone surrogates, which browsers take and Parse()
  // not.
  for (size_t at = text.find("\\udc"); at != std::string::npos; at = text.find("\\udc", at)) {
    text.replace(at, 4, "\\u00");
  }
  const auto parsed = json::Value::Parse(text);
  EXPECT_TRUE(parsed) << text.substr(0, 200);
  return parsed.value_or(json::Value());
}

std::vector<std::string> NamesIn(const json::Value& table) {
  constexpr size_t kName = 3;
  std::vector<std::string> names;
  for (const json::Value& row : *table.Find("rows")->AsList()) {
    names.push_back(*(*row.AsList())[kName].AsText());
  }
  return names;
}

// --- the language ---

TEST(ParseQuery, SaysWhereTheFaultIs) {
  const std::vector<std::pair<std::string, size_t>> cases = {
      {"level:eror", 0}, {"a level:", 2},   {"a  nosuch:1", 3},
      {"rank:x", 0},     {"error>", 0},     {"error>nan", 0},
      {"x \"open", 2},   {"-level:bad", 1}, {"\xF0\x9F\x98\x80 level:x", 3},
      {"nosuch>3", 0}};
  for (const auto& [query, at] : cases) {
    const ParsedQuery parsed = ParseQuery(query);
    ASSERT_TRUE(parsed.fault) << query;
    EXPECT_EQ(parsed.fault->at, at) << query << ": " << parsed.fault->message;
  }
  EXPECT_TRUE(ParseQuery(std::string(10'000, 'x')).fault);
  std::string many;
  for (int i = 0; i < 100; ++i) many += "a ";
  EXPECT_TRUE(ParseQuery(many).fault);
}

TEST(ParseQuery, TakesTextsInQuotesAsTheyAre) {
  const ParsedQuery parsed = ParseQuery(R"(-"level:error \"x\"" Abc)");
  ASSERT_FALSE(parsed.fault);
  ASSERT_EQ(parsed.terms.size(), 2U);
  EXPECT_TRUE(parsed.terms[0].is_negated);
  EXPECT_EQ(parsed.terms[0].texts[0], "level:error \"x\"");
  EXPECT_EQ(parsed.terms[1].texts[0], "abc");
}

TEST(ParseQuery, KnowsShortNamesOfTypes) {
  EXPECT_EQ(PlainDType("torch.bfloat16"), PlainDType("BF16"));
  EXPECT_EQ(PlainDType("mindspore.Float32"), PlainDType("fp32"));
  EXPECT_EQ(PlainShape("[2, 8]"), PlainShape("2,8"));
  EXPECT_NE(PlainShape("[2, 8]"), PlainShape("[28]"));
}

// --- what is found, against a look at every node ---

using Holds = std::function<bool(const PlainNode& node, const ResultStore& store, uint32_t id)>;

const std::vector<std::pair<std::string, Holds>>& Examples() {
  const auto level = [](const ResultStore& store, uint32_t id) {
    return NodeLevelName(static_cast<NodeLevel>(store.nodes().level[id]));
  };
  static const std::vector<std::pair<std::string, Holds>> kExamples = {
      {"", [](const auto&, const auto&, uint32_t) { return true; }},
      {"level:error,warning",
       [=](const auto&, const auto& store, uint32_t id) {
         return level(store, id) == "error" || level(store, id) == "warning";
       }},
      {"-level:error",
       [=](const auto&, const auto& store, uint32_t id) { return level(store, id) != "error"; }},
      {"overflow:high", [](const auto& node, const auto&,
                           uint32_t) { return node.record.overflow == StoredOverflow::kHigh; }},
      {"type:api", [](const auto& node, const auto&,
                      uint32_t) { return node.record.type == StoredType::kApi; }},
      {"op:Linear", [](const auto& node, const auto&,
                       uint32_t) { return node.name.starts_with("Functional.linear."); }},
      {"dir:backward", [](const auto& node, const auto&,
                          uint32_t) { return node.name.find(".backward.") != std::string::npos; }},
      {"rank:1", [](const auto& node, const auto&, uint32_t) { return node.place == 1; }},
      {"step:0", [](const auto&, const auto&, uint32_t) { return true; }},
      {"step:1", [](const auto&, const auto&, uint32_t) { return false; }},
      {"ms:1,2",
       [](const auto& node, const auto&, uint32_t) { return node.record.micro_step > 0; }},
      {"side:golden", [](const auto& node, const auto&, uint32_t) { return node.is_golden; }},
      {"flag:source,first",
       [](const auto& node, const auto&, uint32_t) { return (node.record.flags & 3) != 0; }},
      {"is:leaf",
       [](const auto&, const auto& store, uint32_t id) { return store.nodes().size[id] == 1; }},
      {"is:matched",
       [](const auto& node, const auto&, uint32_t) { return node.partner != kNoNode; }},
      {"size>=3",
       [](const auto&, const auto& store, uint32_t id) { return store.nodes().size[id] >= 3; }},
      {"SCRIPT -12",
       [](const auto& node, const auto&, uint32_t) {
         return node.name.find("script") != std::string::npos &&
                node.name.find("12") == std::string::npos;
       }},
      {"error>0.5 side:target",
       [](const auto& node, const auto&, uint32_t) {
         return !node.is_golden && node.record.error > 0.5F;
       }},
      {"dtype:bf16 side:target",
       [](const auto& node, const auto&, uint32_t) {
         return !node.is_golden && node.dtype == "torch.bfloat16";
       }},
      {"shape:[2,8] side:target",
       [](const auto& node, const auto&, uint32_t) {
         return !node.is_golden && node.shape == "[2, 8]";
       }},
  };
  return kExamples;
}

TEST(HitsOf, FindWhatALookAtEveryNodeFinds) {
  const RandomResult result(11, 3, 300);
  const auto store = result.Open();
  for (const auto& [query, holds] : Examples()) {
    const ParsedQuery parsed = ParseQuery(query);
    ASSERT_FALSE(parsed.fault) << query;
    const auto hits = HitsOf(*store, query, parsed.terms);
    uint32_t total = 0;
    for (uint32_t id = 0; id < store->size(); ++id) {
      const bool expected = holds(result.nodes()[id], *store, id);
      EXPECT_EQ(hits->Has(id), expected) << query << ": " << result.nodes()[id].name;
      EXPECT_EQ(hits->CountIn(0, id), total);
      total += expected ? 1 : 0;
    }
    EXPECT_EQ(hits->total(), total);
  }
}

TEST(AnswerFind, PagesHoldEveryHitOnce) {
  const RandomResult result(12, 2, 400);
  const auto store = result.Open();
  for (const std::string order : {"execution", "name", "error"}) {
    std::set<int64_t> seen;
    std::string cursor;
    int64_t total = 0;
    do {
      const json::Value page = Ask(
          *store, "find", {{"q", "linear"}, {"order", order}, {"limit", "7"}, {"cursor", cursor}});
      total = *page.Find("total")->AsInteger();
      for (const json::Value& row : *page.Find("rows")->Find("rows")->AsList()) {
        EXPECT_TRUE(seen.insert(*(*row.AsList())[0].AsInteger()).second);
      }
      cursor = *page.Find("cursor")->AsText();
    } while (!cursor.empty());
    EXPECT_EQ(static_cast<int64_t>(seen.size()), total);
    EXPECT_GT(total, 20);
  }
}

TEST(AnswerFind, AFaultyQueryIsAnAnswer) {
  const RandomResult result(13, 1, 20);
  const json::Value answer = Ask(*result.Open(), "find", {{"q", "level:x"}});
  EXPECT_EQ(*answer.Find("error")->Find("at")->AsInteger(), 0);
  EXPECT_TRUE(answer.Find("rows")->Find("rows")->AsList()->empty());
}

// --- the tree ---

TEST(AnswerChildren, ListsEveryChildOnceInOrderAndStaysSmall) {
  const RandomResult result(14, 1, 3000);
  const auto store = result.Open();
  std::vector<std::string> expected, got;
  for (const PlainNode& node : result.nodes()) {
    if (node.parent == 0) expected.push_back(node.name);
  }
  for (;;) {
    const Asked asked{{"node", "0"}, {"offset", std::to_string(got.size())}};
    EXPECT_LE(Answer(*store, "children", Parameters(asked))->size(), 25'000U);
    const json::Value answer = Ask(*store, "children", asked);
    const json::Value& list = answer.Find("lists")->AsList()->front();
    EXPECT_EQ(*list.Find("total")->AsInteger(), static_cast<int64_t>(expected.size()));
    const std::vector<std::string> names = NamesIn(*list.Find("rows"));
    if (names.empty()) break;
    got.insert(got.end(), names.begin(), names.end());
  }
  // Bytes that are no UTF-8 become U+FFFD or an escape on their way.
  ASSERT_EQ(got.size(), expected.size());
  EXPECT_EQ(got.front(), expected.front());
}

TEST(AnswerChildren, CountsHitsBelowEveryRow) {
  const RandomResult result(15, 1, 400);
  const auto store = result.Open();
  const json::Value answer =
      Ask(*store, "children", {{"node", "0"}, {"q", "matmul"}, {"limit", "1000"}});
  constexpr size_t kId = 0, kHits = 20, kIsHit = 21;
  for (const json::Value& row :
       *answer.Find("lists")->AsList()->front().Find("rows")->Find("rows")->AsList()) {
    const auto id = static_cast<uint32_t>(*(*row.AsList())[kId].AsInteger());
    int64_t hits = 0;
    for (uint32_t other = 0; other < store->size(); ++other) {
      const bool is_hit = result.nodes()[other].name.find("matmul") != std::string::npos;
      hits += is_hit && result.IsBelow(other, id) ? 1 : 0;
    }
    EXPECT_EQ(*(*row.AsList())[kHits].AsInteger(), hits);
    const bool is_hit = result.nodes()[id].name.find("matmul") != std::string::npos;
    EXPECT_EQ(*(*row.AsList())[kIsHit].AsBool(), is_hit);
  }
}

TEST(AnswerPath, OfAnUnknownNameIsTheNearestModule) {
  const testing::TestDirectory directory;
  auto writer = StoreWriter::Create(directory.Path("s"));
  PlaceBuilder place = writer->Begin(0, 0);
  place.AddNode(false, {.name = "DefaultModel", .type = StoredType::kRoot});
  place.AddNode(false, {.name = "Module.a.A.forward.0", .parent = 0});
  place.AddNode(false, {.name = "Module.a.b.B.forward.0", .parent = 1});
  ASSERT_TRUE(writer->Add(std::move(place)));
  ASSERT_TRUE(writer->Finish(json::Value::Object(), {}));
  const auto store = *ResultStore::Open(directory.Path("s"));
  const auto last = [&](const std::string& name) {
    const json::Value answer = Ask(*store, "path", {{"place", "0"}, {"name", name}});
    return NamesIn(*answer.Find("rows")).back();
  };
  EXPECT_EQ(last("Module.a.b.B.forward.0"), "Module.a.b.B.forward.0");
  EXPECT_EQ(last("Module.a.b.c.C.forward.0"), "Module.a.b.B.forward.0");
  EXPECT_EQ(last("Module.a.x.X.forward.0"), "Module.a.A.forward.0");
  EXPECT_EQ(last("Functional.relu.0.forward"), "DefaultModel");
}

TEST(AnswerStructure, HoldsEveryNodeOfBothSidesOnce) {
  const RandomResult result(16, 1, 300);
  const auto store = result.Open();
  const json::Value answer = Ask(*store, "structure", {{"place", "0"}, {"limit", "10000"}});
  std::set<int64_t> seen;
  for (const json::Value& row : *answer.Find("rows")->AsList()) {
    for (const std::string_view side : {"target", "golden"}) {
      if (row.Find(side)->is_null()) continue;
      EXPECT_TRUE(seen.insert(*(*row.Find(side)->AsList())[0].AsInteger()).second);
    }
  }
  EXPECT_EQ(seen.size(), store->size());
}

TEST(AnswerBaseline, AgainstItselfNothingChanged) {
  const RandomResult result(17, 2, 200), other(18, 2, 200);
  const auto store = result.Open();
  const json::Value same = Ask(*store, "baseline", {}, store.get());
  EXPECT_EQ(*same.Find("same")->AsInteger(), 400);
  EXPECT_EQ(*same.Find("new")->AsInteger(), 0);
  const json::Value changed = Ask(*store, "baseline", {}, other.Open().get());
  EXPECT_GT(*changed.Find("new")->AsInteger(), 0);
}

TEST(Answer, RefusesWhatIsNotThere) {
  const RandomResult result(19, 1, 20);
  const auto store = result.Open();
  const auto code = [&](std::string_view question, const Asked& asked) {
    return Answer(*store, question, Parameters(asked)).error().code();
  };
  EXPECT_EQ(code("nosuch", {}), ErrorCode::kNotFound);
  EXPECT_EQ(code("node", {{"node", "999"}}), ErrorCode::kNotFound);
  EXPECT_EQ(code("node", {}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code("children", {{"node", "1,x"}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code("find", {{"place", "7"}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code("find", {{"order", "random"}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code("baseline", {}), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace plumbline::view
