#include "operators/operator_tensors.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace plumbline::operators {
namespace {

constexpr int32_t kUInt8 = 4, kString = 13;

acl::DumpedTensor Tensor(DeviceFormat format, acl::Dims device, acl::Dims original,
                         const std::vector<std::byte>& bytes, int32_t data_type = kUInt8) {
  acl::DumpedTensor tensor;
  tensor.data_type = data_type;
  tensor.format = format;
  tensor.shape = std::move(device);
  tensor.original_shape = std::move(original);
  tensor.size = bytes.size();
  tensor.data = bytes;
  return tensor;
}

std::vector<std::byte> Numbered(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i % 251);
  return bytes;
}

std::vector<std::byte> BytesOf(const Result<acl::Elements>& elements) {
  if (!elements) return {};
  return {elements->bytes.begin(), elements->bytes.end()};
}

// With the layouts that are kept as without, for tensors that differ in one fact each.
TEST(OwnLayouts, KeptOnesAreThoseOfTheTensor) {
  const std::vector<std::byte> bytes = Numbered(2048), cut = Numbered(100);
  const std::vector<acl::DumpedTensor> tensors = {
      Tensor(DeviceFormat::kNC1HWC0, {1, 2, 4, 4, 16}, {1, 20, 4, 4}, bytes),
      Tensor(DeviceFormat::kNC1HWC0, {1, 2, 4, 4, 16}, {1, 30, 4, 4}, bytes),
      Tensor(DeviceFormat::kNC1HWC0, {1, 2, 4, 4, 16}, {1, 4, 4, 20}, bytes),  // NHWC
      Tensor(DeviceFormat::kNC1HWC0, {1, 2, 4, 4, 16}, {7}, bytes),            // no order fits
      Tensor(DeviceFormat::kFractalNZ, {2, 4, 16, 16}, {60, 20}, bytes),
      Tensor(DeviceFormat::kFractalNZ, {2, 4, 16, 16}, {99, 20}, bytes),
      Tensor(DeviceFormat::kND, {2, 4, 16, 16}, {60, 20}, bytes),
      Tensor(DeviceFormat::kNC1HWC0, {1, 2, 4, 4, 16}, {1, 20, 4, 4}, cut),
      Tensor(DeviceFormat::kNC1HWC0, {1, 2, 4, 4, 16}, {1, 20, 4, 4}, bytes, kString)};
  OwnLayouts layouts;
  for (int round = 0; round < 2; ++round) {
    for (const acl::DumpedTensor& tensor : tensors) {
      const auto known = layouts.Of(tensor);
      const std::optional<PlainLayout> own = OwnLayout(tensor);
      ASSERT_EQ(known->layout.has_value(), own.has_value());
      if (own) {
        EXPECT_EQ(known->layout->format, own->format);
        EXPECT_EQ(known->layout->sizes, own->sizes);
      }
      const auto expected = PlainElements(tensor, own), got = PlainElements(tensor, *known);
      ASSERT_EQ(got.has_value(), expected.has_value());
      EXPECT_EQ(BytesOf(got), BytesOf(expected));
      if (got) {
        EXPECT_EQ(got->sizes, expected->sizes);
      } else {
        EXPECT_EQ(got.error().message(), expected.error().message());
      }
    }
  }
  EXPECT_EQ(layouts.Of(tensors[0]), layouts.Of(tensors[7]));  // planned once
  EXPECT_EQ(PlainElements(tensors[0], *layouts.Of(tensors[0]))->sizes, (Shape{1, 20, 4, 4}));
}

}  // namespace
}  // namespace plumbline::operators
