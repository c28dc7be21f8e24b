#include "record/value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace plumbline {
namespace {

std::vector<std::byte> Sample() {
  EntryPacker packer;
  const std::string_view parent = "Module.a.A.forward.0";
  packer.Begin("Functional.linear.0.forward", &parent, 7);
  packer.Key("input_args");
  packer.BeginList();
  const std::vector<int64_t> shape = {2, 3};
  PackedTensor tensor;
  tensor.type = "torch.Tensor";
  tensor.dtype_text = "torch.float32";
  tensor.shape = shape;
  tensor.max = INFINITY;
  tensor.min = int64_t{-3};
  tensor.mean = true;
  tensor.requires_grad = false;
  tensor.max_finite = Statistic(2.5);
  tensor.digest = "00000000";
  tensor.data_name = "x.pt";
  packer.Tensor(tensor);
  packer.Null();
  packer.BeginTyped("int");
  packer.Big("123456789012345678901234567890");
  packer.EndMap();
  packer.EndList();
  packer.Key("output");
  packer.BeginMap();
  packer.Key("f");
  packer.Float(-0.5);
  packer.Key("i");
  packer.Int(INT64_MIN);
  packer.Key("t");
  packer.Bool(true);
  packer.Key("s");
  packer.String("text");
  packer.EndMap();
  const auto bytes = packer.Finish();
  return {bytes.begin(), bytes.end()};
}

TEST(PackedValue, EntryComesBackWhole) {
  const UnpackedEntry entry = UnpackEntry(Sample()).value();
  EXPECT_EQ(entry.call.name, "Functional.linear.0.forward");
  EXPECT_EQ(entry.call.kind, CallKind::kForward);
  EXPECT_EQ(entry.stack_id, 7U);
  EXPECT_TRUE(entry.has_parent);
  EXPECT_EQ(entry.parent, "Module.a.A.forward.0");
  const auto* inputs = entry.call.Find("input_args")->As<ValueList>();
  ASSERT_EQ(inputs->size(), 3U);
  const auto* tensor = inputs->at(0).As<TensorRecord>();
  EXPECT_EQ(tensor->type, "torch.Tensor");
  EXPECT_EQ(tensor->dtype_text, "torch.float32");
  EXPECT_EQ(tensor->shape, (Shape{2, 3}));
  EXPECT_EQ(tensor->max, Statistic(INFINITY));
  EXPECT_EQ(tensor->min, Statistic(int64_t{-3}));
  EXPECT_EQ(tensor->mean, Statistic(true));
  EXPECT_EQ(tensor->norm, Statistic());
  EXPECT_EQ(tensor->requires_grad, false);
  EXPECT_EQ(tensor->max_finite, Statistic(2.5));
  EXPECT_FALSE(tensor->min_finite.has_value());
  EXPECT_EQ(tensor->digest, "00000000");
  EXPECT_EQ(tensor->data_name, "x.pt");
  EXPECT_TRUE(inputs->at(1).is_null());
  EXPECT_EQ(inputs->at(2).Find("value")->As<BigInt>()->digits, "123456789012345678901234567890");
  const Value* output = entry.call.Find("output");
  EXPECT_EQ(*output->Find("f")->As<double>(), -0.5);
  EXPECT_EQ(*output->Find("i")->As<int64_t>(), INT64_MIN);
  EXPECT_EQ(*output->Find("t")->As<bool>(), true);
  EXPECT_EQ(*output->Find("s")->As<std::string>(), "text");
  EXPECT_EQ(output->Find("missing"), nullptr);
}

TEST(PackedValue, UnknownParentDiffersFromRoot) {
  EntryPacker packer;
  packer.Begin("a.b.0.forward", nullptr, 0);
  EXPECT_FALSE(UnpackEntry(packer.Finish())->has_parent);
  const std::string_view root;
  packer.Begin("a.b.0.forward", &root, 0);
  const UnpackedEntry entry = UnpackEntry(packer.Finish()).value();
  EXPECT_TRUE(entry.has_parent);
  EXPECT_EQ(entry.parent, "");
}

TEST(PackedValue, TruncateDropsAHalfWalkedValue) {
  EntryPacker packer;
  packer.Begin("a.b.0.forward", nullptr, 0);
  packer.Key("x");
  const size_t size = packer.size();
  packer.BeginList();
  packer.Int(3);
  packer.Truncate(size);
  packer.Null();
  EXPECT_TRUE(UnpackEntry(packer.Finish())->call.Find("x")->is_null());
}

TEST(PackedValue, EveryTruncationIsCorrupt) {
  const std::vector<std::byte> whole = Sample();
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::byte> cut(whole.begin(),
                                     whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(UnpackEntry(cut).error().code(), ErrorCode::kCorrupt) << size;
  }
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_EQ(UnpackEntry(longer).error().code(), ErrorCode::kCorrupt);
}

// The journal's checksum notices flips; unpacking must only never misbehave.
TEST(PackedValue, EveryFlippedByteIsCorruptOrReadSafely) {
  std::vector<std::byte> bytes = Sample();
  size_t refused = 0;
  for (std::byte& at : bytes) {
    for (int mask = 1; mask < 256; mask = mask * 2 + 1) {
      const std::byte saved = at;
      at ^= static_cast<std::byte>(mask);
      const auto entry = UnpackEntry(bytes);
      if (!entry) {
        EXPECT_EQ(entry.error().code(), ErrorCode::kCorrupt);
        ++refused;
      }
      at = saved;
    }
  }
  EXPECT_GT(refused, bytes.size());
}

TEST(PackedValue, EndlessNestingIsCorrupt) {
  EntryPacker packer;
  packer.Begin("a", nullptr, 0);
  packer.Key("x");
  for (int i = 0; i < 100000; ++i) packer.BeginList();
  EXPECT_EQ(UnpackEntry(packer.Finish()).error().code(), ErrorCode::kCorrupt);
}

TEST(PackedValue, KindIsFoundInTheLastSegments) {
  EXPECT_EQ(KindOfCall("Torch.add.0.backward"), CallKind::kBackward);
  EXPECT_EQ(KindOfCall("Module.a.A.forward.0"), CallKind::kForward);
  EXPECT_EQ(KindOfCall("Module.a.A.parameters_grad"), CallKind::kParametersGrad);
  EXPECT_EQ(KindOfCall("Module.a.A.parameters_grad.3"), CallKind::kParametersGrad);
  EXPECT_EQ(KindOfCall("x.0.debug"), CallKind::kOther);
  EXPECT_EQ(KindOfCall(""), CallKind::kOther);
}

TensorStats StatsOf(const Statistic& max, const Statistic& min, const Statistic& mean,
                    const Statistic& norm) {
  TensorStats stats;
  stats.max = max;
  stats.min = min;
  stats.mean = mean;
  stats.norm = norm;
  return stats;
}

// A tensor, and one that is a map, whose values come later under 5 and 6.
std::vector<std::byte> LateSample() {
  EntryPacker packer;
  packer.Begin("Torch.add.0.forward", nullptr, 0);
  packer.Key("output");
  packer.BeginList();
  const std::vector<int64_t> shape = {2};
  PackedTensor tensor;
  tensor.type = "torch.Tensor";
  tensor.dtype_text = "torch.float32";
  tensor.shape = shape;
  tensor.requires_grad = true;
  tensor.data_name = "x.pt";
  tensor.late = 5;
  packer.Tensor(tensor);
  packer.BeginMap();
  packer.Key("type");
  packer.String("DTensor");
  packer.LateMembers(6);
  packer.Key("requires_grad");
  packer.Bool(false);
  packer.EndMap();
  packer.EndList();
  const auto bytes = packer.Finish();
  return {bytes.begin(), bytes.end()};
}

TEST(PackedValue, ValuesComeAfterTheEntry) {
  EntryPacker later;
  LateValues first{StatsOf(2.0, -INFINITY, 1.0, 3.0), "0123abcd"};
  first.stats.min_finite = Statistic(-4.0);
  later.Late(5, first);
  later.Late(6, {StatsOf(int64_t{7}, true, {}, 3.0), {}});
  LateTable table;
  ASSERT_TRUE(UnpackLate(later.bytes(), &table));
  const UnpackedEntry entry = UnpackEntry(LateSample(), &table).value();
  EXPECT_EQ(entry.late_missing, 0U);
  const auto* output = entry.call.Find("output")->As<ValueList>();
  const auto* tensor = output->at(0).As<TensorRecord>();
  EXPECT_EQ(tensor->max, Statistic(2.0));
  EXPECT_EQ(tensor->min, Statistic(-INFINITY));
  EXPECT_EQ(tensor->norm, Statistic(3.0));
  EXPECT_EQ(tensor->max_finite, std::nullopt);
  EXPECT_EQ(tensor->min_finite, std::optional(Statistic(-4.0)));
  EXPECT_EQ(tensor->requires_grad, true);
  EXPECT_EQ(tensor->digest, "0123abcd");
  EXPECT_EQ(tensor->data_name, "x.pt");
  const Value& map = output->at(1);
  EXPECT_EQ(*map.Find("Max")->As<int64_t>(), 7);
  EXPECT_EQ(*map.Find("Min")->As<bool>(), true);
  EXPECT_TRUE(map.Find("Mean")->is_null());
  EXPECT_EQ(*map.Find("requires_grad")->As<bool>(), false);
  EXPECT_EQ(map.Find("md5"), nullptr);
}

TEST(PackedValue, ValuesThatDidNotComeAreAbsentAndCounted) {
  const UnpackedEntry entry = UnpackEntry(LateSample()).value();
  EXPECT_EQ(entry.late_missing, 2U);
  const auto* output = entry.call.Find("output")->As<ValueList>();
  EXPECT_EQ(output->at(0).As<TensorRecord>()->max, Statistic());
  EXPECT_TRUE(output->at(1).Find("Norm")->is_null());
}

TEST(PackedValue, CutLateValuesAreCorrupt) {
  EntryPacker later;
  later.Late(5, {StatsOf(2.0, 1.0, 1.0, 3.0), "0123abcd"});
  const auto bytes = later.bytes();
  for (size_t size = 1; size < bytes.size(); ++size) {
    LateTable table;
    EXPECT_FALSE(UnpackLate(bytes.first(size), &table)) << size;
  }
}

}  // namespace
}  // namespace plumbline
