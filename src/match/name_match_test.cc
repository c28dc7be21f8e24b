#include "match/name_match.h"

#include <gtest/gtest.h>

namespace plumbline::match {
namespace {

Item TensorItem(const std::string& name, const std::string& dtype, const std::string& shape,
                ItemRole role) {
  Item item;
  item.name = name;
  item.is_tensor = true;
  item.dtype = dtype;
  item.shape_text = shape;
  item.role = role;
  return item;
}

CallItems CallOf(const std::string& name, const std::string& shape = "[2]",
                 const std::string& dtype = "torch.float32") {
  CallItems call;
  call.name = name;
  call.items = {TensorItem(name + ".input.0", dtype, shape, ItemRole::kInput),
                TensorItem(name + ".output.0", dtype, shape, ItemRole::kOutput)};
  return call;
}

std::string Described(const std::vector<CallPair>& pairs) {
  std::string text;
  for (const CallPair& pair : pairs) {
    const auto index = [](size_t i) { return i == CallPair::kNone ? "-" : std::to_string(i); };
    text += index(pair.target) + ":" + index(pair.golden) + (pair.reason.empty() ? "" : "!") + " ";
  }
  return text;
}

TEST(NameMatch, NothingIsLostWhenGoldenEndsEarly) {
  // Upstream stops reading here and reports two of the five calls.
  const std::vector<CallItems> target = {CallOf("A"), CallOf("X1"), CallOf("X2"), CallOf("X3"),
                                         CallOf("X4")};
  EXPECT_EQ(Described(MatchCalls(target, {CallOf("A")}, false)), "0:0 1:-! 2:-! 3:-! 4:-! ");
}

TEST(NameMatch, GoldenOnlyCallsAreReported) {
  const auto pairs = MatchCalls({CallOf("A")}, {CallOf("B"), CallOf("A")}, false);
  EXPECT_EQ(Described(pairs), "0:1 -:0! ");
  EXPECT_EQ(pairs[1].reason, "no-target");
}

TEST(NameMatch, SwappedOrderStillPairs) {
  EXPECT_EQ(Described(MatchCalls({CallOf("A"), CallOf("B")}, {CallOf("B"), CallOf("A")}, false)),
            "0:1 1:0 ");
}

TEST(NameMatch, OtherShapeIsUnmatchedOnBothSides) {
  const auto pairs = MatchCalls({CallOf("A", "[2]")}, {CallOf("A", "[3]")}, false);
  EXPECT_EQ(Described(pairs), "0:-! -:0! ");
  EXPECT_EQ(pairs[0].reason, "shape-differs");
  EXPECT_EQ(pairs[1].reason, "shape-differs");
  EXPECT_EQ(pairs[0].detail, "A.input.0: target [2], golden [3]");
}

TEST(NameMatch, LooseFloatsPairAndOthersDoNot) {
  const auto reason = [](const char* a, const char* b) {
    return MatchCalls({CallOf("A", "[2]", a)}, {CallOf("A", "[2]", b)}, false)[0].reason;
  };
  EXPECT_EQ(reason("torch.float32", "torch.bfloat16"), "");  // refused by 1.2.2
  EXPECT_EQ(reason("torch.float16", "torch.float32"), "");
  EXPECT_EQ(reason("torch.float16", "torch.bfloat16"), "");
  EXPECT_EQ(reason("Float16", "torch.float32"), "");
  EXPECT_EQ(reason("torch.float64", "torch.float32"), "dtype-differs");
  EXPECT_EQ(reason("torch.int64", "torch.int32"), "dtype-differs");
}

TEST(NameMatch, ExtraArgumentIsAStructureDifference) {
  CallItems longer = CallOf("A");
  longer.items.insert(longer.items.begin() + 1,
                      TensorItem("A.input.1", "torch.float32", "[2]", ItemRole::kInput));
  EXPECT_EQ(MatchCalls({longer}, {CallOf("A")}, false)[0].reason, "structure-differs");
}

TEST(NameMatch, CallNumbersAreFoundWhereverTheyStand) {
  EXPECT_EQ(WithoutCallNumber("Functional.linear.13.forward"), "Functional.linear.forward");
  EXPECT_EQ(WithoutCallNumber("Module.layers.1.fc.Linear.backward.3"),
            "Module.layers.1.fc.Linear.backward");
  EXPECT_EQ(WithoutCallNumber("Module.fc.Linear.parameters_grad"),
            "Module.fc.Linear.parameters_grad");
}

TEST(NameMatch, FuzzyPairsByOccurrence) {
  const std::vector<CallItems> target = {CallOf("T.f.0.backward"), CallOf("T.f.2.backward"),
                                         CallOf("T.f.4.backward")};
  const std::vector<CallItems> golden = {CallOf("T.f.0.backward"), CallOf("T.f.1.backward"),
                                         CallOf("T.f.2.backward")};
  EXPECT_EQ(Described(MatchCalls(target, golden, true)), "0:0 1:1 2:2 ");
}

TEST(NameMatch, FuzzyAlignsByShapeWhenCountsDiffer) {
  const std::vector<CallItems> target = {CallOf("T.f.0.forward", "[1]"),
                                         CallOf("T.f.1.forward", "[2]"),
                                         CallOf("T.f.2.forward", "[3]")};
  const std::vector<CallItems> golden = {CallOf("T.f.0.forward", "[2]"),
                                         CallOf("T.f.1.forward", "[3]")};
  EXPECT_EQ(Described(MatchCalls(target, golden, true)), "0:-! 1:0 2:1 ");
}

TEST(NameMatch, EmptySides) {
  EXPECT_TRUE(MatchCalls({}, {}, false).empty());
  EXPECT_EQ(Described(MatchCalls({}, {CallOf("A")}, false)), "-:0! ");
}

}  // namespace
}  // namespace plumbline::match
