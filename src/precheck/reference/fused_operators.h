// Reference functions of fused operators of vendors, in double inside, with their gradients: what
// the operator should have returned. Formulas and names of arguments are those of the operators'
// public documentation. Each result has the type of the operand that it belongs to, unless said
// otherwise, and is rounded once.
//
// `recorded`: the type that the call had on the device, where inputs were widened before they came
// here. A 16-bit one brings back the roundings that the device makes in between.
//
// Errors are kInvalidArgument and name the argument. NaN and Inf go through the formulas.

#ifndef PLUMBLINE_PRECHECK_REFERENCE_FUSED_OPERATORS_H_
#define PLUMBLINE_PRECHECK_REFERENCE_FUSED_OPERATORS_H_

#include <array>
#include <cstdint>
#include <optional>

#include "precheck/reference/array.h"

namespace plumbline::precheck::reference {

// Activations (activation.cc).

// x sigmoid(1.702 x).
Result<Array> FastGelu(const Operand& x);
Result<Array> FastGeluGrad(const Operand& grad, const Operand& x);
// x tanh(ln(1 + exp(x))).
Result<Array> Mish(const Operand& x);
Result<Array> MishGrad(const Operand& grad, const Operand& x);
// sigmoid(A) A B, where A and B are the halves of x along `dim`. The device rounds silu(A) to 16
// bits before it multiplies.
Result<Array> Swiglu(const Operand& x, int64_t dim, std::optional<DType> recorded);
Result<Array> SwigluGrad(const Operand& grad, const Operand& x, int64_t dim,
                         std::optional<DType> recorded);

// Optimisers (optimizer.cc): new values of var, m and v.

struct AdamState {
  Operand var, m, v, grad;
  double beta1_power = 0, beta2_power = 0, lr = 0, beta1 = 0, beta2 = 0, epsilon = 0;
};
// beta1 is rounded to the type of m, beta2 and epsilon to that of v.
Result<std::array<Array, 3>> ApplyAdam(const AdamState& state, bool use_nesterov);
struct AdamWOptions {
  double weight_decay = 0;
  OptionalOperand max_grad_norm;  // with amsgrad: what v is at least
  bool amsgrad = false, maximize = false;
};
Result<std::array<Array, 3>> ApplyAdamW(const AdamState& state, const AdamWOptions& options);

// Normalisation (normalization.cc).

struct RmsNormResult {
  Array y;
  Array rstd;  // of x's type, but float32 for 16-bit ones; dimensions that were reduced have size 1
};
// x gamma / sqrt(mean(x^2) + epsilon), the mean over as many trailing dimensions as gamma has.
Result<RmsNormResult> RmsNorm(const Operand& x, const Operand& gamma, double epsilon,
                              std::optional<DType> recorded);
// Of x and gamma.
Result<std::array<Array, 2>> RmsNormGrad(const Operand& grad, const Operand& x,
                                         const Operand& gamma, const Operand& rstd);

struct LayerNormCall {
  Operand input;
  Shape normalized_shape;
  OptionalOperand weight, bias;  // of normalized_shape
  double epsilon = 1e-5;
};
Result<Array> LayerNorm(const LayerNormCall& call);
// Of input, weight and bias; the latter two always.
Result<std::array<Array, 3>> LayerNormGrad(const Operand& grad, const LayerNormCall& call);

struct GroupNormCall {
  Operand input;                 // (N, C, ...)
  OptionalOperand weight, bias;  // (C)
  int64_t group = 1;
  double epsilon = 1e-5;
};
// h sigmoid(h) of the normalised h; mean and 1 / deviation of each group, shape (N, group).
Result<std::array<Array, 3>> GroupNormSilu(const GroupNormCall& call);
// Of input, weight and bias, by the gradient of the first result.
Result<std::array<Array, 3>> GroupNormSiluGrad(const Operand& grad, const GroupNormCall& call);

// Softmax (softmax.cc).

struct MaskedSoftmaxOptions {
  OptionalOperand mask;  // bool, true: hidden; broadcast to x
  double scale = 1;
  bool fixed_triu_mask = false;  // hides what is strictly above the diagonal instead
};
// softmax(x scale) along the last dimension, with -10000 where hidden.
Result<Array> ScaledMaskedSoftmax(const Operand& x, const MaskedSoftmaxOptions& options,
                                  std::optional<DType> recorded);
Result<Array> ScaledMaskedSoftmaxGrad(const Operand& grad, const Operand& y,
                                      const MaskedSoftmaxOptions& options);

struct MoeGatingCall {
  Operand x;                 // (R, E) or (A, B, E), whose rows count as R = A B
  OptionalOperand finished;  // bool, an element per row
  int64_t k = 1;
};
struct MoeGatingResult {
  Array y;                    // the k largest probabilities of a row, descending, ties by index
  Array expert_idx, row_idx;  // int64; E in finished rows; j R + r
};
Result<MoeGatingResult> MoeGatingTopKSoftmax(const MoeGatingCall& call,
                                             std::optional<DType> recorded);
Result<Array> MoeGatingTopKSoftmaxGrad(const Operand& grad, const MoeGatingCall& call,
                                       std::optional<DType> recorded);

// Rotary embedding (rotary.cc).

enum class RotaryMode : uint8_t { kHalf, kInterleave };
// r1 x + r2 rot(x); rot(x) is (-x2, x1) of the halves, or of neighbours.
Result<Array> RotaryMul(const Operand& x, const Operand& r1, const Operand& r2, RotaryMode mode);
// Of x, r1 and r2, summed where these were broadcast.
struct RotaryCall {
  Operand x, r1, r2;
  RotaryMode mode = RotaryMode::kHalf;
};
Result<std::array<Array, 3>> RotaryMulGrad(const Operand& grad, const RotaryCall& call);

// Products of matrices (matrix_product.cc).

// input weight^T + bias over the last dimension of input; weight (M, K).
Result<Array> Linear(const Operand& input, const Operand& weight, const OptionalOperand& bias);
struct LinearGradients {
  Array input, weight, bias;
};
Result<LinearGradients> LinearGrad(const Operand& grad, const Operand& input,
                                   const Operand& weight);
// Gradients of matmul(self, other) that `wanted` asks for, as torch.matmul broadcasts.
Result<std::array<std::optional<Array>, 2>> MatmulGrad(const Operand& grad, const Operand& self,
                                                       const Operand& other,
                                                       std::array<bool, 2> wanted);

}  // namespace plumbline::precheck::reference

#endif  // PLUMBLINE_PRECHECK_REFERENCE_FUSED_OPERATORS_H_
