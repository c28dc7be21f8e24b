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

}  // namespace
}  // namespace plumbline
