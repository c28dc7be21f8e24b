#include "match/surroundings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "match/name_match.h"

namespace plumbline::match {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

std::vector<CallItems> Calls(const std::vector<std::string>& names) {
  std::vector<CallItems> calls;
  for (const std::string& name : names) {
    CallItems& call = calls.emplace_back();
    call.name = name;
    Item item;
    item.name = name + ".output.0";
    item.is_tensor = true;
    item.dtype = "torch.float32";
    item.shape_text = "[2]";
    item.role = ItemRole::kOutput;
    call.items = {item};
  }
  return calls;
}

// The golden name that a target call is paired with.
std::string PartnerOf(const std::vector<CallItems>& target, const std::vector<CallItems>& golden,
                      const std::string& name) {
  for (const CallPair& pair : MatchCalls(target, golden)) {
    if (pair.target != kNone && target[pair.target].name == name) {
      return pair.golden == kNone ? "" : golden[pair.golden].name;
    }
  }
  return "no such call";
}

TEST(Surroundings, AnchorsAreTheNearestPairs) {
  const auto target = Calls({"A", "X", "B"});
  const auto golden = Calls({"A", "B"});
  const std::vector<size_t> partner{0, kNone, 1}, counterpart{0, 2};
  std::vector<AlignedCall> a(1), b(1);
  a[0].index = 1;
  b[0].index = 1;
  Surroundings(target, golden, partner, counterpart).Describe(a, b);
  EXPECT_EQ(a[0].pair_before, 1u);
  EXPECT_EQ(a[0].pair_after, 2u);
  EXPECT_EQ(b[0].pair_before, 1u);
  EXPECT_EQ(b[0].pair_after, 0u);  // the last
}

// In a loop one round is written out: the rounds after it keep their partners.
TEST(Surroundings, RoundsOfALoopStayWhereTheyAre) {
  std::vector<std::string> golden, target;
  for (int round = 0; round < 4; ++round) {
    const std::string number = std::to_string(round) + ".forward";
    for (std::vector<std::string>* side : {&golden, &target})
      side->push_back("Torch.mul." + number);
    golden.push_back("Torch.logsumexp." + number);
    if (round == 1) {
      target.insert(target.end(), {"Torch.exp.0.forward", "Torch.log.0.forward"});
    } else {
      target.push_back("Torch.logsumexp." + std::to_string(round - (round > 1 ? 1 : 0)) +
                       ".forward");
    }
  }
  const auto ours = Calls(target), theirs = Calls(golden);
  EXPECT_EQ(PartnerOf(ours, theirs, "Torch.logsumexp.0.forward"), "Torch.logsumexp.0.forward");
  EXPECT_EQ(PartnerOf(ours, theirs, "Torch.logsumexp.1.forward"), "Torch.logsumexp.2.forward");
  EXPECT_EQ(PartnerOf(ours, theirs, "Torch.logsumexp.2.forward"), "Torch.logsumexp.3.forward");
}

// Backward has the calls the other way round; a gradient goes with its forward call.
TEST(Surroundings, GradientsFollowTheirForwardCalls) {
  const auto ours = Calls({"Torch.sin.0.forward", "Torch.add.0.forward", "Torch.cos.0.forward",
                           "Torch.add.0.backward"});
  const auto theirs =
      Calls({"Torch.add.0.forward", "Torch.sin.0.forward", "Torch.add.1.forward",
             "Torch.cos.0.forward", "Torch.add.1.backward", "Torch.add.0.backward"});
  EXPECT_EQ(PartnerOf(ours, theirs, "Torch.add.0.forward"), "Torch.add.1.forward");
  EXPECT_EQ(PartnerOf(ours, theirs, "Torch.add.0.backward"), "Torch.add.1.backward");
}

TEST(Surroundings, NothingAroundIsNoHelpAndNoHarm) {
  EXPECT_EQ(PartnerOf(Calls({"Torch.add.0.forward"}),
                      Calls({"Torch.add.0.forward", "Torch.add.1.forward"}), "Torch.add.0.forward"),
            "Torch.add.0.forward");
}

}  // namespace
}  // namespace plumbline::match
