#include "precheck/reference/matrix_product.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/process/parallel.h"
#include "kernels/kernel_table.h"
#include "kernels/panel_product.h"
#include "precheck/reference/fused_operators.h"

namespace plumbline::precheck::reference {
namespace {

using kernels::kPanelColumns;
using kernels::PanelCount;
using kernels::kPanelDepth;

// Rows and columns of a result that one thread computes; with its factors it stays in the L2 cache.
constexpr size_t kTile = 128;

template <class T>
void GatherAs(const MatrixView& from, size_t rows, size_t columns, double* out, size_t out_stride) {
  const auto* const values = reinterpret_cast<const T*>(from.data) + from.first;
  for (size_t i = 0; i < rows; ++i) {
    const T* const row = values + i * from.row_stride;
    double* const to = out + i * out_stride;
    for (size_t k = 0; k < columns; ++k) to[k] = static_cast<double>(row[k * from.column_stride]);
  }
}

// A tile of one result: sums over terms and over pieces of the depth.
class TileSum {
 public:
  TileSum(const ProductShape& shape, size_t first_row, size_t first_column)
      : shape_(shape),
        first_row_(first_row),
        first_column_(first_column),
        rows_(std::min(kTile, shape.rows - first_row)),
        columns_(std::min(kTile, shape.columns - first_column)),
        stride_(PanelCount(columns_) * kPanelColumns),
        sums_(rows_ * stride_) {
    if (!shape.start) return;
    for (size_t i = 0; i < rows_; ++i) {
      std::copy_n(shape.start + first_column_, columns_, sums_.data() + i * stride_);
    }
  }

  // Pieces of kPanelDepth terms: factors fit the cache, and sums of sums lose fewer digits.
  void Add(const MatrixView& left, const MatrixView& right, std::vector<double>& a,
           std::vector<double>& b) {
    for (size_t k = 0; k < shape_.depth; k += kPanelDepth) {
      const size_t depth = std::min(kPanelDepth, shape_.depth - k);
      MatrixView part = left;
      part.first += first_row_ * left.row_stride + k * left.column_stride;
      a.resize(rows_ * depth);
      Gather(part, rows_, depth, a.data(), depth);
      part = right;
      part.first += k * right.row_stride + first_column_ * right.column_stride;
      b.resize(depth * stride_);
      GatherPanels(part, depth, columns_, b.data());
      kernels::ActiveTable().multiply_panels({a.data(), depth, 1, rows_, depth, b.data(),
                                              PanelCount(columns_), sums_.data(), stride_});
    }
  }
  void Store(Array& out, size_t first) const {
    for (size_t i = 0; i < rows_; ++i) {
      Write(out, first + (first_row_ + i) * shape_.columns + first_column_, columns_,
            sums_.data() + i * stride_);
    }
  }

 private:
  const ProductShape shape_;
  size_t first_row_, first_column_, rows_, columns_, stride_;
  std::vector<double> sums_;
};

MatrixView ViewOf(const Operand& x, size_t first, size_t columns) {
  return {x.dtype, x.data, first, columns, 1};
}

// An operand of matmul as batches of matrices; vectors are matrices of one row or column.
struct Batches {
  Operand operand;
  Shape batch;
  size_t rows = 0, columns = 0;

  [[nodiscard]] size_t count() const { return CountOf(batch); }
  [[nodiscard]] MatrixView At(size_t i) const {
    return ViewOf(operand, i * rows * columns, columns);
  }
};

Batches BatchesOf(const Operand& operand, bool is_left) {
  const Shape& shape = operand.shape;
  if (shape.size() == 1) {
    const size_t length = operand.last();
    return {operand, {}, is_left ? 1 : length, is_left ? length : 1};
  }
  return {operand, Shape(shape.begin(), shape.end() - 2),
          static_cast<size_t>(shape[shape.size() - 2]), operand.last()};
}

// The three tensors of a product, and which batches of self and other meet in each of grad.
struct Matmul {
  Batches self, other, grad;
  std::vector<size_t> self_of, other_of;
};

// Sizes of both, broadcast; nothing if they do not fit.
std::optional<Shape> Joined(const Shape& a, const Shape& b) {
  Shape joined(std::max(a.size(), b.size()), 1);
  for (size_t i = 1; i <= joined.size(); ++i) {
    // Absent dimensions in front count as 1.
    const int64_t x = i <= a.size() ? a[a.size() - i] : 1;
    const int64_t y = i <= b.size() ? b[b.size() - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    joined[joined.size() - i] = x == 1 ? y : x;
  }
  return joined;
}

std::vector<size_t> BatchIndices(const Shape& own, const Shape& joined) {
  Shape rows = joined;
  // Broadcast counts rows, all dimensions but the last: so there must be one more.
  rows.push_back(1);
  Shape shape = own;
  shape.push_back(1);
  const Operand place{DType::kFloat32, nullptr, shape};
  const Broadcast broadcast(place, rows);
  std::vector<size_t> indices(CountOf(joined));
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = broadcast.Start(i);
  return indices;
}

Result<Matmul> MatmulOf(const Operand& grad, const Operand& self, const Operand& other) {
  for (const auto& [name, operand] :
       {std::pair{"grad", &grad}, std::pair{"self", &self}, std::pair{"other", &other}}) {
    PL_TRY(CheckFloating(name, *operand));
    if (operand != &grad && operand->shape.empty()) return BadArgument(name, "is a scalar");
  }
  Matmul matmul{BatchesOf(self, true), BatchesOf(other, false), {}, {}, {}};
  const std::optional<Shape> batch = Joined(matmul.self.batch, matmul.other.batch);
  if (!batch || matmul.self.columns != matmul.other.rows) {
    return BadArgument("other", fmt::format("shape {} cannot be multiplied with {}",
                                            ShapeText(other.shape), ShapeText(self.shape)));
  }
  // Vectors have no row or no column in the product.
  Shape product = *batch;
  if (self.shape.size() > 1) product.push_back(static_cast<int64_t>(matmul.self.rows));
  if (other.shape.size() > 1) product.push_back(static_cast<int64_t>(matmul.other.columns));
  PL_TRY(CheckShape("grad", grad, product));
  matmul.grad = {grad, *batch, matmul.self.rows, matmul.other.columns};
  if (matmul.other.count() == 1 && matmul.self.count() == matmul.grad.count()) {
    // One right factor for all: its gradient is one product over all rows.
    for (Batches* const side : {&matmul.self, &matmul.grad}) {
      side->rows *= side->count();
      side->batch.clear();
    }
    matmul.other.batch.clear();
  }
  matmul.self_of = BatchIndices(matmul.self.batch, matmul.grad.batch);
  matmul.other_of = BatchIndices(matmul.other.batch, matmul.grad.batch);
  return matmul;
}

}  // namespace

void Gather(const MatrixView& from, size_t rows, size_t columns, double* out, size_t out_stride) {
  if (from.dtype == DType::kFloat64) return GatherAs<double>(from, rows, columns, out, out_stride);
  if (from.dtype == DType::kFloat32) return GatherAs<float>(from, rows, columns, out, out_stride);
  // 16-bit factors are rare (calls that were not raised) and taken one by one.
  const Operand all{from.dtype, from.data, {}};
  for (size_t i = 0; i < rows; ++i) {
    for (size_t k = 0; k < columns; ++k) {
      Read(all, from.first + i * from.row_stride + k * from.column_stride, 1,
           out + i * out_stride + k);
    }
  }
}

void GatherPanels(const MatrixView& from, size_t depth, size_t columns, double* panels) {
  for (size_t first = 0; first < columns; first += kPanelColumns) {
    const size_t width = std::min(kPanelColumns, columns - first);
    double* const panel = panels + first * depth;
    // Beyond the last column: nothing is made of it, but it must be initialised.
    if (width < kPanelColumns) std::fill_n(panel, depth * kPanelColumns, 0.0);
    MatrixView part = from;
    part.first += first * from.column_stride;
    Gather(part, depth, width, panel, kPanelColumns);
  }
}

void SumProducts(const ProductShape& shape, std::span<const ProductTerms> terms, Array& out) {
  const size_t row_tiles = (shape.rows + kTile - 1) / kTile;
  const size_t column_tiles = (shape.columns + kTile - 1) / kTile;
  const size_t tiles = row_tiles * column_tiles;
  const auto compute = [&](size_t begin, size_t end) {
    std::vector<double> a, b;
    for (size_t i = begin; i < end; ++i) {
      const size_t result = i / tiles, tile = i % tiles;
      TileSum sum(shape, tile / column_tiles * kTile, tile % column_tiles * kTile);
      for (const auto& [left, right] : terms[result]) sum.Add(left, right, a, b);
      sum.Store(out, result * shape.rows * shape.columns);
    }
  };
  // A tile is worth a thread when its multiplications are, of which 16 cost as much as an element
  // that is read and written.
  const size_t work = std::min(shape.rows, kTile) * std::min(shape.columns, kTile) *
                      std::max<size_t>(1, shape.depth) / 16;
  ForRanges(tiles * terms.size(), work, compute);
}

Result<Array> Linear(const Operand& input, const Operand& weight, const OptionalOperand& bias) {
  PL_TRY(CheckFloating("input", input));
  PL_TRY(CheckFloating("weight", weight));
  if (weight.shape.size() != 2 || input.shape.empty() || input.shape.back() != weight.shape[1]) {
    return BadArgument("weight", fmt::format("shape {} does not fit an input of shape {}",
                                             ShapeText(weight.shape), ShapeText(input.shape)));
  }
  if (bias) {
    PL_TRY(CheckFloating("bias", *bias));
    PL_TRY(CheckShape("bias", *bias, {weight.shape[0]}));
  }
  Shape shape = input.shape;
  shape.back() = weight.shape[0];
  Array y(input.dtype, shape);
  const size_t depth = input.last(), columns = static_cast<size_t>(weight.shape[0]);
  const size_t rows = CountOf(Shape(shape.begin(), shape.end() - 1));
  std::vector<ProductTerms> terms(1);
  terms[0].push_back({ViewOf(input, 0, depth), ViewOf(weight, 0, depth).Transposed()});
  std::vector<double> start(bias ? columns : 0);
  if (bias) Read(*bias, 0, columns, start.data());
  SumProducts({rows, depth, columns, bias ? start.data() : nullptr}, terms, y);
  return y;
}

Result<LinearGradients> LinearGrad(const Operand& grad, const Operand& input,
                                   const Operand& weight) {
  PL_TRY(CheckFloating("grad", grad));
  PL_TRY(CheckFloating("input", input));
  PL_TRY(CheckFloating("weight", weight));
  if (weight.shape.size() != 2 || input.shape.empty() || input.shape.back() != weight.shape[1]) {
    return BadArgument("weight", fmt::format("shape {} does not fit an input of shape {}",
                                             ShapeText(weight.shape), ShapeText(input.shape)));
  }
  Shape shape = input.shape;
  shape.back() = weight.shape[0];
  PL_TRY(CheckShape("grad", grad, shape));
  const size_t depth = input.last(), columns = static_cast<size_t>(weight.shape[0]);
  const size_t rows = CountOf(Shape(shape.begin(), shape.end() - 1));
  LinearGradients out{Array(input.dtype, input.shape), Array(weight.dtype, weight.shape),
                      Array(weight.dtype, {weight.shape[0]})};
  const MatrixView g = ViewOf(grad, 0, columns);
  const ProductTerms dx = {{g, ViewOf(weight, 0, depth)}};
  SumProducts({rows, columns, depth}, {&dx, 1}, out.input);
  const ProductTerms dw = {{g.Transposed(), ViewOf(input, 0, depth)}};
  SumProducts({columns, rows, depth}, {&dw, 1}, out.weight);
  const std::vector<double> sums =
      SumRanges(rows, columns, [&](size_t begin, size_t end, double* partial) {
        std::vector<double> row(columns);
        for (size_t r = begin; r < end; ++r) {
          Read(grad, r * columns, columns, row.data());
          for (size_t i = 0; i < columns; ++i) partial[i] += row[i];
        }
      });
  Write(out.bias, 0, columns, sums.data());
  return out;
}

Result<std::array<std::optional<Array>, 2>> MatmulGrad(const Operand& grad, const Operand& self,
                                                       const Operand& other,
                                                       std::array<bool, 2> wanted) {
  PL_TRY_ASSIGN(const Matmul matmul, MatmulOf(grad, self, other));
  const Batches& g = matmul.grad;
  std::array<std::optional<Array>, 2> out;
  // dA is G B^T and dB is A^T G, over all batches in which the matrix took part.
  if (wanted[0]) {
    std::vector<ProductTerms> terms(matmul.self.count());
    for (size_t i = 0; i < g.count(); ++i) {
      terms[matmul.self_of[i]].push_back(
          {g.At(i), matmul.other.At(matmul.other_of[i]).Transposed()});
    }
    out[0].emplace(self.dtype, self.shape);
    SumProducts({matmul.self.rows, g.columns, matmul.self.columns}, terms, *out[0]);
  }
  if (wanted[1]) {
    std::vector<ProductTerms> terms(matmul.other.count());
    for (size_t i = 0; i < g.count(); ++i) {
      terms[matmul.other_of[i]].push_back(
          {matmul.self.At(matmul.self_of[i]).Transposed(), g.At(i)});
    }
    out[1].emplace(other.dtype, other.shape);
    SumProducts({matmul.other.rows, g.rows, matmul.other.columns}, terms, *out[1]);
  }
  return out;
}

}  // namespace plumbline::precheck::reference
