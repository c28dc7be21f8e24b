#include "match/data_match.h"

#include <gtest/gtest.h>

namespace plumbline::match {
namespace {

CallItems CallOf(const std::string& name, const std::vector<std::string>& parts) {
  CallItems call;
  call.name = name;
  for (const std::string& part : parts) {
    Item& item = call.items.emplace_back();
    item.name = name + "." + part;
    item.dtype = "torch.float32";
    item.shape_text = "[2]";
    if (part.starts_with("output")) item.role = ItemRole::kOutput;
  }
  return call;
}

// "target.item:golden.item" of every row, '-' where a side is missing.
std::string Rows(std::vector<CallItems> target, std::vector<CallItems> golden,
                 const TextPairs& mapping, std::vector<std::string>* warnings = nullptr) {
  std::vector<std::string> said;
  std::string text;
  for (const CallPair& pair : MatchByValues(target, golden, mapping, {}, said)) {
    const CallItems* a = pair.target == CallPair::kNone ? nullptr : &target[pair.target];
    const CallItems* b = pair.golden == CallPair::kNone ? nullptr : &golden[pair.golden];
    const size_t all = a != nullptr ? a->items.size() : b->items.size();
    for (size_t i = 0; i < (pair.links.empty() ? all : pair.links.size()); ++i) {
      const auto [k, l] = pair.links.empty() ? std::pair(i, i) : pair.links[i];
      text += (a == nullptr ? "-" : a->items[k].name) + ":";
      text += (b == nullptr ? "-" : b->items[l].name) + " ";
    }
  }
  if (warnings != nullptr) *warnings = said;
  return text;
}

TEST(DataMatch, ListedValuesGoWhereTheyAreMapped) {
  EXPECT_EQ(Rows({CallOf("A", {"input.0", "output.0"})}, {CallOf("B", {"input.1", "output.0"})},
                 {{"A.input.0", "B.input.1"}}),
            "A.input.0:B.input.1 A.output.0:B.output.0 ");
}

TEST(DataMatch, OtherCallsStayInTheReport) {
  EXPECT_EQ(Rows({CallOf("C", {"input.0"}), CallOf("A", {"input.0"}), CallOf("D", {"input.0"})},
                 {CallOf("B", {"input.0", "input.7"}), CallOf("C", {"input.0"})},
                 {{"A.input.0", "B.input.0"}}),
            "C.input.0:C.input.0 A.input.0:B.input.0 D.input.0:- -:B.input.7 ");
}

TEST(DataMatch, NullsWithoutPlaceAreLeftOutBetweenFrameworks) {
  for (const bool across : {false, true}) {
    std::vector<CallItems> target = {CallOf("A", {"output.0", "output.1"})};
    std::vector<CallItems> golden = {CallOf("B", {"output.0", "output.2"})};
    target[0].items[1].dtype.reset();
    golden[0].items[1].dtype.reset();
    std::vector<std::string> said;
    const TextPairs mapping = {{"A.output.0", "B.output.0"}};
    const MatchOptions options{.items = {.by_kind = across}};
    EXPECT_EQ(MatchByValues(target, golden, mapping, options, said).size(), across ? 1U : 3U);
  }
}

TEST(DataMatch, SeveralValuesMayGoToOneAndOneCallToSeveral) {
  EXPECT_EQ(
      Rows({CallOf("A", {"input.0", "input.1", "input.2"})},
           {CallOf("B", {"input.0"}), CallOf("C", {"input.0"})},
           {{"A.input.0", "B.input.0"}, {"A.input.1", "B.input.0"}, {"A.input.2", "C.input.0"}}),
      "A.input.0:B.input.0 A.input.1:B.input.0 A.input.2:C.input.0 ");
}

TEST(DataMatch, MissingNamesAreRowsAndWarnings) {
  std::vector<std::string> warnings;
  EXPECT_EQ(Rows({CallOf("A", {"input.0", "input.1"})}, {CallOf("B", {"input.0"})},
                 {{"A.input.0", "B.input.5"}, {"A.input.1", "N/A"}, {"X.input.0", "B.input.0"}},
                 &warnings),
            "A.input.0:- A.input.1:- -:B.input.0 ");
  EXPECT_EQ(warnings,
            (std::vector<std::string>{"data mapping: the golden side has no value B.input.5",
                                      "data mapping: the target has no value X.input.0"}));
}

}  // namespace
}  // namespace plumbline::match
