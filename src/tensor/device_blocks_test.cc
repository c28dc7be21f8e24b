#include "tensor/device_blocks.h"

#include <gtest/gtest.h>

namespace plumbline {
namespace {

TEST(PlainOrder, SizesMoveWithTheirAxes) {
  EXPECT_EQ(SizesIn(DeviceFormat::kNCHW, {2, 3, 4, 5}, DeviceFormat::kNHWC), Shape({2, 4, 5, 3}));
  EXPECT_EQ(SizesIn(DeviceFormat::kHWCN, {4, 5, 3, 2}, DeviceFormat::kNCDHW),
            Shape({2, 3, 1, 4, 5}));
  EXPECT_EQ(SizesIn(DeviceFormat::kNCDHW, {2, 3, 1, 4, 5}, DeviceFormat::kNCHW),
            Shape({2, 3, 4, 5}));
}

TEST(PlainOrder, NoAxisIsDropped) {
  EXPECT_FALSE(SizesIn(DeviceFormat::kNCDHW, {2, 3, 2, 4, 5}, DeviceFormat::kNCHW));
  EXPECT_FALSE(SizesIn(DeviceFormat::kNCHW, {2, 3, 4}, DeviceFormat::kNHWC));
  EXPECT_FALSE(SizesIn(DeviceFormat::kNCHW, {2, 3, 4, 5}, DeviceFormat::kND));
}

TEST(PlainOrder, OnlyPaddingLiesBetween) {
  const TensorLayout blocked{DeviceFormat::kNC1HWC0, {1, 1, 8, 8, 16}};
  EXPECT_TRUE(IsExactly(blocked, DeviceFormat::kNCHW, {1, 3, 8, 8}, 1));
  EXPECT_TRUE(IsExactly(blocked, DeviceFormat::kNHWC, {1, 8, 8, 3}, 1));
  EXPECT_FALSE(IsExactly(blocked, DeviceFormat::kNHWC, {1, 3, 8, 8}, 1));
  EXPECT_FALSE(IsExactly(blocked, DeviceFormat::kNCHW, {1, 17, 8, 8}, 1));
  EXPECT_FALSE(IsExactly(blocked, DeviceFormat::kNCHW, {}, 1));
}

TEST(PlainOrder, AxesThatTheTensorLacksAreOne) {
  const TensorLayout blocked{DeviceFormat::kNC1HWC0, {2, 1, 4, 5, 16}};
  EXPECT_TRUE(IsExactly(blocked, DeviceFormat::kNCDHW, {2, 3, 1, 4, 5}, 1));
  EXPECT_FALSE(IsExactly(blocked, DeviceFormat::kNCDHW, {2, 3, 7, 4, 5}, 1));
}

TEST(PlainOrder, PlainTensorsHaveNoPadding) {
  const TensorLayout plain{DeviceFormat::kNHWC, {1, 8, 8, 3}};
  EXPECT_TRUE(IsExactly(plain, DeviceFormat::kNHWC, {1, 8, 8, 3}, 1));
  EXPECT_TRUE(IsExactly(plain, DeviceFormat::kNCHW, {1, 3, 8, 8}, 1));
  EXPECT_FALSE(IsExactly(plain, DeviceFormat::kNCHW, {1, 2, 8, 8}, 1));
}

TEST(PlainOrder, MatricesHaveNoNamedAxes) {
  EXPECT_FALSE(IsExactly({DeviceFormat::kFractalNZ, {1, 1, 16, 16}}, DeviceFormat::kNC, {5, 7}, 1));
  EXPECT_FALSE(IsExactly({DeviceFormat::kND, {5, 7}}, DeviceFormat::kNC, {5, 7}, 1));
}

}  // namespace
}  // namespace plumbline
