#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "precheck/reference/fused_operators.h"

namespace plumbline::precheck::reference {
namespace {

// x as rows of the elements that are normalised together.
struct Rows {
  size_t count = 0, length = 0;
};

// The trailing dimensions of `shape` that `tail` is; nothing if it is not.
std::optional<Rows> RowsOf(const Shape& shape, const Shape& tail) {
  if (tail.empty() || tail.size() > shape.size()) return std::nullopt;
  // The rest in front of it are the rows.
  const auto from = shape.end() - static_cast<std::ptrdiff_t>(tail.size());
  if (!std::equal(tail.begin(), tail.end(), from)) return std::nullopt;
  return Rows{CountOf(Shape(shape.begin(), from)), CountOf(tail)};
}

Error NotTrailing(std::string_view argument, const Shape& tail, const Shape& shape) {
  return BadArgument(argument, fmt::format("{} is not the end of the input's shape {}",
                                           ShapeText(tail), ShapeText(shape)));
}

// The products go through memory so that Sum() can add them in pairs.
double DotOf(const double* x, const double* y, std::vector<double>& scratch) {
  for (size_t i = 0; i < scratch.size(); ++i) scratch[i] = x[i] * y[i];
  return Sum(scratch.data(), scratch.size());
}

// Mean and 1 / deviation of a row, which becomes (x - mean) rstd.
struct Statistics {
  double mean, rstd;
};
Statistics Normalise(std::vector<double>& row, double epsilon, std::vector<double>& scratch) {
  const auto n = static_cast<double>(row.size());
  const double mean = Sum(row.data(), row.size()) / n;
  // In two passes: the variance of deviations loses no digits where the mean is large.
  for (double& x : row) x -= mean;
  const double rstd = 1 / std::sqrt(DotOf(row.data(), row.data(), scratch) / n + epsilon);
  for (double& x : row) x *= rstd;
  return {mean, rstd};
}

// The gradient of a normalised row becomes that of its input: rstd (g - mean(g) - x mean(g x)).
void NormaliseGrad(std::vector<double>& grad, const std::vector<double>& normalised, double rstd,
                   std::vector<double>& scratch) {
  const auto n = static_cast<double>(grad.size());
  const double mean = Sum(grad.data(), grad.size()) / n;
  const double slope = DotOf(grad.data(), normalised.data(), scratch) / n;
  for (size_t i = 0; i < grad.size(); ++i) {
    grad[i] = rstd * (grad[i] - mean - normalised[i] * slope);
  }
}

// A weight or bias, or what stands for none.
std::vector<double> ValuesOf(const OptionalOperand& operand, size_t count, double absent) {
  std::vector<double> values(count, absent);
  if (operand) Read(*operand, 0, count, values.data());
  return values;
}

Array ArrayOf(DType dtype, const Shape& shape, const double* values) {
  Array array(dtype, shape);
  Write(array, 0, array.count(), values);
  return array;
}

Status CheckAffine(const OptionalOperand& weight, const OptionalOperand& bias, const Shape& shape) {
  if (weight) {
    PL_TRY(CheckFloating("weight", *weight));
    PL_TRY(CheckShape("weight", *weight, shape));
  }
  if (!bias) return {};
  PL_TRY(CheckFloating("bias", *bias));
  return CheckShape("bias", *bias, shape);
}

Result<Rows> RmsRows(const Operand& x, const Operand& gamma) {
  PL_TRY(CheckFloating("self", x));
  PL_TRY(CheckFloating("gamma", gamma));
  const std::optional<Rows> rows = RowsOf(x.shape, gamma.shape);
  if (!rows) return NotTrailing("gamma", gamma.shape, x.shape);
  return *rows;
}

Shape ReducedShape(const Shape& shape, size_t reduced) {
  Shape out = shape;
  std::fill(out.end() - static_cast<std::ptrdiff_t>(reduced), out.end(), 1);
  return out;
}

Result<Rows> LayerRows(const LayerNormCall& call) {
  PL_TRY(CheckFloating("input", call.input));
  PL_TRY(CheckAffine(call.weight, call.bias, call.normalized_shape));
  const std::optional<Rows> rows = RowsOf(call.input.shape, call.normalized_shape);
  if (!rows) return NotTrailing("normalized_shape", call.normalized_shape, call.input.shape);
  return *rows;
}

// (N, C, ...) as rows of one group of one sample.
struct Groups {
  Rows rows;
  size_t channels = 0;  // of a group
  size_t inner = 0;     // elements of a channel
  size_t group = 0;     // groups of a sample

  // Channel of element `i` of a row.
  [[nodiscard]] size_t Channel(size_t row, size_t i) const {
    return row % group * channels + i / inner;
  }
};
Result<Groups> GroupsOf(const GroupNormCall& call) {
  PL_TRY(CheckFloating("input", call.input));
  const Shape& shape = call.input.shape;
  if (shape.size() < 2 || shape.size() > 8) {
    return BadArgument("input", fmt::format("has {} dimensions (expected 2 to 8)", shape.size()));
  }
  if (call.group < 1 || shape[1] % call.group != 0) {
    return BadArgument(
        "group", fmt::format("{} does not divide the {} channels of input", call.group, shape[1]));
  }
  PL_TRY(CheckAffine(call.weight, call.bias, {shape[1]}));
  Groups groups;
  groups.group = static_cast<size_t>(call.group);
  groups.channels = static_cast<size_t>(shape[1]) / groups.group;
  // Without further dimensions a channel is one element.
  groups.inner = CountOf(Shape(shape.begin() + 2, shape.end()));
  groups.rows = {static_cast<size_t>(shape[0]) * groups.group, groups.channels * groups.inner};
  return groups;
}

}  // namespace

Result<RmsNormResult> RmsNorm(const Operand& x, const Operand& gamma, double epsilon,
                              std::optional<DType> recorded) {
  PL_TRY_ASSIGN(const Rows rows, RmsRows(x, gamma));
  const bool rounds = NarrowType(recorded, x).has_value();
  // What the device keeps for the backward is float32 at least.
  const DType wide = x.dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  RmsNormResult out{Array(x.dtype, x.shape),
                    Array(wide, ReducedShape(x.shape, gamma.shape.size()))};
  const std::vector<double> weights = ValuesOf(gamma, rows.length, 1);
  ForRanges(rows.count, rows.length, [&](size_t begin, size_t end) {
    std::vector<double> row(rows.length), scratch(rows.length);
    for (size_t r = begin; r < end; ++r) {
      Read(x, r * rows.length, rows.length, row.data());
      const double mean = DotOf(row.data(), row.data(), scratch) / static_cast<double>(rows.length);
      double rstd = 1 / std::sqrt(mean + epsilon);
      if (rounds) rstd = RoundTo(DType::kFloat32, rstd);
      Write(out.rstd, r, 1, &rstd);
      for (size_t i = 0; i < rows.length; ++i) row[i] = row[i] * rstd * weights[i];
      Write(out.y, r * rows.length, rows.length, row.data());
    }
  });
  return out;
}

Result<std::array<Array, 2>> RmsNormGrad(const Operand& grad, const Operand& x,
                                         const Operand& gamma, const Operand& rstd) {
  PL_TRY_ASSIGN(const Rows rows, RmsRows(x, gamma));
  PL_TRY(CheckFloating("grad", grad));
  PL_TRY(CheckShape("grad", grad, x.shape));
  PL_TRY(CheckFloating("rstd", rstd));
  if (rstd.count() != rows.count) {
    return BadArgument("rstd", fmt::format("has {} elements (expected one of each of the {} rows)",
                                           rstd.count(), rows.count));
  }
  // dx = (g gamma - x rstd c) rstd with c = mean(g x gamma rstd); dgamma sums g x rstd over rows.
  Array dx(x.dtype, x.shape);
  const std::vector<double> weights = ValuesOf(gamma, rows.length, 1);
  const std::vector<double> sums =
      SumRanges(rows.count, rows.length, [&](size_t begin, size_t end, double* dgamma) {
        std::vector<double> g(rows.length), v(rows.length), scratch(rows.length);
        for (size_t r = begin; r < end; ++r) {
          double inverse = 0;
          Read(rstd, r, 1, &inverse);
          Read(grad, r * rows.length, rows.length, g.data());
          Read(x, r * rows.length, rows.length, v.data());
          for (size_t i = 0; i < rows.length; ++i) {
            v[i] *= inverse;  // the normalised x from here on
            dgamma[i] += g[i] * v[i];
            g[i] *= weights[i];
          }
          const double c = DotOf(g.data(), v.data(), scratch) / static_cast<double>(rows.length);
          for (size_t i = 0; i < rows.length; ++i) g[i] = (g[i] - v[i] * c) * inverse;
          Write(dx, r * rows.length, rows.length, g.data());
        }
      });
  return std::array<Array, 2>{std::move(dx), ArrayOf(gamma.dtype, gamma.shape, sums.data())};
}

Result<Array> LayerNorm(const LayerNormCall& call) {
  PL_TRY_ASSIGN(const Rows rows, LayerRows(call));
  const std::vector<double> weight = ValuesOf(call.weight, rows.length, 1);
  const std::vector<double> bias = ValuesOf(call.bias, rows.length, 0);
  Array y(call.input.dtype, call.input.shape);
  ForRanges(rows.count, rows.length, [&](size_t begin, size_t end) {
    std::vector<double> row(rows.length), scratch(rows.length);
    for (size_t r = begin; r < end; ++r) {
      Read(call.input, r * rows.length, rows.length, row.data());
      Normalise(row, call.epsilon, scratch);
      for (size_t i = 0; i < rows.length; ++i) row[i] = row[i] * weight[i] + bias[i];
      Write(y, r * rows.length, rows.length, row.data());
    }
  });
  return y;
}

Result<std::array<Array, 3>> LayerNormGrad(const Operand& grad, const LayerNormCall& call) {
  PL_TRY_ASSIGN(const Rows rows, LayerRows(call));
  PL_TRY(CheckFloating("grad", grad));
  PL_TRY(CheckShape("grad", grad, call.input.shape));
  const std::vector<double> weight = ValuesOf(call.weight, rows.length, 1);
  Array dx(call.input.dtype, call.input.shape);
  const std::vector<double> sums =
      SumRanges(rows.count, 2 * rows.length, [&](size_t begin, size_t end, double* affine) {
        std::vector<double> row(rows.length), g(rows.length), scratch(rows.length);
        for (size_t r = begin; r < end; ++r) {
          Read(call.input, r * rows.length, rows.length, row.data());
          Read(grad, r * rows.length, rows.length, g.data());
          const double rstd = Normalise(row, call.epsilon, scratch).rstd;
          for (size_t i = 0; i < rows.length; ++i) {
            affine[i] += g[i] * row[i];
            affine[rows.length + i] += g[i];
            g[i] *= weight[i];
          }
          NormaliseGrad(g, row, rstd, scratch);
          Write(dx, r * rows.length, rows.length, g.data());
        }
      });
  // Both halves of the sums: weight, then bias.
  const DType weight_type = call.weight ? call.weight->dtype : call.input.dtype;
  const DType bias_type = call.bias ? call.bias->dtype : call.input.dtype;
  return std::array<Array, 3>{std::move(dx),
                              ArrayOf(weight_type, call.normalized_shape, sums.data()),
                              ArrayOf(bias_type, call.normalized_shape, sums.data() + rows.length)};
}

Result<std::array<Array, 3>> GroupNormSilu(const GroupNormCall& call) {
  PL_TRY_ASSIGN(const Groups groups, GroupsOf(call));
  const size_t length = groups.rows.length, all_channels = groups.channels * groups.group;
  const std::vector<double> weight = ValuesOf(call.weight, all_channels, 1);
  const std::vector<double> bias = ValuesOf(call.bias, all_channels, 0);
  const DType dtype = call.input.dtype;
  const Shape small{call.input.shape[0], call.group};
  // A row is one group of one sample, contiguous in (N, C, ...).
  std::array<Array, 3> out = {Array(dtype, call.input.shape), Array(dtype, small),
                              Array(dtype, small)};
  ForRanges(groups.rows.count, length, [&](size_t begin, size_t end) {
    std::vector<double> row(length), scratch(length);
    for (size_t r = begin; r < end; ++r) {
      Read(call.input, r * length, length, row.data());
      const Statistics statistics = Normalise(row, call.epsilon, scratch);
      for (size_t i = 0; i < length; ++i) {
        const size_t channel = groups.Channel(r, i);
        const double h = row[i] * weight[channel] + bias[channel];
        row[i] = h / (1 + std::exp(-h));
      }
      Write(out[0], r * length, length, row.data());
      Write(out[1], r, 1, &statistics.mean);
      Write(out[2], r, 1, &statistics.rstd);
    }
  });
  return out;
}

Result<std::array<Array, 3>> GroupNormSiluGrad(const Operand& grad, const GroupNormCall& call) {
  PL_TRY_ASSIGN(const Groups groups, GroupsOf(call));
  PL_TRY(CheckFloating("grad", grad));
  PL_TRY(CheckShape("grad", grad, call.input.shape));
  const size_t length = groups.rows.length, all_channels = groups.channels * groups.group;
  const std::vector<double> weight = ValuesOf(call.weight, all_channels, 1);
  const std::vector<double> bias = ValuesOf(call.bias, all_channels, 0);
  Array dx(call.input.dtype, call.input.shape);
  const auto add_rows = [&](size_t begin, size_t end, double* affine) {
    std::vector<double> row(length), g(length), scratch(length);
    for (size_t r = begin; r < end; ++r) {
      Read(call.input, r * length, length, row.data());
      Read(grad, r * length, length, g.data());
      const double rstd = Normalise(row, call.epsilon, scratch).rstd;
      for (size_t i = 0; i < length; ++i) {
        const size_t channel = groups.Channel(r, i);
        const double h = row[i] * weight[channel] + bias[channel];
        const double s = 1 / (1 + std::exp(-h));
        // d(h sigmoid(h)) / dh.
        const double dh = g[i] * s * (1 + h * (1 - s));
        affine[channel] += dh * row[i];
        affine[all_channels + channel] += dh;
        g[i] = dh * weight[channel];
      }
      NormaliseGrad(g, row, rstd, scratch);
      Write(dx, r * length, length, g.data());
    }
  };
  const std::vector<double> sums = SumRanges(groups.rows.count, 2 * all_channels, add_rows);
  const Shape channel_shape{call.input.shape[1]};
  const DType weight_type = call.weight ? call.weight->dtype : call.input.dtype;
  const DType bias_type = call.bias ? call.bias->dtype : call.input.dtype;
  return std::array<Array, 3>{std::move(dx), ArrayOf(weight_type, channel_shape, sums.data()),
                              ArrayOf(bias_type, channel_shape, sums.data() + all_channels)};
}

}  // namespace plumbline::precheck::reference
