#include "load/depthwise_rule.h"

#include <gtest/gtest.h>

#include <deque>

namespace plumbline::load {
namespace {

using hdf5::Argument;
using hdf5::TensorValue;
using hdf5::ValueKind;

constexpr const char* kCudnn = "CudnnConvolutionBackward";
constexpr const char* kOwn = "ThnnConvDepthwise2DBackward";

// A tensor without data: only its facts are looked at.
TensorValue Sized(const Shape& sizes, DType dtype = DType::kFloat16) {
  static std::deque<Shape> shapes;
  static const std::vector<int64_t> kStrides(5, 1);
  const Shape& kept = shapes.emplace_back(sizes);
  return {{dtype, nullptr, kept, std::span(kStrides).first(kept.size())}};
}

struct RuleCall {
  Shape input = {32, 256, 14, 14}, weight = {256, 1, 3, 3};
  int64_t groups = 256;
  std::vector<int64_t> stride = {1, 1}, dilation = {1, 1};
  DType dtype = DType::kFloat16;
};

std::vector<Argument> ArgumentsOf(const RuleCall& call) {
  return {{"input", ValueKind::kTensor, Sized(call.input, call.dtype)},
          {"weight", ValueKind::kTensor, Sized(call.weight, call.dtype)},
          {"stride", ValueKind::kIntegers, call.stride},
          {"dilation", ValueKind::kIntegers, call.dilation},
          {"groups", ValueKind::kInteger, call.groups}};
}

std::string First(const RuleCall& call) {
  const auto names = CounterpartsOf("NpuConvolutionBackward", ArgumentsOf(call));
  EXPECT_EQ(names.size(), 2U);
  return names.front();
}

// Whether cuDNN runs a convolution of these sizes with a square image and a kernel of 3.
bool ByCudnn(int64_t stride, int64_t batch, int64_t channels, int64_t width) {
  return RunsByCudnn({batch, channels, width, width, 3, 3, {stride, stride}, {1, 1}, true});
}

TEST(DepthwiseRule, ConvolutionsThatAreNotDepthwiseAreCudnns) {
  EXPECT_EQ(First({{8, 64, 9, 9}, {64, 64, 3, 3}, 1}), kCudnn);
  EXPECT_EQ(First({{8, 64, 9, 9}, {64, 2, 3, 3}, 32}), kCudnn);
  EXPECT_EQ(First({{8, 64, 9, 9}, {96, 1, 3, 3}, 64}), kCudnn);
  EXPECT_EQ(First({{8, 1, 9, 9}, {4, 1, 3, 3}, 1}), kCudnn);
  EXPECT_EQ(First({{8, 64, 9, 9, 9}, {64, 1, 3, 3, 3}, 64}), kCudnn);
}

TEST(DepthwiseRule, DepthwiseOnesAreOfTheOwnKernelUnlessCudnnIsFaster) {
  EXPECT_EQ(First({}), kCudnn);
  EXPECT_EQ(First({.weight = {512, 1, 3, 3}}), kCudnn);
  EXPECT_EQ(First({.dtype = DType::kFloat32}), kOwn);
  EXPECT_EQ(First({.weight = {256, 1, 5, 5}}), kOwn);
  EXPECT_EQ(First({.weight = {256, 1, 3, 1}}), kOwn);
  EXPECT_EQ(First({.weight = {256, 1, 1, 1}}), kCudnn);
  EXPECT_EQ(First({.dilation = {2, 2}}), kOwn);
  EXPECT_EQ(First({.stride = {1, 2}}), kOwn);
  EXPECT_EQ(First({.stride = {3, 3}}), kOwn);
  EXPECT_EQ(First({.stride = {1}}), kCudnn);
  EXPECT_EQ(First({.input = {32, 256, 6, 14}}), kOwn);
  EXPECT_EQ(First({.input = {31, 256, 14, 14}}), kOwn);
}

TEST(DepthwiseRule, BoundsOfTheSizes) {
  const int64_t bounds[][4] = {
      {1, 1, 32, 112},  {1, 1, 1024, 56},  {1, 32, 1024, 7}, {1, 128, 512, 7},  {1, 128, 64, 14},
      {1, 64, 32, 28},  {1, 32, 256, 14},  {1, 32, 128, 28}, {1, 16, 32, 56},   {1, 16, 1024, 14},
      {1, 16, 256, 28}, {1, 8, 512, 28},   {1, 8, 64, 56},   {2, 128, 1024, 7}, {2, 64, 512, 14},
      {2, 32, 256, 28}, {2, 32, 1024, 14}, {2, 16, 512, 28}, {2, 8, 256, 56},   {2, 8, 1024, 28},
      {2, 1, 512, 112}};
  for (const auto& [stride, batch, channels, width] : bounds) {
    SCOPED_TRACE(std::to_string(stride) + " " + std::to_string(batch) + " " +
                 std::to_string(channels) + " " + std::to_string(width));
    EXPECT_TRUE(ByCudnn(stride, batch, channels, width));
    EXPECT_FALSE(ByCudnn(stride, batch, channels, width - 1));
    if (batch > 1) {
      EXPECT_FALSE(ByCudnn(stride, batch - 1, channels, width));
    }
    EXPECT_FALSE(ByCudnn(stride, batch, channels - 1, width));
  }
}

TEST(DepthwiseRule, WithoutTheFactsTheOrderIsThatOfTheTable) {
  for (size_t left_out = 0; left_out < 5; ++left_out) {
    std::vector<Argument> arguments = ArgumentsOf({.dtype = DType::kFloat32});
    arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(left_out));
    const bool is_depthwise = left_out == 2 || left_out == 3;  // stride, dilation
    EXPECT_EQ(CounterpartsOf("NpuConvolutionBackward", arguments).front(),
              is_depthwise ? kOwn : kCudnn);
  }
  EXPECT_EQ(CounterpartsOf("relu", {}), std::vector<std::string>{});
  EXPECT_EQ(CounterpartsOf("NativeBatchNormBackward", {}),
            std::vector<std::string>{"CudnnBatchNormBackward"});
}

}  // namespace
}  // namespace plumbline::load
