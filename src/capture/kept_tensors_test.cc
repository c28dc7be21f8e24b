#include "capture/kept_tensors.h"

#include <gtest/gtest.h>

#include "capture/recorder_for_test.h"

namespace plumbline::capture {
namespace {

using testing::RefTo;

KeptTensor Kept(int* object, size_t begin, size_t end) {
  KeptTensor kept;
  kept.begin = begin;
  kept.end = end;
  kept.tensor = RefTo(object);
  kept.version = 3;
  return kept;
}

TEST(Writes, FollowFromTheNameOfTheApi) {
  EXPECT_EQ(WritesOf("Tensor.add_", {}), Writes::kFirst);
  EXPECT_EQ(WritesOf("Tensor.__iadd__", {}), Writes::kFirst);
  EXPECT_EQ(WritesOf("Tensor.__add__", {}), Writes::kNothing);
  EXPECT_EQ(WritesOf("Tensor.fill_", {}), Writes::kOverwritten);
  EXPECT_EQ(WritesOf("Functional.batch_norm", {}), Writes::kRunningStats);
  EXPECT_EQ(WritesOf("Torch.add", {}), Writes::kNothing);
}

TEST(Writes, FollowFromTheArguments) {
  EXPECT_EQ(WritesOf("Torch.add", {.has_out = true}), Writes::kOut);
  EXPECT_EQ(WritesOf("Functional.relu", {.is_in_place = true}), Writes::kEverything);
  EXPECT_EQ(WritesOf("Functional.relu", {.ends_in_true = true}), Writes::kFirst);
  EXPECT_EQ(WritesOf("Torch.sum", {.ends_in_true = true}), Writes::kNothing);
}

TEST(Writes, NameThePlacesThatChange) {
  EXPECT_TRUE(MayWrite(Writes::kFirst, "input.0.2"));
  EXPECT_FALSE(MayWrite(Writes::kFirst, "input.01"));
  EXPECT_TRUE(MayWrite(Writes::kOut, "kwargs.out"));
  EXPECT_TRUE(MayWrite(Writes::kRunningStats, "kwargs.running_mean"));
  EXPECT_FALSE(IsRead(Writes::kOverwritten, "input.0"));
  EXPECT_TRUE(IsRead(Writes::kFirst, "input.0"));
}

TEST(KeptTensors, EveryReferenceIsLetGoOfOnce) {
  int live = 0;
  {
    KeptTensors kept;
    kept.tensors.push_back(Kept(&live, 0, 1));
    KeptTensors moved(std::move(kept));
    moved.tensors.push_back(Kept(&live, 1, 2));
    EXPECT_EQ(live, 2);
    moved.Clear();
    EXPECT_EQ(live, 0);
    moved.tensors.push_back(Kept(&live, 0, 1));
  }
  EXPECT_EQ(live, 0);
}

TEST(KeptTensors, PartsMoveToTheirPlaceInTheEntry) {
  int live = 0;
  KeptTensors part, entry;
  part.tensors.push_back(Kept(&live, 2, 5));
  part.Note({.hit = true}, "input.0");
  entry.Append(std::move(part), 10);
  EXPECT_EQ(entry.tensors.at(0).begin, 12u);
  EXPECT_EQ(entry.tensors.at(0).end, 15u);
  EXPECT_TRUE(entry.input_hit);
  entry.TakeOff(12);
  EXPECT_EQ(entry.tensors.at(0).begin, 0u);
}

TEST(KeptTensors, OriginNeedsInputsThatCouldBeRead) {
  KeptTensors kept;
  EXPECT_EQ(kept.origin(), "unknown");
  kept.Note({}, "input.0");
  EXPECT_EQ(kept.origin(), "origin");
  kept.Note({.unknown = true}, "input.1");
  EXPECT_EQ(kept.origin(), "unknown");
  kept.Note({.hit = true}, "input.2");
  EXPECT_EQ(kept.origin(), "propagated");
}

TEST(KeptTensors, FlagsOfADeviceWaitUnlessTheCallDoesNotReadTheTensor) {
  int flag = 0;
  KeptTensors kept;
  kept.writes = Writes::kOverwritten;
  kept.Await(RefTo(&flag), "input.0");
  EXPECT_TRUE(kept.awaited.empty()) << "it is only filled";
  kept.Await({}, "input.1");
  EXPECT_TRUE(kept.awaited.empty());
  kept.Await(RefTo(&flag), "input.1");
  kept.in_output = true;
  kept.Await(RefTo(&flag), "output.0");
  ASSERT_EQ(kept.awaited.size(), 2u);
  EXPECT_FALSE(kept.awaited[0].in_output);
  EXPECT_TRUE(kept.awaited[1].in_output);
  KeptTensors entry;
  entry.Append(std::move(kept), 0);
  EXPECT_EQ(entry.awaited.size(), 2u);
  entry.Clear();
  EXPECT_TRUE(entry.awaited.empty());
}

TEST(KeptTensors, SaturatedTensorsAreTheirOwnKindOfHit) {
  KeptTensors kept;
  kept.Note({.saturated = true}, "input.0");
  EXPECT_TRUE(kept.is_saturated() && !kept.is_hit());
  EXPECT_EQ(kept.origin(), "propagated");
  kept.in_output = true;
  kept.Note({.hit = true}, "output.0");
  EXPECT_TRUE(kept.is_hit() && !kept.is_saturated());
  EXPECT_EQ(kept.origin(), "origin") << "of Inf";
}

TEST(KeptTensors, CopyGoesToHoldersOfThatVersionWithoutOne) {
  int tensor = 0, copies = 0;
  KeptTensors kept;
  kept.tensors.push_back(Kept(&tensor, 0, 1));
  const auto copy = [&] { return RefTo(&copies); };
  kept.Share(&tensor, 4, copy);
  kept.Share(&copies, 3, copy);
  EXPECT_EQ(copies, 0);
  kept.Share(&tensor, 3, copy);
  kept.Share(&tensor, 3, copy);
  EXPECT_EQ(copies, 1);
}

}  // namespace
}  // namespace plumbline::capture
