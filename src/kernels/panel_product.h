// Products of matrices of doubles, the right factor cut into panels of few columns.

#ifndef PLUMBLINE_KERNELS_PANEL_PRODUCT_H_
#define PLUMBLINE_KERNELS_PANEL_PRODUCT_H_

#include <cstddef>

namespace plumbline::kernels {

inline constexpr size_t kPanelColumns = 8;
// Of so many columns; the last panel may have some that are none.
constexpr size_t PanelCount(size_t columns) { return (columns + kPanelColumns - 1) / kPanelColumns; }
// Terms of one sum that are added in a register before they go to C.
inline constexpr size_t kPanelDepth = 256;

// C += A B. Element (i, k) of A is a[i * a_row_stride + k * a_depth_stride]; panel p of B holds,
// for each k below `depth`, its columns 8 p to 8 p + 7; row i of C begins at c[i * c_stride] and has
// 8 panel_count columns. Each element of C is the sum, in order, of partial sums over kPanelDepth
// terms: bit-identical on every CPU target, however rows are cut into calls.
struct PanelProduct {
  const double* a;
  size_t a_row_stride, a_depth_stride;
  size_t rows, depth;
  const double* panels;
  size_t panel_count;
  double* c;
  size_t c_stride;
};

}  // namespace plumbline::kernels

#endif  // PLUMBLINE_KERNELS_PANEL_PRODUCT_H_
