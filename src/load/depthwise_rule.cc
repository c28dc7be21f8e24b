#include "load/depthwise_rule.h"

#include <algorithm>
#include <string_view>

#include "formats/hdf5/hdf5_handle.h"

namespace plumbline::load {
namespace {

using hdf5::Argument;

constexpr std::string_view kOwnKernel = "ThnnConvDepthwise2DBackward";
constexpr size_t kImageAxes = 4;

const hdf5::ValueData* Find(std::span<const Argument> arguments,
                            std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const auto found = std::ranges::find(arguments, name, &Argument::name);
    if (found != arguments.end()) return &found->data;
  }
  return nullptr;
}

const hdf5::TensorValue* FindImage(std::span<const Argument> arguments,
                                   std::initializer_list<std::string_view> names) {
  const hdf5::ValueData* data = Find(arguments, names);
  const auto* tensor = data == nullptr ? nullptr : std::get_if<hdf5::TensorValue>(data);
  return tensor != nullptr && tensor->view.sizes.size() == kImageAxes ? tensor : nullptr;
}

// A list of two numbers; one number stands for both.
std::vector<int64_t> Pair(const hdf5::ValueData* data) {
  const auto* list = data == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(data);
  if (list == nullptr || list->empty() || list->size() > 2) return {};
  return {list->front(), list->back()};
}

// A convolution from which on cuDNN is faster.
struct Least {
  int64_t stride, batch, channels, width;
};
constexpr Least kWorthIt[] = {
    {1, 1, 32, 112},  {1, 1, 1024, 56},  {1, 32, 1024, 7},  {1, 128, 512, 7},  {1, 128, 64, 14},
    {1, 128, 32, 28}, {1, 64, 256, 14},  {1, 64, 32, 28},   {1, 32, 256, 14},  {1, 32, 128, 28},
    {1, 32, 32, 56},  {1, 16, 1024, 14}, {1, 16, 256, 28},  {1, 16, 32, 56},   {1, 8, 512, 28},
    {1, 8, 64, 56},   {2, 128, 1024, 7}, {2, 128, 512, 14}, {2, 128, 256, 28}, {2, 64, 512, 14},
    {2, 64, 256, 28}, {2, 32, 1024, 14}, {2, 32, 256, 28},  {2, 16, 512, 28},  {2, 16, 256, 56},
    {2, 8, 1024, 28}, {2, 8, 256, 56},   {2, 1, 512, 112},
};

}  // namespace

std::optional<DepthwiseConvolution> ReadDepthwise(std::span<const Argument> arguments) {
  const hdf5::TensorValue* input = FindImage(arguments, {"input", "self"});
  const hdf5::TensorValue* weight = FindImage(arguments, {"weight"});
  const hdf5::ValueData* data = Find(arguments, {"groups"});
  const auto* groups = data == nullptr ? nullptr : std::get_if<int64_t>(data);
  if (input == nullptr || weight == nullptr || groups == nullptr) return std::nullopt;
  const auto in = input->view.sizes, filters = weight->view.sizes;
  if (*groups <= 1 || in[1] != *groups || filters[0] % in[1] != 0) return std::nullopt;
  DepthwiseConvolution convolution{in[0], in[1], in[2], in[3], filters[2], filters[3], {}, {}};
  convolution.stride = Pair(Find(arguments, {"stride"}));
  convolution.dilation = Pair(Find(arguments, {"dilation"}));
  convolution.is_half =
      input->view.dtype == DType::kFloat16 && weight->view.dtype == DType::kFloat16;
  return convolution;
}

bool RunsByCudnn(const DepthwiseConvolution& one) {
  constexpr int64_t kLeastSize = 7, kLeastChannels = 32;
  const bool has_kernel = one.is_half && one.kernel_height == one.kernel_width &&
                          (one.kernel_width == 1 || one.kernel_width == 3) &&
                          one.height >= kLeastSize && one.channels >= kLeastChannels &&
                          one.dilation == std::vector<int64_t>{1, 1} && one.stride.size() == 2 &&
                          one.stride[0] == one.stride[1];
  return has_kernel && std::ranges::any_of(kWorthIt, [&](const Least& least) {
           return one.stride[0] == least.stride && one.batch >= least.batch &&
                  one.channels >= least.channels && one.width >= least.width;
         });
}

std::vector<std::string> CounterpartsOf(const std::string& operation,
                                        std::span<const Argument> arguments) {
  const auto& known = hdf5::OtherNames(hdf5::OperatorNames(), operation);
  std::vector<std::string> names(known.begin(), known.end());
  const auto own = std::ranges::find(names, kOwnKernel);
  if (own == names.end()) return names;
  const std::optional<DepthwiseConvolution> convolution = ReadDepthwise(arguments);
  if (convolution && !RunsByCudnn(*convolution)) std::rotate(names.begin(), own, own + 1);
  return names;
}

}  // namespace plumbline::load
