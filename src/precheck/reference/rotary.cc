#include <fmt/format.h>

#include <algorithm>

#include "kernels/kernel_table.h"
#include "kernels/rotary_row.h"
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

bool IsSingle(const Operand& x) {
  return x.dtype == DType::kFloat32 && reinterpret_cast<uintptr_t>(x.data) % alignof(float) == 0;
}

// Rows of the factors that are summed side by side: what stands one after the other is read so.
constexpr size_t kFactorRows = 8;

// The gradients of some rows of both factors, and of one row of x after the other. The products are
// those of InputGrad() and FactorGrad(), added in the same order.
class GradRows {
 public:
  GradRows(const Operand& grad, const RotaryCall& call, std::array<Array, 3>& out)
      : grad_(grad),
        call_(call),
        out_(out),
        length_(call.x.last()),
        is_single_(call.mode == RotaryMode::kHalf && IsSingle(grad) && IsSingle(call.x)),
        g_(length_),
        x_(length_),
        dx_(length_) {
    for (std::vector<double>* const block : {&r1_, &r2_, &sum1_, &sum2_}) {
      block->resize(kFactorRows * length_);
    }
  }

  void Begin(size_t factor_row, size_t count) {
    Read(call_.r1, factor_row * length_, count * length_, r1_.data());
    Read(call_.r2, factor_row * length_, count * length_, r2_.data());
    std::ranges::fill(sum1_, 0);
    std::ranges::fill(sum2_, 0);
  }
  // A row of x, which the row `place` of those of Begin() stands for.
  void Add(size_t row, size_t place) {
    if (is_single_) return AddSingle(row * length_, place * length_);
    Read(grad_, row * length_, length_, g_.data());
    Read(call_.x, row * length_, length_, x_.data());
    call_.mode == RotaryMode::kHalf ? AddPairs<1>(place * length_, length_ / 2)
                                    : AddPairs<2>(place * length_, 1);
    Write(out_[0], row * length_, length_, dx_.data());
  }
  void End(size_t factor_row, size_t count) {
    Write(out_[1], factor_row * length_, count * length_, sum1_.data());
    Write(out_[2], factor_row * length_, count * length_, sum2_.data());
  }

 private:
  // As AddPairs<1>(), without copies.
  void AddSingle(size_t first, size_t begin) {
    const auto* const g = reinterpret_cast<const float*>(grad_.data) + first;
    const auto* const x = reinterpret_cast<const float*>(call_.x.data) + first;
    auto* const dx = reinterpret_cast<float*>(out_[0].data()) + first;
    kernels_.add_rotary_row({g, x, r1_.data() + begin, r2_.data() + begin, dx, sum1_.data() + begin,
                             sum2_.data() + begin, length_ / 2});
  }

  // Of elements i and i + `other`, which rot() makes of each other, for i = 0, kStep, ...
  template <size_t kStep>
  void AddPairs(size_t begin, size_t other) {
    const double *const g = g_.data(), *const g_other = g + other;
    const double *const x = x_.data(), *const x_other = x + other;
    const double *const r1 = r1_.data() + begin, *const r1_other = r1 + other;
    const double *const r2 = r2_.data() + begin, *const r2_other = r2 + other;
    double* __restrict const dx = dx_.data();
    double* __restrict const dx_other = dx_.data() + other;
    double* __restrict const sum1 = sum1_.data() + begin;
    double* __restrict const sum1_other = sum1_.data() + begin + other;
    double* __restrict const sum2 = sum2_.data() + begin;
    double* __restrict const sum2_other = sum2_.data() + begin + other;
    for (size_t i = 0; i < length_ / 2 * kStep; i += kStep) {
      dx[i] = r1[i] * g[i] + r2_other[i] * g_other[i];
      dx_other[i] = r1_other[i] * g_other[i] - r2[i] * g[i];
      sum1[i] += g[i] * x[i];
      sum1_other[i] += g_other[i] * x_other[i];
      sum2[i] -= g[i] * x_other[i];
      sum2_other[i] += g_other[i] * x[i];
    }
  }

  const Operand& grad_;
  const RotaryCall& call_;
  std::array<Array, 3>& out_;
  const kernels::KernelTable& kernels_ = kernels::ActiveTable();
  const size_t length_;
  const bool is_single_;  // elements are float32 where they stand, and halves turn
  std::vector<double> g_, x_, dx_, r1_, r2_, sum1_, sum2_;
};

// All three in one pass over x, where both factors have one shape whose rows are whole and several.
std::array<Array, 3> GradsOfAlikeFactors(const Operand& grad, const RotaryCall& call) {
  const RowsOfFactor rows(call.r1, call.x.shape);
  std::array<Array, 3> out = {Array(call.x.dtype, call.x.shape),
                              Array(call.r1.dtype, call.r1.shape),
                              Array(call.r2.dtype, call.r2.shape)};
  ForRanges(rows.factor_rows(), rows.rows_of_each() * call.x.last(), [&](size_t begin, size_t end) {
    GradRows some(grad, call, out);
    for (size_t first = begin; first < end; first += kFactorRows) {
      const size_t count = std::min(kFactorRows, end - first);
      some.Begin(first, count);
      for (size_t i = 0; i < rows.rows_of_each(); ++i) {
        for (size_t k = 0; k < count; ++k) some.Add(rows.Row(first + k, i), k);
      }
      some.End(first, count);
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
