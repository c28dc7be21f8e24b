#include <algorithm>
#include <cmath>

#include "precheck/reference/fused_operators.h"

namespace plumbline::precheck::reference {
namespace {

constexpr size_t kChunk = 512;

Status CheckState(const AdamState& state) {
  PL_TRY(CheckFloating("var", state.var));
  PL_TRY(CheckFloating("m", state.m));
  PL_TRY(CheckFloating("v", state.v));
  PL_TRY(CheckFloating("grad", state.grad));
  PL_TRY(CheckShape("m", state.m, state.var.shape));
  PL_TRY(CheckShape("v", state.v, state.var.shape));
  return CheckShape("grad", state.grad, state.var.shape);
}

// The device keeps these numbers as tensors of that type.
// A number as a tensor of the type holds it.
double AsElement(double value, const Operand& like) {
  return like.dtype == DType::kFloat64 ? value : RoundTo(like.dtype, value);
}

// One element before and after.
struct Element {
  double var, m, v, grad, floor;
};

template <class Step>
std::array<Array, 3> Apply(const AdamState& state, const Operand* floor, const Step& step) {
  std::array<Array, 3> out = {Array(state.var.dtype, state.var.shape),
                              Array(state.m.dtype, state.m.shape),
                              Array(state.v.dtype, state.v.shape)};
  const size_t count = state.var.count();
  ForRanges((count + kChunk - 1) / kChunk, kChunk, [&](size_t begin, size_t end) {
    double var[kChunk], m[kChunk], v[kChunk], grad[kChunk], least[kChunk] = {};
    for (size_t first = begin * kChunk; first < std::min(count, end * kChunk); first += kChunk) {
      const size_t n = std::min(kChunk, count - first);
      Read(state.var, first, n, var);
      Read(state.m, first, n, m);
      Read(state.v, first, n, v);
      Read(state.grad, first, n, grad);
      if (floor) Read(*floor, first, n, least);
      for (size_t i = 0; i < n; ++i) {
        const Element e = step(Element{var[i], m[i], v[i], grad[i], least[i]});
        var[i] = e.var, m[i] = e.m, v[i] = e.v;
      }
      Write(out[0], first, n, var);
      Write(out[1], first, n, m);
      Write(out[2], first, n, v);
    }
  });
  return out;
}

// The larger one; NaN if either is.
double Larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

}  // namespace

Result<std::array<Array, 3>> ApplyAdam(const AdamState& state, bool use_nesterov) {
  PL_TRY(CheckState(state));
  const double beta1 = AsElement(state.beta1, state.m);
  const double beta2 = AsElement(state.beta2, state.v);
  const double epsilon = AsElement(state.epsilon, state.v);
  const double rate = state.lr * std::sqrt(1 - state.beta2_power) / (1 - state.beta1_power);
  return Apply(state, nullptr, [=](Element e) {
    // m = beta1 m + (1 - beta1) g, in the form that the operator is documented by.
    e.m += (beta1 - 1) * (e.m - e.grad);
    e.v += (beta2 - 1) * (e.v - e.grad * e.grad);
    const double move = use_nesterov ? beta1 * e.m + (1 - beta1) * e.grad : e.m;
    e.var -= rate * move / (epsilon + std::sqrt(e.v));
    return e;
  });
}

Result<std::array<Array, 3>> ApplyAdamW(const AdamState& state, const AdamWOptions& options) {
  PL_TRY(CheckState(state));
  const bool has_floor = options.amsgrad && options.max_grad_norm.has_value();
  if (options.amsgrad && !has_floor) {
    return BadArgument("max_grad_norm", "is missing (expected a tensor, since amsgrad is set)");
  }
  if (has_floor) {
    PL_TRY(CheckFloating("max_grad_norm", *options.max_grad_norm));
    PL_TRY(CheckShape("max_grad_norm", *options.max_grad_norm, state.var.shape));
  }
  // What is left of a bias of 1; epsilon keeps it from being nothing.
  const auto remainder = [&](double power, double beta) {
    const double p = power * beta;
    return 1 - p == 0 ? 1 - (p - state.epsilon) : 1 - p;
  };
  const double rest1 = remainder(state.beta1_power, state.beta1);
  const double rest2 = remainder(state.beta2_power, state.beta2);
  const double kept = 1 - state.lr * options.weight_decay;
  const double sign = options.maximize ? -1 : 1;
  return Apply(state, has_floor ? &*options.max_grad_norm : nullptr, [&](Element e) {
    const double grad = sign * e.grad;
    e.m = state.beta1 * e.m + (1 - state.beta1) * grad;
    e.v = state.beta2 * e.v + (1 - state.beta2) * grad * grad;
    const double u = has_floor ? Larger(e.floor, e.v) : e.v;
    e.var = e.var * kept - state.lr * e.m / rest1 / (std::sqrt(u / rest2) + state.epsilon);
    return e;
  });
}

}  // namespace plumbline::precheck::reference
