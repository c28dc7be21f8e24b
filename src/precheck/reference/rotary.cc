#include <fmt/format.h>

#include <algorithm>

#include "precheck/reference/fused_operators.h"

namespace plumbline::precheck::reference {
namespace {

Status CheckRotary(const RotaryCall& call) {
  PL_TRY(CheckFloating("input", call.x));
  PL_TRY(CheckFloating("r1", call.r1));
  PL_TRY(CheckFloating("r2", call.r2));
  if (call.x.shape.empty() || call.x.last() % 2 != 0) {
    return BadArgument("input", fmt::format("the last dimension of shape {} is not even",
                                            ShapeText(call.x.shape)));
  }
  PL_TRY(Broadcast::Check("r1", call.r1, call.x.shape));
  return Broadcast::Check("r2", call.r2, call.x.shape);
}

// rot(x) of a row; its transpose is -rot.
void Rotate(const std::vector<double>& row, RotaryMode mode, std::vector<double>& out) {
  const size_t half = row.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    const size_t first = mode == RotaryMode::kHalf ? i : 2 * i;
    const size_t second = mode == RotaryMode::kHalf ? i + half : 2 * i + 1;
    out[first] = -row[second];
    out[second] = row[first];
  }
}

size_t RowCount(const Operand& x) { return x.last() == 0 ? 0 : x.count() / x.last(); }

// dx = r1 g + rot^T(r2 g).
Array InputGrad(const Operand& grad, const RotaryCall& call) {
  const Broadcast r1(call.r1, call.x.shape), r2(call.r2, call.x.shape);
  const size_t length = call.x.last();
  // rot^T is -rot, so one function turns both ways.
  Array dx(call.x.dtype, call.x.shape);
  ForRanges(RowCount(call.x), length, [&](size_t begin, size_t end) {
    std::vector<double> g(length), factor(length), turned(length);
    for (size_t r = begin; r < end; ++r) {
      Read(grad, r * length, length, g.data());
      r2.ReadRow(r, length, factor.data());
      for (size_t i = 0; i < length; ++i) factor[i] *= g[i];
      Rotate(factor, call.mode, turned);
      r1.ReadRow(r, length, factor.data());
      for (size_t i = 0; i < length; ++i) g[i] = factor[i] * g[i] - turned[i];
      Write(dx, r * length, length, g.data());
    }
  });
  return dx;
}

// Which rows of x a row of a broadcast factor stands for.
class RowsOfFactor {
 public:
  RowsOfFactor(const Operand& factor, const Shape& shape) {
    const size_t added = shape.size() - factor.shape.size();
    size_t stride = 1;
    // Innermost first, without the last dimension, which is the row itself.
    for (size_t i = shape.size() - 1; i-- > 0;) {
      const int64_t own = i < added ? 1 : factor.shape[i - added];
      // A dimension of size 1 on both sides is in neither list.
      if (own != 1) kept_.push_back({static_cast<size_t>(own), stride});
      if (own == 1 && shape[i] != 1) summed_.push_back({static_cast<size_t>(shape[i]), stride});
      stride *= static_cast<size_t>(shape[i]);
    }
  }
  [[nodiscard]] size_t factor_rows() const { return Product(kept_); }
  [[nodiscard]] size_t rows_of_each() const { return Product(summed_); }
  [[nodiscard]] size_t Row(size_t factor_row, size_t i) const {
    return Offset(kept_, factor_row) + Offset(summed_, i);
  }

 private:
  struct Axis {
    size_t size, stride;  // innermost first
  };
  static size_t Product(const std::vector<Axis>& axes) {
    size_t product = 1;
    for (const Axis& axis : axes) product *= axis.size;
    return product;
  }
  static size_t Offset(const std::vector<Axis>& axes, size_t index) {
    size_t offset = 0;
    for (const Axis& axis : axes) {
      offset += index % axis.size * axis.stride;
      index /= axis.size;
    }
    return offset;
  }
  std::vector<Axis> kept_, summed_;
};

// Sum of g x (or g rot(x)) over the rows of x that each row of the factor stands for.
Array FactorGrad(const Operand& grad, const RotaryCall& call, const Operand& factor,
                 bool is_rotated) {
  const RowsOfFactor rows(factor, call.x.shape);
  const size_t length = call.x.last();
  const size_t width = factor.last();  // length, or 1: the row is summed too
  Array out(factor.dtype, factor.shape);
  // The rows of one factor row are few (heads, batches) as a rule, but may be all of x.
  const bool is_shared = rows.factor_rows() == 1;
  const auto add_rows = [&](size_t factor_row, size_t begin, size_t end, double* sums) {
    std::vector<double> g(length), x(length), turned(length);
    for (size_t i = begin; i < end; ++i) {
      const size_t row = rows.Row(factor_row, i);
      Read(grad, row * length, length, g.data());
      Read(call.x, row * length, length, x.data());
      if (is_rotated) Rotate(x, call.mode, turned);
      for (size_t j = 0; j < length; ++j) g[j] *= is_rotated ? turned[j] : x[j];
      if (width == length) {
        for (size_t j = 0; j < length; ++j) sums[j] += g[j];
      } else {
        sums[0] += Sum(g.data(), length);
      }
    }
  };
  if (is_shared) {  // else one row would be one thread's work
    const std::vector<double> sums = SumRanges(
        rows.rows_of_each(), width,
        [&](size_t begin, size_t end, double* partial) { add_rows(0, begin, end, partial); });
    Write(out, 0, width, sums.data());
    return out;
  }
  ForRanges(rows.factor_rows(), rows.rows_of_each() * length, [&](size_t begin, size_t end) {
    std::vector<double> sums(width);
    for (size_t r = begin; r < end; ++r) {
      std::fill(sums.begin(), sums.end(), 0);
      add_rows(r, 0, rows.rows_of_each(), sums.data());
      Write(out, r * width, width, sums.data());
    }
  });
  return out;
}

// What one row of x adds to all three gradients; the products are those of InputGrad() and
// FactorGrad(), in the same order.
struct GradRow {
  size_t length;
  std::vector<double> grad, x, r1, r2, dx, sum1, sum2;

  explicit GradRow(size_t elements)
      : length(elements),
        grad(length),
        x(length),
        r1(length),
        r2(length),
        dx(length),
        sum1(length),
        sum2(length) {}

  // Elements at `first` and `second`, which rot() makes of each other, and so on by `step`.
  void Add(size_t first, size_t second, size_t step) {
    const double* const g = grad.data();
    for (size_t i = 0; i < length / 2; ++i, first += step, second += step) {
      dx[first] = r1[first] * g[first] + r2[second] * g[second];
      dx[second] = r1[second] * g[second] - r2[first] * g[first];
      sum1[first] += g[first] * x[first];
      sum1[second] += g[second] * x[second];
      sum2[first] -= g[first] * x[second];
      sum2[second] += g[second] * x[first];
    }
  }
  void Add(RotaryMode mode) { mode == RotaryMode::kHalf ? Add(0, length / 2, 1) : Add(0, 1, 2); }
};

// All three in one pass over x, where both factors have one shape whose rows are whole and several.
std::array<Array, 3> GradsOfAlikeFactors(const Operand& grad, const RotaryCall& call) {
  const RowsOfFactor rows(call.r1, call.x.shape);
  const size_t length = call.x.last();
  std::array<Array, 3> out = {Array(call.x.dtype, call.x.shape),
                              Array(call.r1.dtype, call.r1.shape),
                              Array(call.r2.dtype, call.r2.shape)};
  ForRanges(rows.factor_rows(), rows.rows_of_each() * length, [&](size_t begin, size_t end) {
    GradRow one(length);
    for (size_t r = begin; r < end; ++r) {
      Read(call.r1, r * length, length, one.r1.data());
      Read(call.r2, r * length, length, one.r2.data());
      std::ranges::fill(one.sum1, 0);
      std::ranges::fill(one.sum2, 0);
      for (size_t i = 0; i < rows.rows_of_each(); ++i) {
        const size_t row = rows.Row(r, i);
        Read(grad, row * length, length, one.grad.data());
        Read(call.x, row * length, length, one.x.data());
        one.Add(call.mode);
        Write(out[0], row * length, length, one.dx.data());
      }
      Write(out[1], r * length, length, one.sum1.data());
      Write(out[2], r * length, length, one.sum2.data());
    }
  });
  return out;
}

}  // namespace

Result<Array> RotaryMul(const Operand& x, const Operand& r1, const Operand& r2, RotaryMode mode) {
  PL_TRY(CheckRotary({x, r1, r2, mode}));
  const Broadcast first(r1, x.shape), second(r2, x.shape);
  const size_t length = x.last();
  Array y(x.dtype, x.shape);
  ForRanges(RowCount(x), length, [&](size_t begin, size_t end) {
    std::vector<double> row(length), factor(length), turned(length);
    for (size_t r = begin; r < end; ++r) {
      Read(x, r * length, length, row.data());
      Rotate(row, mode, turned);
      first.ReadRow(r, length, factor.data());
      for (size_t i = 0; i < length; ++i) row[i] *= factor[i];
      second.ReadRow(r, length, factor.data());
      for (size_t i = 0; i < length; ++i) row[i] += factor[i] * turned[i];
      Write(y, r * length, length, row.data());
    }
  });
  return y;
}

Result<std::array<Array, 3>> RotaryMulGrad(const Operand& grad, const RotaryCall& call) {
  PL_TRY(CheckRotary(call));
  PL_TRY(CheckFloating("grad", grad));
  PL_TRY(CheckShape("grad", grad, call.x.shape));
  const bool is_alike = call.r1.shape == call.r2.shape && call.r1.last() == call.x.last() &&
                        RowsOfFactor(call.r1, call.x.shape).factor_rows() > 1;
  if (is_alike) return GradsOfAlikeFactors(grad, call);
  return std::array<Array, 3>{InputGrad(grad, call), FactorGrad(grad, call, call.r1, false),
                              FactorGrad(grad, call, call.r2, true)};
}

}  // namespace plumbline::precheck::reference
