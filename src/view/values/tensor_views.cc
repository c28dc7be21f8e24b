#include "view/values/tensor_views.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "base/process/parallel.h"

namespace plumbline::view {

int64_t ShareBegin(int64_t count, size_t parts, size_t k) {
  const auto all = static_cast<int64_t>(parts), at = static_cast<int64_t>(k);
  return count / all * at + count % all * at / all;
}

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Some rows and columns of a plane, which is a tensor of two dimensions in the same memory.
struct Window {
  std::array<int64_t, 2> sizes, strides;
  TensorView view;

  Window(const TensorView& tensor, const Plane& plane, IndexRange rows, IndexRange columns)
      : sizes{rows.size(), columns.size()}, strides{0, 0} {
    int64_t offset = 0;
    for (size_t d = 0; d < tensor.sizes.size(); ++d) {
      int64_t index = plane.at[d];
      if (d == plane.row_axis) index = rows.begin;
      if (d == plane.column_axis) index = columns.begin;
      offset += index * tensor.strides[d];
    }
    if (plane.row_axis) strides[0] = tensor.strides[*plane.row_axis];
    if (plane.column_axis) strides[1] = tensor.strides[*plane.column_axis];
    view = {tensor.dtype, tensor.data + offset * InfoOf(tensor.dtype).size_bytes, sizes, strides};
  }
};

// Reads values of one side, or differences, of a window.
class WindowReader {
 public:
  WindowReader(const ValueSides& sides, PlaneSide side, const Plane& plane, IndexRange rows,
               IndexRange columns)
      : target_(side == PlaneSide::kGolden ? *sides.golden : *sides.target, plane, rows, columns) {
    if (side == PlaneSide::kDifference) {
      golden_ = std::make_unique<Window>(*sides.golden, plane, rows, columns);
      pair_ = std::make_unique<PairReader>(target_.view, golden_->view);
    }
  }
  [[nodiscard]] size_t elements() const {
    return static_cast<size_t>(target_.view.element_count());
  }
  void Read(size_t first, size_t count, double* out) const {
    if (pair_ == nullptr) return ElementReader(target_.view).Read(first, count, out);
    std::array<double, kRunElements> target, golden;
    pair_->Read(first, count, target.data(), golden.data(), out);
  }

 private:
  Window target_;
  std::unique_ptr<Window> golden_;
  std::unique_ptr<PairReader> pair_;
};

// The cell of a picture that pools what is added to it.
class Cell {
 public:
  void Add(double value, bool is_difference) {
    if (!is_difference) {
      sum_ += value;
      ++count_;
    } else if (std::isnan(value) || std::fabs(value) > std::fabs(sum_)) {
      sum_ = value;  // NaN stays: nothing compares as larger
    }
  }
  [[nodiscard]] double value(bool is_difference) const {
    return is_difference || count_ == 0 ? sum_ : sum_ / static_cast<double>(count_);
  }

 private:
  double sum_ = 0;
  uint64_t count_ = 0;
};

class PlanePool {
 public:
  PlanePool(const ValueSides& sides, PlaneSide side, const Plane& plane, CancelFlag cancel)
      : sides_(sides), side_(side), plane_(plane), cancel_(cancel) {}

  PooledPlane Run() {
    PooledPlane pooled;
    pooled.height = std::min(plane_.height, static_cast<size_t>(plane_.rows.size()));
    pooled.width = std::min(plane_.width, static_cast<size_t>(plane_.columns.size()));
    pooled.is_exact = pooled.height == static_cast<size_t>(plane_.rows.size()) &&
                      pooled.width == static_cast<size_t>(plane_.columns.size());
    pooled.cells.resize(pooled.height * pooled.width);
    // Few rows of cells are split further, so that all threads have work.
    constexpr size_t kMostSplits = 16;
    const size_t splits =
        pooled.height >= kMostSplits ? 1 : std::min(pooled.width, kMostSplits / pooled.height);
    ParallelFor(pooled.height * splits, [&](size_t job) {
      const size_t row = job / splits, split = job % splits;
      const size_t begin = pooled.width * split / splits;
      FillCells(pooled, row, begin, pooled.width * (split + 1) / splits);
    });
    return pooled;
  }

 private:
  [[nodiscard]] int64_t ColumnOf(const PooledPlane& pooled, size_t cell) const {
    return plane_.columns.begin + ShareBegin(plane_.columns.size(), pooled.width, cell);
  }

  // Cells `begin` to `end` of one row of them.
  void FillCells(PooledPlane& pooled, size_t row, size_t begin, size_t end) const {
    const IndexRange rows{
        plane_.rows.begin + ShareBegin(plane_.rows.size(), pooled.height, row),
        plane_.rows.begin + ShareBegin(plane_.rows.size(), pooled.height, row + 1)};
    const IndexRange columns{ColumnOf(pooled, begin), ColumnOf(pooled, end)};
    const WindowReader reader(sides_, side_, plane_, rows, columns);
    std::vector<Cell> cells(end - begin);
    const bool is_difference = side_ == PlaneSide::kDifference;
    std::array<double, kRunElements> values;
    int64_t column = columns.begin;
    size_t cell = 0;
    int64_t next = ColumnOf(pooled, begin + 1);
    ForRuns({0, 0, reader.elements()}, cancel_, [&](size_t first, size_t count) {
      reader.Read(first, count, values.data());
      for (size_t i = 0; i < count; ++i) {
        if (column == columns.end) {
          column = columns.begin;
          cell = 0;
          next = ColumnOf(pooled, begin + 1);
        }
        if (column == next) next = ColumnOf(pooled, begin + ++cell + 1);
        cells[cell].Add(values[i], is_difference);
        ++column;
      }
    });
    for (size_t k = 0; k < cells.size(); ++k) {
      pooled.cells[row * pooled.width + begin + k] = cells[k].value(is_difference);
    }
  }

  const ValueSides& sides_;
  PlaneSide side_;
  const Plane& plane_;
  CancelFlag cancel_;
};

}  // namespace

Result<PooledPlane> PoolPlane(const ValueSides& sides, PlaneSide side, const Plane& plane,
                              CancelFlag cancel) {
  PooledPlane pooled = PlanePool(sides, side, plane, cancel).Run();
  if (IsSet(cancel)) return CancelledError();
  return pooled;
}

namespace {

// Reads both sides, or one; a missing side is 0 throughout, and so is the difference.
class SidesReader {
 public:
  explicit SidesReader(const ValueSides& sides) {
    if (sides.has_both()) {
      pair_ = std::make_unique<PairReader>(*sides.target, *sides.golden);
    } else {
      one_ = std::make_unique<ElementReader>(sides.any());
      is_target_ = sides.target != nullptr;
    }
  }

  struct Run {
    std::array<double, kRunElements> target{}, golden{}, difference{};
  };
  void Read(size_t first, size_t count, Run& run) const {
    if (pair_ != nullptr) {
      pair_->Read(first, count, run.target.data(), run.golden.data(), run.difference.data());
    } else {
      one_->Read(first, count, is_target_ ? run.target.data() : run.golden.data());
    }
  }

 private:
  std::unique_ptr<PairReader> pair_;
  std::unique_ptr<ElementReader> one_;
  bool is_target_ = false;
};

// What elements are sorted by; 0 is left out. NaN of one side alone is infinite.
double BadnessOf(double target, double golden, double difference, WorstBy by) {
  if (!std::isfinite(target) || !std::isfinite(golden)) {
    const bool is_same = target == golden || (std::isnan(target) && std::isnan(golden));
    return is_same ? 0 : kInf;
  }
  const double error = std::fabs(difference);
  if (by == WorstBy::kAbsolute || error == 0) return error;
  return error / std::fabs(golden);
}

double MagnitudeOf(double value) { return std::isnan(value) ? kInf : std::fabs(value); }

struct Candidate {
  double badness;
  uint64_t index;
};
bool IsWorse(const Candidate& a, const Candidate& b) {
  return a.badness > b.badness || (a.badness == b.badness && a.index < b.index);
}

// The worst few so far.
class WorstFew {
 public:
  explicit WorstFew(size_t most) : most_(most) {}

  void Add(const Candidate& candidate) {
    if (candidate.badness == 0 || (heap_.size() == most_ && !IsWorse(candidate, heap_.front()))) {
      return;
    }
    if (heap_.size() == most_) {
      std::ranges::pop_heap(heap_, IsWorse);
      heap_.pop_back();
    }
    heap_.push_back(candidate);
    std::ranges::push_heap(heap_, IsWorse);
  }
  [[nodiscard]] const std::vector<Candidate>& heap() const { return heap_; }

 private:
  size_t most_;
  std::vector<Candidate> heap_;  // the best one in front
};

}  // namespace

Result<std::vector<uint64_t>> WorstElements(const ValueSides& sides, WorstBy by, size_t count,
                                            CancelFlag cancel) {
  const auto elements = static_cast<size_t>(sides.any().element_count());
  const SidesReader reader(sides);
  std::vector<WorstFew> parts(WalkParts(elements), WorstFew(count));
  ParallelFor(parts.size(), [&](size_t i) {
    const auto run = std::make_unique<SidesReader::Run>();
    ForRuns(PartOf(elements, i), cancel, [&](size_t first, size_t size) {
      reader.Read(first, size, *run);
      for (size_t k = 0; k < size; ++k) {
        const double target = run->target[k], golden = run->golden[k];
        const double badness = sides.has_both()
                                   ? BadnessOf(target, golden, run->difference[k], by)
                                   : MagnitudeOf(sides.target != nullptr ? target : golden);
        parts[i].Add({badness, first + k});
      }
    });
  });
  if (IsSet(cancel)) return CancelledError();
  std::vector<Candidate> all;
  for (const WorstFew& part : parts) all.insert(all.end(), part.heap().begin(), part.heap().end());
  std::ranges::sort(all, IsWorse);
  std::vector<uint64_t> worst;
  for (size_t k = 0; k < std::min(count, all.size()); ++k) worst.push_back(all[k].index);
  return worst;
}

namespace {

// Means hold sums, and norms sums of squares, until the end.
void AddTo(AxisCell& cell, double target, double golden, double difference) {
  ++cell.elements;
  if (!std::isfinite(target) || !std::isfinite(golden)) {
    ++cell.nonfinite;
    return;
  }
  const double error = std::fabs(difference);
  cell.absolute_max = std::max(cell.absolute_max, error);
  if (error > 0) cell.relative_max = std::max(cell.relative_max, error / std::fabs(golden));
  cell.target_mean += target;
  cell.golden_mean += golden;
  cell.target_norm += target * target;
  cell.golden_norm += golden * golden;
}

void Combine(const std::vector<AxisCell>& part, std::vector<AxisCell>& all) {
  for (size_t k = 0; k < all.size(); ++k) {
    all[k].elements += part[k].elements;
    all[k].nonfinite += part[k].nonfinite;
    all[k].absolute_max = std::max(all[k].absolute_max, part[k].absolute_max);
    all[k].relative_max = std::max(all[k].relative_max, part[k].relative_max);
    all[k].target_mean += part[k].target_mean;
    all[k].golden_mean += part[k].golden_mean;
    all[k].target_norm += part[k].target_norm;
    all[k].golden_norm += part[k].golden_norm;
  }
}

void Finish(AxisCell& cell) {
  const auto count = static_cast<double>(std::max<uint64_t>(cell.elements - cell.nonfinite, 1));
  cell.target_mean /= count;
  cell.golden_mean /= count;
  cell.target_norm = std::sqrt(cell.target_norm);
  cell.golden_norm = std::sqrt(cell.golden_norm);
}

// Follows the index of one axis, and the cell that it falls into, through elements in row-major
// order.
class AxisWalk {
 public:
  // `inner`: how many elements in a row share the index. Requires: none of them is 0.
  AxisWalk(int64_t length, size_t inner, size_t cells, size_t first)
      : length_(length), inner_(inner), cells_(cells), left_(inner - first % inner) {
    index_ = static_cast<int64_t>(first / inner % static_cast<size_t>(length));
    size_t low = 0, high = cells;  // the last cell that begins at or before the index
    while (high - low > 1) {
      const size_t middle = low + (high - low) / 2;
      (ShareBegin(length_, cells_, middle) <= index_ ? low : high) = middle;
    }
    cell_ = low;
    next_ = ShareBegin(length_, cells_, cell_ + 1);
  }
  [[nodiscard]] size_t cell() const { return cell_; }
  void Advance() {
    if (--left_ > 0) return;
    left_ = inner_;
    if (++index_ < next_) return;
    if (index_ == length_) {
      index_ = 0;
      cell_ = 0;
    } else {
      ++cell_;
    }
    next_ = ShareBegin(length_, cells_, cell_ + 1);
  }

 private:
  int64_t length_, index_, next_ = 0;
  size_t inner_, cells_, left_, cell_ = 0;
};

size_t InnerSize(const TensorView& view, size_t axis) {
  size_t inner = 1;
  for (size_t d = axis + 1; d < view.sizes.size(); ++d) inner *= static_cast<size_t>(view.sizes[d]);
  return inner;
}

}  // namespace

Result<std::vector<AxisCell>> ProfileAxis(const ValueSides& sides, size_t axis, size_t cells,
                                          CancelFlag cancel) {
  const TensorView& view = sides.any();
  const auto elements = static_cast<size_t>(view.element_count());
  const int64_t length = view.sizes[axis];
  cells = std::min(cells, static_cast<size_t>(length));
  std::vector<AxisCell> all(cells);
  if (elements == 0) return all;
  const size_t inner = InnerSize(view, axis);
  const SidesReader reader(sides);
  std::vector<std::vector<AxisCell>> parts(WalkParts(elements), all);
  ParallelFor(parts.size(), [&](size_t i) {
    const WalkPart part = PartOf(elements, i);
    const auto run = std::make_unique<SidesReader::Run>();
    AxisWalk walk(length, inner, cells, part.first);
    ForRuns(part, cancel, [&](size_t first, size_t size) {
      reader.Read(first, size, *run);
      for (size_t k = 0; k < size; ++k) {
        AddTo(parts[i][walk.cell()], run->target[k], run->golden[k], run->difference[k]);
        walk.Advance();
      }
    });
  });
  if (IsSet(cancel)) return CancelledError();
  for (const std::vector<AxisCell>& part : parts) Combine(part, all);
  for (AxisCell& cell : all) Finish(cell);
  return all;
}

}  // namespace plumbline::view
