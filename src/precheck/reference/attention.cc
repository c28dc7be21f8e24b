#include "precheck/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/process/parallel.h"
#include "kernels/kernel_table.h"
#include "kernels/panel_product.h"
#include "precheck/reference/attention_plan.h"
#include "precheck/reference/matrix_product.h"

namespace plumbline::precheck::reference {
namespace {

constexpr double kHiddenScore = -40000;
constexpr size_t kCopies = 8;
// Scores of a tile, 1 MiB: the second-level cache and a share of the third.
constexpr size_t kTileScores = size_t{1} << 17;
constexpr size_t kMinTileRows = 8, kMaxTileRows = 64;
// Into so many pieces the work is cut where there are fewer heads. It must depend on nothing but
// shapes, since each piece of a gradient has partial sums of its own.
constexpr size_t kForwardPieces = 32, kBackwardPieces = 8;

size_t Padded(size_t columns) { return kernels::PanelCount(columns) * kernels::kPanelColumns; }

// C = A B for a tile of rows, or C += where the caller keeps what is there.
void Multiply(const kernels::PanelProduct& product) {
  kernels::ActiveTable().multiply_panels(product);
}

// Consecutive tiles of query rows of all heads that share a key head, in one sequence.
struct Task {
  const Sequence* sequence = nullptr;
  size_t key_head = 0;
  size_t tile_rows = 0;
  size_t first_tile = 0, end_tile = 0;  // tiles of one query head after the other
};

std::vector<Task> TasksOf(const AttentionPlan& plan, size_t pieces) {
  const size_t heads = plan.sequences.size() * plan.key.heads;
  const size_t wanted = (pieces + heads - 1) / std::max<size_t>(1, heads);
  std::vector<Task> tasks;
  for (const Sequence& sequence : plan.sequences) {
    const size_t columns = std::max<size_t>(1, Padded(sequence.key_rows));
    const size_t rows = std::clamp(kTileScores / columns / 8 * 8, kMinTileRows, kMaxTileRows);
    const size_t tiles = (sequence.query_rows + rows - 1) / rows * plan.group();
    const size_t cuts = std::clamp<size_t>(tiles, 1, wanted);
    for (size_t head = 0; head < plan.key.heads; ++head) {
      for (size_t cut = 0; cut < cuts; ++cut) {
        tasks.push_back({&sequence, head, rows, tiles * cut / cuts, tiles * (cut + 1) / cuts});
      }
    }
  }
  return tasks;
}

// Query rows of one head that are worked on together.
struct Tile {
  size_t head = 0, first_row = 0, rows = 0;
};
Tile TileOf(const AttentionPlan& plan, const Task& task, size_t index) {
  const size_t per_head = (task.sequence->query_rows + task.tile_rows - 1) / task.tile_rows;
  const size_t first = index % per_head * task.tile_rows;
  return {task.key_head * plan.group() + index / per_head, first,
          std::min(task.tile_rows, task.sequence->query_rows - first)};
}

// All rows of a head, as a matrix.
MatrixView HeadOf(const Operand& operand, const HeadRows& rows, size_t start, size_t head) {
  return {operand.dtype, operand.data, start + head * rows.head_stride, rows.row_stride, 1};
}
MatrixView RowsOf(MatrixView head, const Tile& tile) {
  head.first += tile.first_row * head.row_stride;
  return head;
}

void Store(Array& to, const MatrixView& head, const Tile& tile, const std::vector<double>& values,
           size_t dim) {
  for (size_t i = 0; i < tile.rows; ++i) {
    Write(to, head.first + (tile.first_row + i) * head.row_stride, dim,
          values.data() + i * Padded(dim));
  }
}

// Softmax of the scores of one tile after the other.
class Scores {
 public:
  Scores(const AttentionCall& call, const AttentionPlan& plan, const Task& task)
      : call_(call),
        plan_(plan),
        sequence_(*task.sequence),
        columns_(sequence_.key_rows),
        stride_(Padded(columns_)),
        keys_(plan.key.dim * stride_),
        query_(task.tile_rows * plan.query.dim),
        added_(columns_),
        values_(task.tile_rows * stride_) {
    const MatrixView keys = HeadOf(call.key, plan.key, sequence_.key, task.key_head);
    GatherPanels(keys.Transposed(), plan.key.dim, columns_, keys_.data());
  }

  // P of the tile; `statistics`, if any, gets maximum and sum of each row.
  void Compute(const Tile& tile, double* statistics) {
    const size_t dim = plan_.query.dim;
    Gather(RowsOf(HeadOf(call_.query, plan_.query, sequence_.query, tile.head), tile), tile.rows,
           dim, query_.data(), dim);
    std::fill_n(values_.data(), tile.rows * stride_, 0.0);
    Multiply({query_.data(), dim, 1, tile.rows, dim, keys_.data(), kernels::PanelCount(columns_),
              values_.data(), stride_});
    for (size_t i = 0; i < tile.rows; ++i) {
      double* const row = values_.data() + i * stride_;
      ScaleRow(row, tile.head, tile.first_row + i);
      HideRow(row, tile.head, tile.first_row + i);
      SoftmaxRow(row, statistics ? statistics + 2 * i : nullptr);
    }
  }
  [[nodiscard]] double* values() { return values_.data(); }
  [[nodiscard]] size_t stride() const { return stride_; }
  [[nodiscard]] size_t columns() const { return columns_; }
  // Rows of the tile that was computed last.
  [[nodiscard]] const std::vector<double>& query() const { return query_; }

 private:
  [[nodiscard]] size_t Start(const ScoreStrides& strides, size_t head, size_t row) const {
    return sequence_.batch * strides[0] + head * strides[1] + row * strides[2];
  }

  void ScaleRow(double* row, size_t head, size_t index) {
    const bool adds_behind = call_.adds_pse_after_scale;
    if (call_.pse) {
      const size_t start = Start(plan_.pse, head, index);
      Read(*call_.pse, start, plan_.pse[3] == 0 ? std::min<size_t>(1, columns_) : columns_,
           added_.data());
      if (plan_.pse[3] == 0 && columns_ > 0) std::fill(added_.begin(), added_.end(), added_[0]);
    }
    for (size_t j = 0; j < columns_; ++j) {
      const double pse = call_.pse ? added_[j] : 0;
      row[j] = adds_behind ? row[j] * call_.scale + pse : (row[j] + pse) * call_.scale;
    }
  }

  void HideRow(double* row, size_t head, size_t index) const {
    const Hiding& hiding = sequence_.hiding;
    if (hiding.kind == Hiding::Kind::kNothing) return;
    if (hiding.kind == Hiding::Kind::kGiven) {
      const std::byte* const mask = call_.atten_mask->data + Start(plan_.mask, head, index);
      for (size_t j = 0; j < columns_; ++j) {
        if (mask[j * plan_.mask[3]] != std::byte{0}) row[j] += kHiddenScore;
      }
      return;
    }
    const auto limit = static_cast<int64_t>(columns_), at = static_cast<int64_t>(index);
    for (int64_t j = std::max<int64_t>(0, hiding.prefix); j < limit; ++j) {
      if (j - at < hiding.lowest || j - at >= hiding.above) row[j] += kHiddenScore;
    }
  }

  // A row with a NaN becomes NaN.
  void SoftmaxRow(double* row, double* statistics) const {
    double largest = -std::numeric_limits<double>::infinity();
    for (size_t j = 0; j < columns_; ++j) largest = std::max(largest, row[j]);
    for (size_t j = 0; j < columns_; ++j) row[j] = std::exp(row[j] - largest);
    const double sum = Sum(row, columns_);
    for (size_t j = 0; j < columns_; ++j) row[j] /= sum;
    if (statistics) statistics[0] = largest, statistics[1] = sum;
  }

  const AttentionCall& call_;
  const AttentionPlan& plan_;
  const Sequence& sequence_;
  size_t columns_, stride_;
  std::vector<double> keys_;  // transposed, in panels
  std::vector<double> query_, added_, values_;
};

void StoreStatistics(const AttentionPlan& plan, const Sequence& sequence, const Tile& tile,
                     const std::vector<double>& statistics, AttentionResult& result) {
  for (size_t i = 0; i < tile.rows; ++i) {
    const size_t at = sequence.statistics + tile.head * plan.statistics_head_stride +
                      (tile.first_row + i) * plan.statistics_row_stride;
    std::array<double, kCopies> copies;
    copies.fill(statistics[2 * i]);
    Write(result.max, at * kCopies, kCopies, copies.data());
    copies.fill(statistics[2 * i + 1]);
    Write(result.sum, at * kCopies, kCopies, copies.data());
  }
}

void RunForward(const AttentionCall& call, const AttentionPlan& plan, const Task& task,
                AttentionResult& result) {
  const Sequence& sequence = *task.sequence;
  const size_t dim = plan.value.dim, stride = Padded(dim);
  Scores scores(call, plan, task);
  std::vector<double> values(scores.columns() * stride), out(task.tile_rows * stride);
  std::vector<double> statistics(2 * task.tile_rows);
  GatherPanels(HeadOf(call.value, plan.value, sequence.value, task.key_head), scores.columns(), dim,
               values.data());
  for (size_t index = task.first_tile; index < task.end_tile; ++index) {
    const Tile tile = TileOf(plan, task, index);
    scores.Compute(tile, statistics.data());
    std::fill(out.begin(), out.end(), 0);
    Multiply({scores.values(), scores.stride(), 1, tile.rows, scores.columns(), values.data(),
              kernels::PanelCount(dim), out.data(), stride});
    Store(result.out, HeadOf(result.out.operand(), plan.out, sequence.out, tile.head), tile, out,
          dim);
    StoreStatistics(plan, sequence, tile, statistics, result);
  }
}

// Sums over query rows for the keys and values of one key head.
struct KeySums {
  std::vector<double> key, value;
};

// The gradient of one task: writes that of query rows, adds to those of keys and values.
class GradTask {
 public:
  GradTask(const AttentionCall& call, const Operand& dy, const AttentionPlan& plan,
           const Task& task)
      : call_(call),
        dy_(dy),
        plan_(plan),
        task_(task),
        scores_(call, plan, task),
        dim_(plan.key.dim),
        value_dim_(plan.value.dim),
        keys_(scores_.columns() * Padded(dim_)),
        values_(value_dim_ * scores_.stride()),
        score_grads_(task.tile_rows * scores_.stride()),
        dy_rows_(task.tile_rows * value_dim_),
        panels_(task.tile_rows * Padded(std::max(dim_, value_dim_))),
        query_grad_(task.tile_rows * Padded(dim_)),
        products_(scores_.columns()) {
    const Sequence& sequence = *task.sequence;
    GatherPanels(HeadOf(call.key, plan.key, sequence.key, task.key_head), scores_.columns(), dim_,
                 keys_.data());
    GatherPanels(HeadOf(call.value, plan.value, sequence.value, task.key_head).Transposed(),
                 value_dim_, scores_.columns(), values_.data());
  }

  void Run(Array& query_grad, KeySums& sums) {
    sums.key.resize(scores_.columns() * Padded(dim_));
    sums.value.resize(scores_.columns() * Padded(value_dim_));
    for (size_t index = task_.first_tile; index < task_.end_tile; ++index) {
      const Tile tile = TileOf(plan_, task_, index);
      scores_.Compute(tile, nullptr);
      AddValueGrad(tile, sums.value);
      ComputeScoreGrads(tile);
      StoreQueryGrad(tile, query_grad);
      AddKeyGrad(tile, sums.key);
    }
  }

 private:
  // dV += P^T dY.
  void AddValueGrad(const Tile& tile, std::vector<double>& sums) {
    const MatrixView dy = RowsOf(HeadOf(dy_, plan_.out, task_.sequence->out, tile.head), tile);
    Gather(dy, tile.rows, value_dim_, dy_rows_.data(), value_dim_);
    GatherPanels(dy, tile.rows, value_dim_, panels_.data());
    Multiply({scores_.values(), 1, scores_.stride(), scores_.columns(), tile.rows, panels_.data(),
              kernels::PanelCount(value_dim_), sums.data(), Padded(value_dim_)});
  }
  // dP = dY V^T; dA = P (dP - sum(dP P)) scale.
  void ComputeScoreGrads(const Tile& tile) {
    const size_t stride = scores_.stride(), columns = scores_.columns();
    std::fill_n(score_grads_.data(), tile.rows * stride, 0.0);
    Multiply({dy_rows_.data(), value_dim_, 1, tile.rows, value_dim_, values_.data(),
              kernels::PanelCount(columns), score_grads_.data(), stride});
    for (size_t i = 0; i < tile.rows; ++i) {
      const double* const p = scores_.values() + i * stride;
      double* const grad = score_grads_.data() + i * stride;
      for (size_t j = 0; j < columns; ++j) products_[j] = p[j] * grad[j];
      const double sum = Sum(products_.data(), columns);
      for (size_t j = 0; j < columns; ++j) grad[j] = p[j] * (grad[j] - sum) * call_.scale;
    }
  }
  // dQ = dA K.
  void StoreQueryGrad(const Tile& tile, Array& query_grad) {
    std::fill(query_grad_.begin(), query_grad_.end(), 0);
    Multiply({score_grads_.data(), scores_.stride(), 1, tile.rows, scores_.columns(), keys_.data(),
              kernels::PanelCount(dim_), query_grad_.data(), Padded(dim_)});
    Store(query_grad, HeadOf(call_.query, plan_.query, task_.sequence->query, tile.head), tile,
          query_grad_, dim_);
  }
  // dK += dA^T Q.
  void AddKeyGrad(const Tile& tile, std::vector<double>& sums) {
    const MatrixView query{DType::kFloat64,
                           reinterpret_cast<const std::byte*>(scores_.query().data()), 0, dim_, 1};
    GatherPanels(query, tile.rows, dim_, panels_.data());
    Multiply({score_grads_.data(), 1, scores_.stride(), scores_.columns(), tile.rows,
              panels_.data(), kernels::PanelCount(dim_), sums.data(), Padded(dim_)});
  }

  const AttentionCall& call_;
  const Operand& dy_;
  const AttentionPlan& plan_;
  const Task& task_;
  Scores scores_;
  size_t dim_, value_dim_;
  std::vector<double> keys_, values_;  // in panels; values transposed
  std::vector<double> score_grads_, dy_rows_, panels_, query_grad_, products_;
};

// The sums of a key head, rounded.
void StoreKeyGrads(const AttentionCall& call, const AttentionPlan& plan, const Task& task,
                   const KeySums& sums, std::array<Array, 3>& grads) {
  const Sequence& sequence = *task.sequence;
  const Tile all{task.key_head, 0, sequence.key_rows};
  Store(grads[1], HeadOf(call.key, plan.key, sequence.key, task.key_head), all, sums.key,
        plan.key.dim);
  Store(grads[2], HeadOf(call.value, plan.value, sequence.value, task.key_head), all, sums.value,
        plan.value.dim);
}

bool IsOfSameHead(const Task& a, const Task& b) {
  return a.sequence == b.sequence && a.key_head == b.key_head;
}

void AddTo(std::vector<double>& total, const std::vector<double>& part) {
  for (size_t i = 0; i < total.size(); ++i) total[i] += part[i];
}

}  // namespace

Result<AttentionResult> FusionAttention(const AttentionCall& call) {
  PL_TRY_ASSIGN(const AttentionPlan plan, PlanAttention(call));
  AttentionResult result{Array(DType::kFloat64, plan.out_shape),
                         Array(DType::kFloat64, plan.statistics_shape),
                         Array(DType::kFloat64, plan.statistics_shape)};
  const std::vector<Task> tasks = TasksOf(plan, kForwardPieces);
  ParallelFor(tasks.size(), [&](size_t i) { RunForward(call, plan, tasks[i], result); });
  return result;
}

Result<std::array<Array, 3>> FusionAttentionGrad(const AttentionCall& call, const Operand& dy) {
  PL_TRY_ASSIGN(const AttentionPlan plan, PlanAttention(call));
  PL_TRY(CheckFloating("dy", dy));
  PL_TRY(CheckShape("dy", dy, plan.out_shape));
  std::array<Array, 3> grads = {Array(call.query.dtype, call.query.shape),
                                Array(call.key.dtype, call.key.shape),
                                Array(call.value.dtype, call.value.shape)};
  const std::vector<Task> tasks = TasksOf(plan, kBackwardPieces);
  // Sums of heads that are cut into several tasks; those of whole heads end with their task.
  std::vector<KeySums> partial(tasks.size());
  const auto is_whole = [&](size_t i) {
    return (i == 0 || !IsOfSameHead(tasks[i - 1], tasks[i])) &&
           (i + 1 == tasks.size() || !IsOfSameHead(tasks[i], tasks[i + 1]));
  };
  ParallelFor(tasks.size(), [&](size_t i) {
    KeySums sums;
    GradTask(call, dy, plan, tasks[i]).Run(grads[0], sums);
    if (is_whole(i)) {
      StoreKeyGrads(call, plan, tasks[i], sums, grads);
    } else {
      partial[i] = std::move(sums);
    }
  });
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (is_whole(i)) continue;
    KeySums total = std::move(partial[i]);
    for (; i + 1 < tasks.size() && IsOfSameHead(tasks[i], tasks[i + 1]); ++i) {
      AddTo(total.key, partial[i + 1].key);
      AddTo(total.value, partial[i + 1].value);
    }
    StoreKeyGrads(call, plan, tasks[i], total, grads);
  }
  return grads;
}

}  // namespace plumbline::precheck::reference
