#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "precheck/reference/fused_operators.h"

namespace plumbline::precheck::reference {
namespace {

constexpr double kHiddenScore = -10000;

Status CheckMask(std::string_view argument, const Operand& mask, const Shape& shape) {
  if (mask.dtype != DType::kBool && mask.dtype != DType::kUInt8) {
    return BadArgument(argument, fmt::format("is no mask (expected bool or uint8, got {})",
                                             InfoOf(mask.dtype).name));
  }
  return Broadcast::Check(argument, mask, shape);
}

Status CheckMasked(const Operand& x, const MaskedSoftmaxOptions& options) {
  PL_TRY(CheckFloating("x", x));
  if (options.fixed_triu_mask && x.shape.size() < 2) {
    return BadArgument("fixed_triu_mask", "needs an input of at least two dimensions");
  }
  if (options.mask) return CheckMask("mask", *options.mask, x.shape);
  return {};
}

// Which elements of a row are hidden.
class HiddenColumns {
 public:
  HiddenColumns(const Operand& x, const MaskedSoftmaxOptions& options)
      : is_triangle_(options.fixed_triu_mask),
        rows_(x.shape.size() < 2 ? 1 : static_cast<size_t>(x.shape[x.shape.size() - 2])) {
    if (options.mask && !is_triangle_) mask_.emplace(*options.mask, x.shape);
  }
  // 1 where hidden, else 0.
  void Row(size_t row, std::vector<double>& hidden) const {
    if (mask_) return mask_->ReadRow(row, hidden.size(), hidden.data());
    const size_t first = is_triangle_ ? std::min(hidden.size(), row % rows_ + 1) : hidden.size();
    std::fill(hidden.begin(), hidden.end(), 1);
    std::fill_n(hidden.begin(), first, 0);
  }

 private:
  bool is_triangle_;
  size_t rows_;
  std::optional<Broadcast> mask_;
};

// Scores become probabilities. A row with a NaN becomes NaN.
void Softmax(std::vector<double>& row, bool rounds_exponents) {
  // max() passes over NaN, but its exponent makes the sum NaN, and so the whole row.
  double largest = -std::numeric_limits<double>::infinity();
  for (const double x : row) largest = std::max(largest, x);
  for (double& x : row) {
    x = std::exp(x - largest);
    if (rounds_exponents) x = RoundTo(DType::kFloat32, x);
  }
  const double sum = Sum(row.data(), row.size());
  for (double& x : row) x /= sum;
}

// The gradient of scores from that of probabilities: p (g - sum(g p)), in place of g.
void SoftmaxGrad(const std::vector<double>& p, std::vector<double>& g,
                 std::vector<double>& scratch) {
  for (size_t i = 0; i < p.size(); ++i) scratch[i] = p[i] * g[i];
  const double mean = Sum(scratch.data(), p.size());
  for (size_t i = 0; i < p.size(); ++i) g[i] = p[i] * (g[i] - mean);
}

// Rows and experts of a checked call.
struct Gating {
  size_t rows = 0, experts = 0, k = 0;
  bool rounds = false;          // softmax in float32, as on the device
  std::optional<DType> stored;  // 16-bit operands: probabilities have that type
};

Result<Gating> GatingOf(const MoeGatingCall& call, std::optional<DType> recorded) {
  PL_TRY(CheckFloating("x", call.x));
  const size_t rank = call.x.shape.size();
  if (rank != 2 && rank != 3) {
    return BadArgument("x", fmt::format("has {} dimensions (expected 2 or 3)", rank));
  }
  Gating gating;
  gating.experts = call.x.last();
  gating.rows = CountOf(Shape(call.x.shape.begin(), call.x.shape.end() - 1));
  if (call.k < 1 || static_cast<size_t>(call.k) > gating.experts) {
    return BadArgument("k",
                       fmt::format("{} of {} experts cannot be chosen", call.k, gating.experts));
  }
  gating.k = static_cast<size_t>(call.k);
  // Which expert comes first must not depend on digits that the device has not.
  gating.rounds = NarrowType(recorded, call.x).has_value();
  gating.stored = NarrowType(std::nullopt, call.x);
  if (!call.finished) return gating;
  const DType type = call.finished->dtype;
  if ((type != DType::kBool && type != DType::kUInt8) || call.finished->count() != gating.rows) {
    return BadArgument(
        "finished", fmt::format("has type {} and shape {} (expected bool, one "
                                "element of each of the {} rows)",
                                InfoOf(type).name, ShapeText(call.finished->shape), gating.rows));
  }
  return gating;
}

// Probabilities of a row in p, and the indices of the k largest first in `order`. What decides is
// what the device sees: float32, or 16 bits where operands have no more.
void Choose(const MoeGatingCall& call, const Gating& gating, size_t row, std::vector<double>& p,
            std::vector<int64_t>& order) {
  Read(call.x, row * gating.experts, gating.experts, p.data());
  Softmax(p, false);
  if (gating.rounds) {
    for (double& x : p) x = RoundTo(gating.stored.value_or(DType::kFloat32), x);
  }
  std::iota(order.begin(), order.end(), 0);
  const auto is_before = [&p](int64_t a, int64_t b) {
    const double x = p[static_cast<size_t>(a)], y = p[static_cast<size_t>(b)];
    if (std::isnan(x) != std::isnan(y)) return std::isnan(x);  // NaN is the largest, as in torch
    if (x > y || x < y) return x > y;
    return a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(gating.k),
                    order.end(), is_before);
}

Shape ChosenShape(const MoeGatingCall& call) {
  Shape shape = call.x.shape;
  shape.back() = call.k;
  return shape;
}

}  // namespace

Result<Array> ScaledMaskedSoftmax(const Operand& x, const MaskedSoftmaxOptions& options,
                                  std::optional<DType> recorded) {
  PL_TRY(CheckMasked(x, options));
  const bool rounds = NarrowType(recorded, x).has_value();
  const HiddenColumns columns(x, options);
  const size_t length = x.last();
  Array y(x.dtype, x.shape);
  ForRanges(length == 0 ? 0 : x.count() / length, length, [&](size_t begin, size_t end) {
    std::vector<double> row(length), hidden(length);
    for (size_t r = begin; r < end; ++r) {
      Read(x, r * length, length, row.data());
      columns.Row(r, hidden);
      for (size_t i = 0; i < length; ++i) {
        row[i] = hidden[i] != 0 ? kHiddenScore : row[i] * options.scale;
      }
      Softmax(row, rounds);
      Write(y, r * length, length, row.data());
    }
  });
  return y;
}

Result<Array> ScaledMaskedSoftmaxGrad(const Operand& grad, const Operand& y,
                                      const MaskedSoftmaxOptions& options) {
  PL_TRY(CheckMasked(y, options));
  PL_TRY(CheckFloating("y_grad", grad));
  PL_TRY(CheckShape("y_grad", grad, y.shape));
  const HiddenColumns columns(y, options);
  const size_t length = y.last();
  Array dx(y.dtype, y.shape);
  ForRanges(length == 0 ? 0 : y.count() / length, length, [&](size_t begin, size_t end) {
    std::vector<double> p(length), g(length), hidden(length);
    for (size_t r = begin; r < end; ++r) {
      Read(y, r * length, length, p.data());
      Read(grad, r * length, length, g.data());
      SoftmaxGrad(p, g, hidden);  // what is hidden is read behind it
      columns.Row(r, hidden);
      for (size_t i = 0; i < length; ++i) g[i] = hidden[i] != 0 ? 0 : options.scale * g[i];
      Write(dx, r * length, length, g.data());
    }
  });
  return dx;
}

Result<MoeGatingResult> MoeGatingTopKSoftmax(const MoeGatingCall& call,
                                             std::optional<DType> recorded) {
  PL_TRY_ASSIGN(const Gating gating, GatingOf(call, recorded));
  const Shape shape = ChosenShape(call);
  MoeGatingResult out{Array(call.x.dtype, shape), Array(DType::kInt64, shape),
                      Array(DType::kInt64, shape)};
  auto* const experts = reinterpret_cast<int64_t*>(out.expert_idx.data());
  auto* const rows = reinterpret_cast<int64_t*>(out.row_idx.data());
  ForRanges(gating.rows, gating.experts, [&](size_t begin, size_t end) {
    std::vector<double> p(gating.experts), chosen(gating.k);
    std::vector<int64_t> order(gating.experts);
    for (size_t r = begin; r < end; ++r) {
      Choose(call, gating, r, p, order);
      const bool is_finished = call.finished && call.finished->data[r] != std::byte{0};
      for (size_t j = 0; j < gating.k; ++j) {
        chosen[j] = p[static_cast<size_t>(order[j])];
        experts[r * gating.k + j] = is_finished ? static_cast<int64_t>(gating.experts) : order[j];
        rows[r * gating.k + j] = static_cast<int64_t>(j * gating.rows + r);
      }
      Write(out.y, r * gating.k, gating.k, chosen.data());
    }
  });
  return out;
}

Result<Array> MoeGatingTopKSoftmaxGrad(const Operand& grad, const MoeGatingCall& call,
                                       std::optional<DType> recorded) {
  PL_TRY_ASSIGN(const Gating gating, GatingOf(call, recorded));
  PL_TRY(CheckFloating("grad", grad));
  PL_TRY(CheckShape("grad", grad, ChosenShape(call)));
  Array dx(call.x.dtype, call.x.shape);
  ForRanges(gating.rows, gating.experts, [&](size_t begin, size_t end) {
    std::vector<double> p(gating.experts), g(gating.experts), chosen(gating.k);
    std::vector<int64_t> order(gating.experts);
    std::vector<double> scratch(gating.experts);
    for (size_t r = begin; r < end; ++r) {
      Choose(call, gating, r, p, order);
      Read(grad, r * gating.k, gating.k, chosen.data());
      std::fill(g.begin(), g.end(), 0);
      // Experts that were not chosen have no part in the result.
      for (size_t j = 0; j < gating.k; ++j) g[static_cast<size_t>(order[j])] = chosen[j];
      SoftmaxGrad(p, g, scratch);
      Write(dx, r * gating.experts, gating.experts, g.data());
    }
  });
  return dx;
}

}  // namespace plumbline::precheck::reference
