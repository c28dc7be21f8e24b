#include "tensor/dlpack.h"

#include <gtest/gtest.h>

namespace plumbline::dlpack {
namespace {

TEST(Dlpack, EveryTypeHasADescriptionOfItsOwn) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const DataType type = DataTypeOf(dtype);
    EXPECT_EQ(TypeOf(type), dtype) << InfoOf(dtype).name;
    EXPECT_EQ(type.bits, 8 * InfoOf(dtype).size_bytes) << InfoOf(dtype).name;
  }
}

TEST(Dlpack, UnknownTypesHaveNoView) {
  EXPECT_EQ(TypeOf({2, 128, 1}), std::nullopt);  // long double
  EXPECT_EQ(TypeOf({2, 32, 4}), std::nullopt);   // vectors of four
  EXPECT_EQ(TypeOf({17, 4, 1}), std::nullopt);   // float4
  EXPECT_EQ(TypeOf({0, 4, 1}), std::nullopt);
}

TEST(Dlpack, MissingStridesAreRowMajorAndTheOffsetIsInBytes) {
  float values[7] = {};
  int64_t shape[] = {2, 3};
  const Tensor in{values, {kCpu, 0}, 2, {2, 32, 1}, shape, nullptr, 4};
  Strides own;
  const std::optional<TensorView> view = ViewOf(in, own);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->data, reinterpret_cast<const std::byte*>(values + 1));
  EXPECT_EQ(view->strides[0], 3);
  EXPECT_EQ(view->strides[1], 1);
  EXPECT_TRUE(view->is_contiguous());
}

TEST(Dlpack, TooManyDimensionsHaveNoView) {
  Tensor in{nullptr, {kCpu, 0}, kMaxRank + 1, {2, 32, 1}, nullptr, nullptr, 0};
  Strides own;
  EXPECT_EQ(ViewOf(in, own), std::nullopt);
  in.ndim = -1;
  EXPECT_EQ(ViewOf(in, own), std::nullopt);
}

TEST(Dlpack, OnlyMemoryOfTheHostIsReadable) {
  Tensor tensor{};
  const auto on = [&](int32_t type) {
    tensor.device.type = type;
    return IsOnHost(tensor);
  };
  EXPECT_TRUE(on(kCpu));
  EXPECT_TRUE(on(kCudaHost));
  EXPECT_FALSE(on(2));
}

}  // namespace
}  // namespace plumbline::dlpack
