// Sums of products computed again with an accumulator that is wrong in one way.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <functional>
#include <unordered_set>

#include "test_device.h"

namespace plumbline_test_device {
namespace {

using torch::jit::Stack;

// A sum over `count` terms; `partial(first, count)` is the exact sum of a part of them.
struct Sum {
  int64_t count = 0;
  std::function<at::Tensor(int64_t first, int64_t count)> partial;
  std::function<at::Tensor(const at::Tensor& total)> finish;  // scale, bias, shape
};

at::Tensor Total(Accumulator accumulator, const Sum& sum) {
  if (accumulator == Accumulator::kForgetsCarry) {
    return sum.partial(sum.count / 2, sum.count - sum.count / 2);
  }
  at::Tensor total = sum.partial(0, 1).to(at::kBFloat16);
  for (int64_t term = 1; term < sum.count; ++term) {
    total = (total.to(at::kDouble) + sum.partial(term, 1)).to(at::kBFloat16);
  }
  return total.to(at::kDouble);
}

// Terms are exact in double for every dtype up to float32, so only the accumulator rounds.
at::Tensor Wide(const c10::IValue& value) { return value.toTensor().to(at::kDouble); }

Sum ProductSum(const at::Tensor& left, const at::Tensor& right) {
  Sum sum;
  sum.count = left.size(-1);
  sum.partial = [left, right](int64_t first, int64_t count) {
    return at::matmul(left.narrow(-1, first, count), right.narrow(-2, first, count));
  };
  sum.finish = [](const at::Tensor& total) { return total; };
  return sum;
}

Sum MatrixProduct(const std::string& name, const Stack& arguments) {
  const bool adds = name == "addmm" || name == "baddbmm" || name == "addmv";
  const size_t first = adds ? 1 : 0;
  at::Tensor left = Wide(arguments[first]);
  at::Tensor right = Wide(arguments[first + 1]);
  if (name == "dot") left = left.unsqueeze(0);
  if (right.dim() == 1) right = right.unsqueeze(1);
  Sum sum = ProductSum(left, right);
  if (!adds) return sum;
  at::Tensor added = Wide(arguments[0]);
  if (name == "addmv" && added.dim() == 1) added = added.unsqueeze(1);
  const at::Scalar beta = arguments[3].toScalar();
  const at::Scalar alpha = arguments[4].toScalar();
  sum.finish = [added, beta, alpha](const at::Tensor& total) {
    return added * beta + total * alpha;
  };
  return sum;
}

// Summed over input channels. Groups and transposed convolutions are left to the caller's other
// way of spoiling results.
Sum Convolution(const Stack& arguments) {
  Sum sum;
  if (arguments[6].toBool() || arguments[8].toInt() != 1) return sum;
  const at::Tensor input = Wide(arguments[0]);
  const at::Tensor weight = Wide(arguments[1]);
  const at::Tensor bias = arguments[2].isTensor() ? arguments[2].toTensor() : at::Tensor();
  const std::vector<int64_t> stride = arguments[3].toIntVector();
  const std::vector<int64_t> padding = arguments[4].toIntVector();
  const std::vector<int64_t> dilation = arguments[5].toIntVector();
  const std::vector<int64_t> output_padding = arguments[7].toIntVector();
  sum.count = weight.size(1);
  sum.partial = [=](int64_t first, int64_t count) {
    return at::convolution(input.narrow(1, first, count), weight.narrow(1, first, count), {},
                           stride, padding, dilation, false, output_padding, 1);
  };
  sum.finish = [bias](const at::Tensor& total) {
    if (!bias.defined()) return total;
    std::vector<int64_t> shape(static_cast<size_t>(total.dim()), 1);
    shape[1] = -1;
    return total + bias.to(at::kDouble).view(shape);
  };
  return sum;
}

Sum Reduction(const std::string& name, const Stack& arguments) {
  const at::Tensor input = Wide(arguments[0]);
  std::vector<int64_t> dims;
  if (arguments.size() > 1 && arguments[1].isIntList()) dims = arguments[1].toIntVector();
  std::vector<int64_t> order, kept_shape;
  std::unordered_set<int64_t> reduced;
  for (const int64_t dim : dims) reduced.insert(dim < 0 ? dim + input.dim() : dim);
  for (int64_t dim = 0; dim < input.dim(); ++dim) {
    if (dims.empty() || reduced.count(dim) > 0) continue;
    order.push_back(dim);
    kept_shape.push_back(input.size(dim));
  }
  for (int64_t dim = 0; dim < input.dim(); ++dim) {
    if (dims.empty() || reduced.count(dim) > 0) order.push_back(dim);
  }
  kept_shape.push_back(-1);
  Sum sum;
  if (input.numel() == 0) return sum;
  const at::Tensor rows = input.permute(order).reshape(kept_shape);
  sum.count = rows.size(-1);
  sum.partial = [rows](int64_t first, int64_t count) {
    return rows.narrow(-1, first, count).sum(-1);
  };
  const double divisor = name == "mean" ? static_cast<double>(sum.count) : 1.0;
  sum.finish = [divisor](const at::Tensor& total) { return total / divisor; };
  return sum;
}

}  // namespace

at::Tensor FaultySum(Accumulator accumulator, const std::string& base_name, const Stack& arguments,
                     const at::Tensor& result) {
  static const std::unordered_set<std::string> products = {"mm", "addmm", "bmm", "baddbmm",
                                                           "mv", "addmv", "dot"};
  if (!result.is_floating_point()) return {};
  Sum sum;
  if (products.count(base_name) > 0) {
    sum = MatrixProduct(base_name, arguments);
  } else if (base_name == "convolution") {
    sum = Convolution(arguments);
  } else if (base_name == "sum" || base_name == "mean") {
    sum = Reduction(base_name, arguments);
  }
  if (sum.count < 2) return {};
  return sum.finish(Total(accumulator, sum)).to(result.scalar_type()).reshape(result.sizes());
}

}  // namespace plumbline_test_device
