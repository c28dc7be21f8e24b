#include "measure/kernel_names.h"

#include <algorithm>
#include <array>

namespace plumbline::measure {
namespace {

struct Kernel {
  std::string_view name, api;
};

// Sorted by name. Kernels of gradients stand under the function that rounds as they do.
constexpr std::array kKernels = {
    Kernel{"Abs", "abs"},
    Kernel{"Add", "add"},
    Kernel{"AddN", "sum"},
    Kernel{"Assign", "to"},
    Kernel{"AssignAdd", "add"},
    Kernel{"AssignSub", "sub"},
    Kernel{"AvgPool", "avg_pool2d"},
    Kernel{"BatchMatMul", "bmm"},
    Kernel{"BatchNorm", "batch_norm"},
    Kernel{"BiasAdd", "add"},
    Kernel{"BiasAddGrad", "sum"},
    Kernel{"BroadcastTo", "broadcast_to"},
    Kernel{"Cast", "to"},
    Kernel{"Concat", "cat"},
    Kernel{"Conv2D", "conv2d"},
    Kernel{"Conv2DBackpropFilter", "conv2d"},
    Kernel{"Conv2DBackpropInput", "conv2d"},
    Kernel{"Conv3D", "conv3d"},
    Kernel{"Cos", "cos"},
    Kernel{"Div", "div"},
    Kernel{"Erf", "erf"},
    Kernel{"Exp", "exp"},
    Kernel{"Flatten", "flatten"},
    Kernel{"Gather", "gather"},
    Kernel{"GeLU", "gelu"},
    Kernel{"LayerNorm", "layer_norm"},
    Kernel{"Log", "log"},
    Kernel{"LogSoftmax", "log_softmax"},
    Kernel{"MatMul", "matmul"},
    Kernel{"MaxPool", "max_pool2d"},
    Kernel{"Maximum", "maximum"},
    Kernel{"Minimum", "minimum"},
    Kernel{"Mul", "mul"},
    Kernel{"Neg", "neg"},
    Kernel{"Pow", "pow"},
    Kernel{"ReLU", "relu"},
    Kernel{"RealDiv", "div"},
    Kernel{"Reciprocal", "reciprocal"},
    Kernel{"ReduceMax", "amax"},
    Kernel{"ReduceMean", "mean"},
    Kernel{"ReduceMin", "amin"},
    Kernel{"ReduceSum", "sum"},
    Kernel{"ReluGrad", "where"},
    Kernel{"Reshape", "reshape"},
    Kernel{"Rsqrt", "rsqrt"},
    Kernel{"Select", "where"},
    Kernel{"Sigmoid", "sigmoid"},
    Kernel{"Sin", "sin"},
    Kernel{"Softmax", "softmax"},
    Kernel{"Split", "split"},
    Kernel{"Sqrt", "sqrt"},
    Kernel{"Square", "square"},
    Kernel{"StridedSlice", "narrow"},
    Kernel{"Sub", "sub"},
    Kernel{"Tanh", "tanh"},
    Kernel{"Tile", "repeat"},
    Kernel{"Transpose", "transpose"},
};
static_assert(std::ranges::is_sorted(kKernels, {}, &Kernel::name));

}  // namespace

std::string_view ApiOfKernel(std::string_view kernel) {
  const bool is_kernel = !kernel.empty() && kernel.front() >= 'A' && kernel.front() <= 'Z';
  if (!is_kernel) return kernel;  // functions of the frameworks begin with a small letter
  const auto* found = std::ranges::lower_bound(kKernels, kernel, {}, &Kernel::name);
  return found != kKernels.end() && found->name == kernel ? found->api : kernel;
}

}  // namespace plumbline::measure
