// Products of matrices of any floating type in double, for the reference functions.

#ifndef PLUMBLINE_PRECHECK_REFERENCE_MATRIX_PRODUCT_H_
#define PLUMBLINE_PRECHECK_REFERENCE_MATRIX_PRODUCT_H_

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "precheck/reference/array.h"

namespace plumbline::precheck::reference {

// A matrix within an operand: element (i, k) is the operand's element
// first + i * row_stride + k * column_stride. Borrows.
struct MatrixView {
  DType dtype = DType::kFloat32;
  const std::byte* data = nullptr;
  size_t first = 0, row_stride = 0, column_stride = 1;

  [[nodiscard]] MatrixView Transposed() const {
    return {dtype, data, first, column_stride, row_stride};
  }
};

// `rows` x `columns` elements as doubles, row after row, `out_stride` apart.
void Gather(const MatrixView& from, size_t rows, size_t columns, double* out, size_t out_stride);
// The right factor of kernels/panel_product.h: its rows are the `depth`.
void GatherPanels(const MatrixView& from, size_t depth, size_t columns, double* panels);

// out[i] = sum over terms of left right, for each i a matrix of rows x columns. One rounding per
// element. Parallel over tiles of the results.
struct ProductShape {
  size_t rows = 0, depth = 0, columns = 0;
  const double* start = nullptr;  // what the sums of each column begin with, if not with 0
};
using ProductTerms = std::vector<std::pair<MatrixView, MatrixView>>;
void SumProducts(const ProductShape& shape, std::span<const ProductTerms> terms, Array& out);

}  // namespace plumbline::precheck::reference

#endif  // PLUMBLINE_PRECHECK_REFERENCE_MATRIX_PRODUCT_H_
