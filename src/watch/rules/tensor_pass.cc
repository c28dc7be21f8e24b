#include "watch/rules/tensor_pass.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "kernels/deviation_sums.h"
#include "kernels/kernel_table.h"
#include "kernels/magnitude_sums.h"
#include "tensor/block_gather.h"
#include "tensor/element_value.h"

namespace plumbline::watch {
namespace {

using kernels::kBlockElements;
using kernels::kLanes;
using Number = Interval::Number;

constexpr double kMostExact = 0x1p53;  // of integers as doubles

bool IsWideInteger(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kUInt64; }

Number WholeAt(DType dtype, const std::byte* data, size_t i) {
  if (dtype == DType::kInt64) return LoadAs<int64_t>(data + i * sizeof(int64_t));
  return LoadAs<uint64_t>(data + i * sizeof(uint64_t));
}

// One side of a scan.
class SideScan {
 public:
  SideScan(DType dtype, const ScanWishes& wishes) : dtype_(dtype) {
    for (const ValueRange& range : wishes.ranges) ranges_.push_back({range.start, range.end, 0, 0});
  }

  void Take(const std::byte* data, size_t count) {
    kernels::UpdateMoments(kernels::ActiveTable(), dtype_, data, count, &moments_);
    kernels::AddMagnitudes(dtype_, data, count, &block_);
    in_block_ += count;
    if (in_block_ >= kBlockElements) EndBlock();
    if (IsWideInteger(dtype_) && HasInexact()) return CountExactly(data, count);
    for (kernels::RangeCount& range : ranges_) kernels::CountRange(dtype_, data, count, &range);
  }

  [[nodiscard]] bool HasInexact() const {
    const kernels::Moments& total = moments_.total;
    return total.max > kMostExact || total.min < -kMostExact;
  }

  TensorFacts Finish(const TensorView& view) {
    EndBlock();
    const kernels::Moments total = kernels::FinishMoments(moments_);
    TensorFacts facts;
    facts.dtype = view.dtype;
    facts.shape.emplace(view.sizes.begin(), view.sizes.end());
    facts.count = total.count;
    facts.has_nan = TruthOf(total.nan_count > 0);
    facts.has_inf = TruthOf(total.inf_count > 0);
    facts.nan_count = Interval::Of(static_cast<Number>(total.nan_count));
    facts.inf_count = Interval::Of(static_cast<Number>(total.inf_count));
    finite_ = total.count - total.nan_count - total.inf_count;
    if (finite_ > 0) TakeFinite(total, facts);
    return facts;
  }

  [[nodiscard]] uint64_t finite() const { return finite_; }

 private:
  void EndBlock() {
    absolute_ += kernels::SumOfLanes(block_.absolute);
    sum_ += kernels::SumOfLanes(block_.sum);
    squares_ += kernels::SumOfLanes(block_.squares);
    block_ = {};
    in_block_ = 0;
  }

  void CountExactly(const std::byte* data, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const Number value = WholeAt(dtype_, data, i);
      for (kernels::RangeCount& range : ranges_) {
        range.below += value < static_cast<Number>(range.start) ? 1 : 0;
        range.above += value > static_cast<Number>(range.end) ? 1 : 0;
      }
    }
  }

  void TakeFinite(const kernels::Moments& total, TensorFacts& facts) const {
    const auto n = static_cast<double>(finite_);
    facts.max = Interval::Of(total.finite_max);
    facts.min = Interval::Of(total.finite_min);
    if (dtype_ == DType::kInt64) {
      facts.max = Interval::Of(static_cast<Number>(total.int_max));
      facts.min = Interval::Of(static_cast<Number>(total.int_min));
    }
    if (dtype_ == DType::kUInt64) {
      facts.max = Interval::Of(static_cast<Number>(total.uint_max));
      facts.min = Interval::Of(static_cast<Number>(total.uint_min));
    }
    const double mean = sum_ / n;
    facts.mean = Interval::Of(mean);
    facts.abs_mean = Interval::Of(absolute_ / n);
    if (std::isfinite(squares_)) facts.norm = Interval::Of(std::sqrt(squares_));
    // Rounding of the two terms; less of a spread than that is not known from them.
    const double variance = squares_ / n - mean * mean, doubt = squares_ / n * 1e-14;
    facts.sd = {std::sqrt(std::max(variance - doubt, 0.0)),
                std::sqrt(std::max(variance + doubt, 0.0))};
    if (facts.max.low == facts.min.low) facts.sd = Interval::Of(0);
    if (variance > 0 && doubt / variance < 1e-9) facts.sd = Interval::Of(std::sqrt(variance));
    facts.zero_percentage = Interval::Of(100.0 * static_cast<double>(total.zero_count) / n);
    for (const kernels::RangeCount& range : ranges_) {
      // Infinite elements are outside of every range that ends.
      const uint64_t outside = range.below + range.above - total.inf_count;
      facts.range_percentages.push_back(
          Interval::Of(100.0 * static_cast<double>(finite_ - outside) / n));
    }
  }

  DType dtype_;
  kernels::MomentsState moments_;
  kernels::MagnitudeSums block_;
  size_t in_block_ = 0;
  double absolute_ = 0, sum_ = 0, squares_ = 0;
  std::vector<kernels::RangeCount> ranges_;
  uint64_t finite_ = 0;
};

// The change from the one side to the other.
class ChangeScan {
 public:
  ChangeScan(DType now, DType before, const ScanWishes& wishes)
      : now_(now), before_(before), wishes_(wishes) {
    for (const Closeness& close : wishes.closenesses) {
      limits_.push_back({close.rtol, close.atol, 0});
    }
  }

  // `may_be_inexact`: integers that no double holds were met.
  void Take(const std::byte* now, const std::byte* before, size_t count, bool may_be_inexact) {
    const bool are_whole = IsWideInteger(now_) && now_ == before_ && may_be_inexact;
    const kernels::PairOfRuns runs{now_, now, before_, before, count};
    kernels::AddChanges(runs, &block_, limits_.data(), are_whole ? 0 : limits_.size());
    if (are_whole) CountExactly(now, before, count);
    in_block_ += count;
    if (in_block_ >= kBlockElements) EndBlock();
  }

  // Pairs of which one element alone is NaN, where that is asked.
  void CountNan(const std::byte* now, const std::byte* before, size_t count) {
    const size_t now_bytes = InfoOf(now_).size_bytes, before_bytes = InfoOf(before_).size_bytes;
    for (size_t i = 0; i < count; ++i) {
      const std::byte *x = now + i * now_bytes, *p = before + i * before_bytes;
      one_sided_nans_ += IsNan(now_, x) != IsNan(before_, p) ? 1 : 0;
      skipped_ += IsFinite(now_, x) && IsFinite(before_, p) ? 0 : 1;
    }
  }

  ChangeFacts Finish(uint64_t count) {
    EndBlock();
    ChangeFacts facts;
    const uint64_t pairs = count - skipped_;
    if (pairs > 0) {
      const auto n = static_cast<double>(pairs);
      facts.mean_change = Interval::Of(change_ / n);
      facts.mean_before = Interval::Of(before_sum_ / n);
    }
    for (size_t i = 0; i < limits_.size(); ++i) {
      const bool nan_differs = wishes_.closenesses[i].equal_nan && one_sided_nans_ > 0;
      facts.unchanged.push_back(TruthOf(limits_[i].above == 0 && !nan_differs));
    }
    return facts;
  }

 private:
  static bool IsNan(DType dtype, const std::byte* at) {
    return VisitElement(dtype, at, [](auto value, auto... imaginary) {
      return std::isnan(static_cast<double>(value)) ||
             (std::isnan(static_cast<double>(imaginary)) || ...);
    });
  }
  static bool IsFinite(DType dtype, const std::byte* at) {
    return VisitElement(dtype, at, [](auto value, auto... imaginary) {
      return std::isfinite(static_cast<double>(value)) &&
             (std::isfinite(static_cast<double>(imaginary)) && ...);
    });
  }

  void EndBlock() {
    change_ += kernels::SumOfLanes(block_.change);
    before_sum_ += kernels::SumOfLanes(block_.before);
    block_ = {};
    in_block_ = 0;
  }

  void CountExactly(const std::byte* now, const std::byte* before, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const Number x = WholeAt(now_, now, i), p = WholeAt(before_, before, i);
      for (kernels::ChangeLimit& limit : limits_) {
        const Number by = static_cast<Number>(limit.atol) +
                          static_cast<Number>(limit.rtol) * std::fabs(p);
        limit.above += std::fabs(x - p) > by ? 1 : 0;
      }
    }
  }

  DType now_, before_;
  const ScanWishes& wishes_;
  kernels::ChangeSums block_;
  size_t in_block_ = 0;
  double change_ = 0, before_sum_ = 0;
  std::vector<kernels::ChangeLimit> limits_;
  uint64_t one_sided_nans_ = 0, skipped_ = 0;
};

// The chunks of a view, as many elements each for every type, so that two sides go together.
class Chunks {
 public:
  explicit Chunks(const TensorView& view)
      : view_(view),
        element_bytes_(InfoOf(view.dtype).size_bytes),
        is_contiguous_(view.is_contiguous()),
        scratch_(is_contiguous_ ? 0
                                : std::max(kChunk * element_bytes_, BlockGather::kMinScratchBytes)),
        left_(static_cast<size_t>(view.element_count())) {}

  // Null at the end.
  const std::byte* Next(size_t& count) {
    count = std::min(left_, kChunk);
    if (count == 0) return nullptr;
    const std::byte* at = view_.data + done_ * element_bytes_;
    if (!is_contiguous_) at = Gathered(count);
    done_ += count;
    left_ -= count;
    return at;
  }

 private:
  static constexpr size_t kChunk = 8192;

  // Chunks of a gather may be shorter than ours; it is told which elements.
  const std::byte* Gathered(size_t count) {
    BlockGather part(view_, scratch_);
    part.Select(done_, count);
    const std::span<const std::byte> chunk = part.Next();
    return chunk.data();
  }

  const TensorView& view_;
  size_t element_bytes_;
  bool is_contiguous_;
  std::vector<std::byte> scratch_;
  size_t left_, done_ = 0;
};

bool HaveSameSizes(const TensorView& a, const TensorView& b) {
  return std::ranges::equal(a.sizes, b.sizes);
}

TensorFacts ScanOne(const TensorView& view, const ScanWishes& wishes) {
  SideScan side(view.dtype, wishes);
  Chunks chunks(view);
  size_t count = 0;
  for (const std::byte* at = chunks.Next(count); at != nullptr; at = chunks.Next(count)) {
    side.Take(at, count);
  }
  return side.Finish(view);
}

bool HasNonfinite(const TensorFacts& facts) {
  return facts.has_nan == Truth::kTrue || facts.has_inf == Truth::kTrue;
}

// Again, for pairs of which one is no number.
void CountNans(const TensorView& now, const TensorView& before, ChangeScan& change) {
  Chunks a(now), b(before);
  size_t count = 0;
  for (const std::byte* at = a.Next(count); at != nullptr; at = a.Next(count)) {
    change.CountNan(at, b.Next(count), count);
  }
}

}  // namespace

PassResult ScanTensors(const TensorView& now, const TensorView* before, const ScanWishes& wishes) {
  PassResult result;
  if (before == nullptr || !HaveSameSizes(now, *before)) {
    result.now = ScanOne(now, wishes);
    if (before != nullptr) result.before = ScanOne(*before, wishes);
    return result;
  }
  SideScan now_scan(now.dtype, wishes), before_scan(before->dtype, wishes);
  ChangeScan change(now.dtype, before->dtype, wishes);
  Chunks a(now), b(*before);
  size_t count = 0;
  for (const std::byte* x = a.Next(count); x != nullptr; x = a.Next(count)) {
    const std::byte* p = b.Next(count);
    now_scan.Take(x, count);
    before_scan.Take(p, count);
    change.Take(x, p, count, now_scan.HasInexact() || before_scan.HasInexact());
  }
  result.now = now_scan.Finish(now);
  result.before = before_scan.Finish(*before);
  if (HasNonfinite(result.now) || HasNonfinite(result.before)) CountNans(now, *before, change);
  result.change = change.Finish(*result.now.count);
  return result;
}

}  // namespace plumbline::watch
