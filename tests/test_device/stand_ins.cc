// What accelerators have and the CPU has not. The fused cells of LSTM and GRU, which PyTorch calls
// on every accelerator (formulas: documentation of torch.nn.LSTMCell and torch.nn.GRUCell, and
// their derivatives); histograms of integers, which models ask for unless they run on a CPU.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <unordered_map>

#include "test_device.h"

namespace plumbline_test_device {
namespace {

using torch::jit::Stack;

// Half types are computed in float32 and rounded once at the end, as real fused kernels do.
at::Tensor Widened(const c10::IValue& value) {
  const at::Tensor tensor = value.isTensor() ? value.toTensor() : at::Tensor();
  return tensor.defined() && c10::isReducedFloatingType(tensor.scalar_type())
             ? tensor.to(at::kFloat)
             : tensor;
}

at::Tensor WithBias(const c10::IValue& gates, const c10::IValue& bias) {
  const at::Tensor tensor = Widened(bias);
  return tensor.defined() ? Widened(gates) + tensor : Widened(gates);
}

// Replaces the `count` arguments on the stack by `results`, in `dtype`.
void Return(Stack& stack, size_t count, at::ScalarType dtype, std::vector<at::Tensor> results) {
  torch::jit::drop(stack, count);
  for (const at::Tensor& result : results) {
    stack.emplace_back(result.defined() ? result.to(dtype) : result);
  }
}

// (input_gates, hidden_gates, cx, input_bias?, hidden_bias?) -> (hy, cy, workspace); the workspace
// is the four gates after their activations.
void LstmCell(Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 5);
  const at::ScalarType dtype = arguments[0].toTensor().scalar_type();
  const at::Tensor gates = WithBias(arguments[0], arguments[3]) +
                           WithBias(arguments[1], arguments[4]);
  const at::Tensor cx = Widened(arguments[2]);
  const std::vector<at::Tensor> parts = gates.chunk(4, 1);
  const at::Tensor in = parts[0].sigmoid();
  const at::Tensor forget = parts[1].sigmoid();
  const at::Tensor cell = parts[2].tanh();
  const at::Tensor out = parts[3].sigmoid();
  const at::Tensor cy = forget * cx + in * cell;
  const at::Tensor hy = out * cy.tanh();
  Return(*stack, 5, dtype, {hy, cy, at::cat({in, forget, cell, out}, 1)});
}

// (grad_hy?, grad_cy?, cx, cy, workspace, has_bias) -> (grad_gates, grad_cx, grad_bias)
void LstmCellBackward(Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 6);
  const at::ScalarType dtype = arguments[4].toTensor().scalar_type();
  const at::Tensor grad_hy = Widened(arguments[0]);
  const at::Tensor grad_cy = Widened(arguments[1]);
  const at::Tensor cx = Widened(arguments[2]);
  const at::Tensor tanh_cy = Widened(arguments[3]).tanh();
  const std::vector<at::Tensor> parts = Widened(arguments[4]).chunk(4, 1);
  const bool has_bias = arguments[5].toBool();
  const at::Tensor &in = parts[0], &forget = parts[1], &cell = parts[2], &out = parts[3];

  at::Tensor to_cell = grad_cy.defined() ? grad_cy : at::zeros_like(cx);
  at::Tensor to_out = at::zeros_like(out);
  if (grad_hy.defined()) {
    to_cell = to_cell + grad_hy * out * (1 - tanh_cy * tanh_cy);
    to_out = grad_hy * tanh_cy * out * (1 - out);
  }
  const at::Tensor grad_gates =
      at::cat({to_cell * cell * in * (1 - in), to_cell * cx * forget * (1 - forget),
               to_cell * in * (1 - cell * cell), to_out}, 1);
  Return(*stack, 6, dtype,
         {grad_gates, to_cell * forget, has_bias ? grad_gates.sum(0) : at::Tensor()});
}

// (input_gates, hidden_gates, hx, input_bias?, hidden_bias?) -> (hy, workspace); the workspace is
// reset, update, new, hx and the hidden part of new.
void GruCell(Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 5);
  const at::ScalarType dtype = arguments[0].toTensor().scalar_type();
  const auto input = WithBias(arguments[0], arguments[3]).chunk(3, 1);
  const auto hidden = WithBias(arguments[1], arguments[4]).chunk(3, 1);
  const at::Tensor hx = Widened(arguments[2]);
  const at::Tensor reset = (input[0] + hidden[0]).sigmoid();
  const at::Tensor update = (input[1] + hidden[1]).sigmoid();
  const at::Tensor fresh = (input[2] + reset * hidden[2]).tanh();
  const at::Tensor hy = fresh + update * (hx - fresh);
  Return(*stack, 5, dtype, {hy, at::cat({reset, update, fresh, hx, hidden[2]}, 1)});
}

// (grad_hy, workspace, has_bias) -> (grad_input_gates, grad_hidden_gates, grad_hx,
// grad_input_bias, grad_hidden_bias)
void GruCellBackward(Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 3);
  const at::ScalarType dtype = arguments[1].toTensor().scalar_type();
  const at::Tensor grad = Widened(arguments[0]);
  const auto parts = Widened(arguments[1]).chunk(5, 1);
  const bool has_bias = arguments[2].toBool();
  const at::Tensor &reset = parts[0], &update = parts[1], &fresh = parts[2], &hx = parts[3],
                   &hidden = parts[4];
  const at::Tensor to_update = grad * (hx - fresh) * update * (1 - update);
  const at::Tensor to_fresh = grad * (1 - update) * (1 - fresh * fresh);
  const at::Tensor to_reset = to_fresh * hidden * reset * (1 - reset);
  const at::Tensor grad_input = at::cat({to_reset, to_update, to_fresh}, 1);
  const at::Tensor grad_hidden = at::cat({to_reset, to_update, to_fresh * reset}, 1);
  Return(*stack, 3, dtype,
         {grad_input, grad_hidden, grad * update, has_bias ? grad_input.sum(0) : at::Tensor(),
          has_bias ? grad_hidden.sum(0) : at::Tensor()});
}

// (self, bins, min, max) -> counts
void Histogram(Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 4);
  const at::Tensor self = arguments[0].toTensor();
  const bool is_integral = c10::isIntegralType(self.scalar_type(), /*includeBool=*/false);
  const at::Tensor values = is_integral ? self.to(at::kDouble) : self;
  const at::Tensor counts = at::histc(values, arguments[1].toInt(), arguments[2].toScalar(),
                                      arguments[3].toScalar());
  Return(*stack, 4, self.scalar_type(), {counts});
}

}  // namespace

BoxedCpuKernel CpuStandIn(const c10::OperatorName& name) {
  if (!name.overload_name.empty()) return nullptr;
  static const auto* const kernels = new std::unordered_map<std::string, BoxedCpuKernel>{
      {"aten::histc", &Histogram},
      {"aten::_thnn_fused_lstm_cell", &LstmCell},
      {"aten::_thnn_fused_lstm_cell_backward_impl", &LstmCellBackward},
      {"aten::_thnn_fused_gru_cell", &GruCell},
      {"aten::_thnn_fused_gru_cell_backward", &GruCellBackward}};
  const auto found = kernels->find(name.name);
  return found == kernels->end() ? nullptr : found->second;
}

}  // namespace plumbline_test_device
