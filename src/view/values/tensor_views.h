// Parts of a tensor, or of the difference of two, as a page shows them: a plane pooled to the cells
// of a picture, the worst elements, and figures along one axis.

#ifndef PLUMBLINE_VIEW_VALUES_TENSOR_VIEWS_H_
#define PLUMBLINE_VIEW_VALUES_TENSOR_VIEWS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plumbline/result.h"
#include "view/values/value_file.h"

namespace plumbline::view {

// What is looked at: one side, or both. Pointers are borrowed; a null side is not there.
struct ValueSides {
  const TensorView* target = nullptr;
  const TensorView* golden = nullptr;

  [[nodiscard]] const TensorView& any() const { return target != nullptr ? *target : *golden; }
  [[nodiscard]] bool has_both() const { return target != nullptr && golden != nullptr; }
};

struct IndexRange {
  int64_t begin = 0, end = 0;
  [[nodiscard]] int64_t size() const { return end - begin; }
};

// A plane of a tensor. Without `row_axis` it has one row, without `column_axis` one element.
struct Plane {
  std::optional<size_t> row_axis, column_axis;
  Shape at;  // an index of every dimension; those of the axes are not looked at
  IndexRange rows{0, 1}, columns{0, 1};
  size_t height = 256, width = 256;  // cells of the picture, at most
};

enum class PlaneSide : uint8_t { kTarget, kGolden, kDifference };

// Cells of equally many rows and columns of the plane, but for one. The mean of the values; of
// differences the one farthest from 0, with its sign. NaN where an element of the cell is NaN.
struct PooledPlane {
  size_t height = 0, width = 0;
  bool is_exact = false;      // a cell is one element
  std::vector<double> cells;  // by rows
};

// Requires: the side is there (both for the difference, of one shape); indices and ranges within
// the shape; no empty range. kNotFound "cancelled".
Result<PooledPlane> PoolPlane(const ValueSides& sides, PlaneSide side, const Plane& plane,
                              CancelFlag cancel);

enum class WorstBy : uint8_t { kAbsolute, kRelative };

// Positions in row-major order of the `count` elements with the largest error, the largest first,
// and of equal ones the first. NaN and infinities that the other side has not come before all;
// pairs that are equal, NaN on both sides among them, are left out. Of one side alone: those with
// the largest magnitude, NaN before all. kNotFound "cancelled".
Result<std::vector<uint64_t>> WorstElements(const ValueSides& sides, WorstBy by, size_t count,
                                            CancelFlag cancel);

// Where the k-th of `parts` equal shares of `count` begins.
int64_t ShareBegin(int64_t count, size_t parts, size_t k);

// Figures of the elements that share an index of one axis, or some neighbouring ones.
struct AxisCell {
  uint64_t elements = 0;
  uint64_t nonfinite = 0;  // elements, or pairs, with NaN or infinity; in no other figure
  double absolute_max = 0, relative_max = 0;  // of the error
  double target_mean = 0, golden_mean = 0;
  double target_norm = 0, golden_norm = 0;
};

// At most `cells` of them; cell k begins at index ShareBegin(length, cells, k). 0 where a side is
// missing. Requires: axis < the number of dimensions. kNotFound "cancelled".
Result<std::vector<AxisCell>> ProfileAxis(const ValueSides& sides, size_t axis, size_t cells,
                                          CancelFlag cancel);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_VALUES_TENSOR_VIEWS_H_
