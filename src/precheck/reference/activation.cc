#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "precheck/reference/fused_operators.h"

namespace plumbline::precheck::reference {
namespace {

constexpr size_t kChunk = 1024;
constexpr double kFastGeluSlope = 1.702;

double Sigmoid(double x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double e = std::exp(x);  // does not overflow, and keeps the digits of small results
  return e / (1 + e);
}

// f(x, g) of every element; g is 1 without a gradient.
template <class Function>
Result<Array> Map(const Operand& x, const Operand* grad, const Function& f) {
  PL_TRY(CheckFloating("self", x));
  if (grad) {
    PL_TRY(CheckFloating("grad", *grad));
    PL_TRY(CheckShape("grad", *grad, x.shape));
  }
  Array y(x.dtype, x.shape);
  const size_t count = x.count();
  ForRanges((count + kChunk - 1) / kChunk, kChunk, [&](size_t begin, size_t end) {
    double values[kChunk], grads[kChunk];
    for (size_t first = begin * kChunk; first < std::min(count, end * kChunk); first += kChunk) {
      const size_t n = std::min(kChunk, count - first);
      Read(x, first, n, values);
      if (grad) Read(*grad, first, n, grads);
      for (size_t i = 0; i < n; ++i) values[i] = f(values[i], grad ? grads[i] : 1.0);
      Write(y, first, n, values);
    }
  });
  return y;
}

// exp(x) (exp(x) + 2) as n and tanh(ln(1 + exp(x))) = n / (n + 2), without overflow: numerator and
// denominator are divided by exp(2 x) where x is positive.
struct MishParts {
  double tanh, one_less_square;  // t and 1 - t^2
};
MishParts MishPartsOf(double x) {
  const double e = std::exp(-std::abs(x));
  const double numerator = x > 0 ? 1 + 2 * e : e * (e + 2);
  const double rest = x > 0 ? 2 * e * e : 2;  // denominator less numerator
  const double denominator = numerator + rest;
  const double t = numerator / denominator;
  return {t, rest / denominator * (1 + t)};
}

// x as (outer, 2, half): the halves A and B of a slice lie `half` elements apart.
struct Halves {
  size_t outer = 1, half = 1;
  Shape shape;  // of one half
};
Result<Halves> HalvesOf(const Operand& x, int64_t dim) {
  PL_TRY(CheckFloating("x", x));
  const auto rank = static_cast<int64_t>(x.shape.size());
  if (dim < -rank || dim >= rank) {
    return BadArgument(
        "dim", fmt::format("{} is no dimension of x with shape {}", dim, ShapeText(x.shape)));
  }
  const auto at = static_cast<size_t>(dim < 0 ? dim + rank : dim);
  if (x.shape[at] % 2 != 0) {
    return BadArgument("x", fmt::format("dimension {} of shape {} cannot be halved (expected an "
                                        "even size, got {})",
                                        at, ShapeText(x.shape), x.shape[at]));
  }
  Halves halves{1, 1, x.shape};
  halves.shape[at] /= 2;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    (i < at ? halves.outer : halves.half) *= static_cast<size_t>(halves.shape[i]);
  }
  return halves;
}

// body(position in A, position in a half-sized tensor, count) for all of x, in parallel.
template <class Body>
void ForHalves(const Halves& halves, const Body& body) {
  const size_t chunks = (halves.half + kChunk - 1) / kChunk;
  ForRanges(halves.outer * chunks, std::min(kChunk, halves.half), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t slice = i / chunks, within = i % chunks * kChunk;
      body(2 * slice * halves.half + within, slice * halves.half + within,
           std::min(kChunk, halves.half - within));
    }
  });
}

struct SwigluTerms {
  double silu, slope;  // s(a) = a sigmoid(a) and its derivative
};
SwigluTerms SwigluTermsOf(double a) {
  const double s = Sigmoid(a);
  return {a * s, s + a * s * (1 - s)};
}

// Gradients of A and B with what the device rounds in between: bfloat16 twice, float16 never.
std::array<double, 2> SwigluGradOf(double a, double b, double g, bool rounds) {
  const SwigluTerms terms = SwigluTermsOf(a);
  if (!rounds) return {b * terms.slope * g, g * terms.silu};
  return {RoundTo(DType::kBFloat16, g * terms.slope) * b,
          RoundTo(DType::kBFloat16, terms.silu) * g};
}

}  // namespace

Result<Array> FastGelu(const Operand& x) {
  return Map(x, nullptr, [](double v, double) {
    const double t = std::exp(-kFastGeluSlope * std::abs(v));
    return (v < 0 ? v * t : v) / (1 + t);
  });
}

Result<Array> FastGeluGrad(const Operand& grad, const Operand& x) {
  return Map(x, &grad, [](double v, double g) {
    const double t = std::exp(-kFastGeluSlope * std::abs(v));
    const double last = v < 0 ? t * t : 1;  // exp(1.702 (v - |v|))
    return g * (t + kFastGeluSlope * v * t + last) / ((1 + t) * (1 + t));
  });
}

Result<Array> Mish(const Operand& x) {
  return Map(x, nullptr, [](double v, double) { return v * MishPartsOf(v).tanh; });
}

Result<Array> MishGrad(const Operand& grad, const Operand& x) {
  return Map(x, &grad, [](double v, double g) {
    const MishParts parts = MishPartsOf(v);
    return g * (parts.tanh + v * Sigmoid(v) * parts.one_less_square);
  });
}

Result<Array> Swiglu(const Operand& x, int64_t dim, std::optional<DType> recorded) {
  PL_TRY_ASSIGN(const Halves halves, HalvesOf(x, dim));
  const std::optional<DType> narrow = NarrowType(recorded, x);
  Array y(x.dtype, halves.shape);
  ForHalves(halves, [&](size_t at, size_t to, size_t n) {
    double a[kChunk], b[kChunk];
    Read(x, at, n, a);
    Read(x, at + halves.half, n, b);
    for (size_t i = 0; i < n; ++i) {
      const double silu = SwigluTermsOf(a[i]).silu;
      a[i] = (narrow ? RoundTo(*narrow, silu) : silu) * b[i];
    }
    Write(y, to, n, a);
  });
  return y;
}

Result<Array> SwigluGrad(const Operand& grad, const Operand& x, int64_t dim,
                         std::optional<DType> recorded) {
  PL_TRY_ASSIGN(const Halves halves, HalvesOf(x, dim));
  PL_TRY(CheckFloating("grad", grad));
  PL_TRY(CheckShape("grad", grad, halves.shape));
  const bool rounds = NarrowType(recorded, grad) == DType::kBFloat16;
  Array dx(x.dtype, x.shape);
  ForHalves(halves, [&](size_t at, size_t from, size_t n) {
    double a[kChunk], b[kChunk], g[kChunk];
    Read(x, at, n, a);
    Read(x, at + halves.half, n, b);
    Read(grad, from, n, g);
    for (size_t i = 0; i < n; ++i) {
      const std::array<double, 2> grads = SwigluGradOf(a[i], b[i], g[i], rounds);
      a[i] = grads[0], b[i] = grads[1];
    }
    Write(dx, at, n, a);
    Write(dx, at + halves.half, n, b);
  });
  return dx;
}

}  // namespace plumbline::precheck::reference
