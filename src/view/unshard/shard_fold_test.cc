#include "view/unshard/shard_fold.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "record/recorded_number.h"

namespace plumbline::view {
namespace {

// What a recorder writes of these elements.
TensorRecord Recorded(const std::vector<double>& elements, const Shape& shape) {
  TensorRecord tensor;
  tensor.type = "torch.Tensor";
  tensor.dtype_text = "torch.float32";
  tensor.shape = shape;
  tensor.max = *std::ranges::max_element(elements);
  tensor.min = *std::ranges::min_element(elements);
  tensor.mean =
      std::accumulate(elements.begin(), elements.end(), 0.0) / static_cast<double>(elements.size());
  tensor.norm =
      std::sqrt(std::inner_product(elements.begin(), elements.end(), elements.begin(), 0.0));
  return tensor;
}

std::vector<double> Waves(size_t count, double phase = 0) {
  std::vector<double> elements;
  for (size_t i = 0; i < count; ++i) {
    elements.push_back(std::sin(0.7 * static_cast<double>(i) + phase) + 0.1);
  }
  return elements;
}

FoldedTensor Folded(const TensorRecord& golden, const std::vector<TensorRecord>& parts) {
  std::vector<const TensorRecord*> pointers;
  for (const TensorRecord& part : parts) pointers.push_back(&part);
  return FoldShards(golden, pointers);
}

void ExpectSame(const TensorRecord& found, const TensorRecord& golden) {
  EXPECT_EQ(found.shape, golden.shape);
  EXPECT_EQ(NumberOf(found.max), NumberOf(golden.max));
  EXPECT_EQ(NumberOf(found.min), NumberOf(golden.min));
  EXPECT_NEAR(*NumberOf(found.mean), *NumberOf(golden.mean), 1e-15);
  EXPECT_NEAR(*NumberOf(found.norm), *NumberOf(golden.norm), 1e-14);
}

// The first `count` elements, and so on.
std::vector<double> Cut(const std::vector<double>& all, size_t first, size_t count) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

TEST(FoldShards, ShardsOfUnequalSizeAreWeighted) {
  const auto all = Waves(24);
  const TensorRecord golden = Recorded(all, {6, 4});
  const auto folded =
      Folded(golden, {Recorded(Cut(all, 0, 16), {4, 4}), Recorded(Cut(all, 16, 8), {2, 4})});
  EXPECT_EQ(folded.share, Share::kShards);
  EXPECT_EQ(folded.dimensions, (std::vector<size_t>{0}));
  EXPECT_EQ(folded.parts, 2);
  ExpectSame(folded.tensor, golden);
}

TEST(FoldShards, ShardsHeldTwiceCountOnce) {
  const auto all = Waves(24);
  const TensorRecord golden = Recorded(all, {6, 4});
  const TensorRecord first = Recorded(Cut(all, 0, 12), {3, 4});
  const TensorRecord second = Recorded(Cut(all, 12, 12), {3, 4});
  const auto folded = Folded(golden, {first, second, first, second});
  EXPECT_EQ(folded.share, Share::kShards);
  EXPECT_EQ(folded.parts, 2);
  ExpectSame(folded.tensor, golden);
}

TEST(FoldShards, OtherDimensionsOfOneBatchArePacked) {
  const TensorRecord golden = Recorded(Waves(24), {2, 3, 4});
  const auto folded = Folded(golden, {Recorded(Waves(24), {1, 6, 4})});
  EXPECT_EQ(folded.share, Share::kPacked);
  ExpectSame(folded.tensor, golden);
}

TEST(FoldShards, PaddingFitsInNoWay) {
  const auto folded = Folded(Recorded(Waves(24), {2, 3, 4}), {Recorded(Waves(20), {1, 5, 4})});
  EXPECT_EQ(folded.share, Share::kUnknown);
  EXPECT_FALSE(NumberOf(folded.tensor.norm));
}

TEST(FoldShards, OneWrongCopyIsTheOneThatCounts) {
  const TensorRecord golden = Recorded(Waves(24), {6, 4});
  const TensorRecord wrong = Recorded(Waves(24, 0.5), {6, 4});
  EXPECT_EQ(Folded(golden, {golden, golden}).share, Share::kWhole);
  for (const auto& parts : {std::vector{golden, wrong}, std::vector{wrong, golden}}) {
    const auto folded = Folded(golden, parts);
    EXPECT_EQ(folded.share, Share::kDivided);
    EXPECT_EQ(NumberOf(folded.tensor.norm), NumberOf(wrong.norm));
  }
  // Nobody has golden's: nothing is said.
  EXPECT_EQ(Folded(golden, {Recorded(Waves(24, 1), {6, 4}), wrong}).share, Share::kSummands);
  // A parameter is one tensor everywhere.
  const TensorRecord other = Recorded(Waves(24, 1), {6, 4});
  const std::vector<const TensorRecord*> pointers = {&other, &wrong};
  EXPECT_EQ(FoldShards(golden, pointers, TensorKind::kParameter).share, Share::kDivided);
}

TEST(FoldShards, SummandsAreNotCompared) {
  const auto first = Waves(24), second = Waves(24, 2);
  std::vector<double> sum, average;
  for (size_t i = 0; i < 24; ++i) {
    sum.push_back(first[i] + second[i]);
    average.push_back(sum.back() / 2);
  }
  const std::vector<TensorRecord> parts = {Recorded(first, {6, 4}), Recorded(second, {6, 4})};
  for (const auto& whole : {sum, average}) {
    const auto folded = Folded(Recorded(whole, {6, 4}), parts);
    EXPECT_EQ(folded.share, Share::kSummands);
    EXPECT_FALSE(NumberOf(folded.tensor.max));
  }
  // Of shards: nobody has a copy of another's.
  std::vector<double> twice = sum;
  twice.insert(twice.end(), average.begin(), average.end());
  const auto folded = Folded(Recorded(twice, {12, 4}), {parts[0], parts[1], parts[0], parts[1],
                                                        Recorded(Waves(24, 3), {6, 4}), parts[0]});
  EXPECT_EQ(folded.share, Share::kSummands);
}

TEST(FoldShards, AValueOfOneElementIsComparedByItsAverage) {
  const auto folded = Folded(Recorded({4.25}, {}), {Recorded({4.0}, {}), Recorded({4.5}, {})});
  EXPECT_EQ(folded.share, Share::kAverage);
  EXPECT_EQ(NumberOf(folded.tensor.mean), 4.25);
  EXPECT_EQ(Folded(Recorded({4.25}, {}), {Recorded({4.0}, {}), Recorded({5.0}, {})}).share,
            Share::kDivided);
}

TEST(FoldShards, ALostValueOfOneElementIsNoSummand) {
  EXPECT_EQ(Folded(Recorded({4.25}, {}), {Recorded({4.25}, {}), Recorded({0.0}, {})}).share,
            Share::kDivided);
}

TEST(FoldShards, AnotherTypeOfOneRankShows) {
  const TensorRecord golden = Recorded(Waves(24), {6, 4});
  TensorRecord other = golden;
  other.dtype_text = "torch.bfloat16";
  EXPECT_EQ(Folded(golden, {golden, other}).tensor.dtype_text, "torch.bfloat16");
}

TEST(FoldShards, NaNOfAnyShardStays) {
  TensorRecord golden = Recorded(Waves(8), {2, 4});
  TensorRecord first = Recorded(Waves(4), {1, 4}), second = first;
  second.max = second.min = second.mean = second.norm = std::nan("");
  const auto folded = Folded(golden, {first, second});
  EXPECT_EQ(folded.share, Share::kShards);
  EXPECT_TRUE(std::isnan(*NumberOf(folded.tensor.max)));
  EXPECT_TRUE(std::isnan(*NumberOf(folded.tensor.norm)));
}

}  // namespace
}  // namespace plumbline::view
