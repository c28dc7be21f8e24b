#include "watch/live/tensor_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "kernels/kernel_table.h"
#include "tensor/block_gather.h"

namespace plumbline::watch {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

int SignOf(float x) { return (x > 0 ? 1 : 0) - (x < 0 ? 1 : 0); }

// Elements of a view as float32, part by part.
class Floats {
 public:
  explicit Floats(const TensorView& view) : dtype_(view.dtype), gather_(view, scratch_) {}

  // The next elements, at most `most`; empty at the end.
  std::span<const float> Next(size_t most) {
    if (chunk_.empty()) chunk_ = gather_.Next();
    const size_t element = InfoOf(dtype_).size_bytes;
    const size_t count = std::min({most, chunk_.size() / element, kPart});
    kernels::ActiveTable().to_float(dtype_, chunk_.data(), count, wide_);
    chunk_ = chunk_.subspan(count * element);
    return {wide_, count};
  }

 private:
  static constexpr size_t kPart = 4096;
  DType dtype_;
  alignas(64) std::byte scratch_[size_t{16} << 10];
  alignas(64) float wide_[kPart];
  BlockGather gather_;
  std::span<const std::byte> chunk_;
};

}  // namespace

std::optional<Op> OpNamed(std::string_view name) {
  const auto found = std::ranges::find(kOpNames, name);
  if (found == kOpNames.end() || name == NameOf(Op::kDigest)) return std::nullopt;
  return static_cast<Op>(found - kOpNames.begin());
}

TensorValues NoValues() {
  TensorValues values;
  values.numbers.fill(kNaN);
  return values;
}

TensorValues ValuesOfNumber(double number) {
  TensorValues values;
  values.dtype = DType::kFloat64;
  values.of(Op::kNorm) = std::abs(number);
  for (const Op op : {Op::kMin, Op::kMax, Op::kMean, Op::kId}) values.of(op) = number;
  values.of(Op::kZeros) = number == 0 ? 1 : 0;
  values.of(Op::kNans) = std::isnan(number) ? 1 : 0;
  values.of(Op::kInfs) = std::isinf(number) ? 1 : 0;
  return values;
}

TensorValues ValuesOf(const TensorView& view, const kernels::TensorScan& scan) {
  const kernels::Moments& sums = scan.moments;
  const DTypeKind kind = InfoOf(view.dtype).kind;
  TensorValues values = NoValues();
  values.dtype = view.dtype;
  values.shape.assign(view.sizes.begin(), view.sizes.end());
  values.of(Op::kNorm) = std::sqrt(sums.sum_squares);
  values.of(Op::kNans) = static_cast<double>(sums.nan_count);
  values.of(Op::kInfs) = static_cast<double>(sums.inf_count);
  if (sums.count == 0) return values;
  const auto count = static_cast<double>(sums.count);
  if (kind != DTypeKind::kBool) values.of(Op::kZeros) = static_cast<double>(scan.below) / count;
  if (kind == DTypeKind::kComplex) return values;
  values.of(Op::kMean) = sums.sum / count;
  const bool has_nan = sums.nan_count > 0;
  values.of(Op::kMin) = has_nan ? kNaN : sums.min;
  values.of(Op::kMax) = has_nan ? kNaN : sums.max;
  if (view.sizes.empty()) values.of(Op::kId) = values.of(Op::kMax);
  return values;
}

TensorValues Measure(const TensorView& view, double zero_bound, const kernels::Team* team) {
  kernels::ScanWants wants;
  wants.below = zero_bound;
  wants.team = team;
  return ValuesOf(view, kernels::ScanTensor(view, wants));
}

double SignAgreement(const TensorView& gradient, const TensorView& momentum) {
  const int64_t count = gradient.element_count();
  const bool is_complex = InfoOf(gradient.dtype).kind == DTypeKind::kComplex ||
                          InfoOf(momentum.dtype).kind == DTypeKind::kComplex;
  if (is_complex || count != momentum.element_count()) return kNaN;
  if (count == 0) return 1;
  Floats first(gradient);
  Floats second(momentum);
  std::span<const float> one, other;
  int64_t agreement = 0;
  for (int64_t left = count; left > 0;) {
    if (one.empty()) one = first.Next(static_cast<size_t>(left));
    if (other.empty()) other = second.Next(static_cast<size_t>(left));
    const size_t part = std::min(one.size(), other.size());
    if (part == 0) return kNaN;
    for (size_t i = 0; i < part; ++i) agreement += SignOf(one[i]) * SignOf(other[i]);
    one = one.subspan(part);
    other = other.subspan(part);
    left -= static_cast<int64_t>(part);
  }
  return (static_cast<double>(agreement) / static_cast<double>(count) + 1) / 2;
}

}  // namespace plumbline::watch
