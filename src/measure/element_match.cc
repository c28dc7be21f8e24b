#include "measure/element_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tensor/element_value.h"

namespace plumbline::measure {
namespace {

// Integers of 64 bits on both sides are equal by their bytes: a double has fewer digits.
bool AreWide(DType a, DType b) {
  return a == b && InfoOf(a).size_bytes == 8 && InfoOf(a).kind != DTypeKind::kFloat;
}

void Add(double a, double b, bool equal, ElementMatch& match) {
  const uint64_t index = match.count++;
  if (equal) {
    ++match.equal;
    ++match.within_thousandth;
    ++match.within_hundredth;
    return;
  }
  if (!match.first_mismatch) match.first_mismatch = index;
  const double difference = std::abs(a - b);
  const double size = std::max(std::abs(a), std::abs(b));
  const double relative = size > 0 ? difference / size : 0;
  match.within_thousandth += difference <= 0.001 * size && std::isfinite(size) ? 1 : 0;
  match.within_hundredth += difference <= 0.01 * size && std::isfinite(size) ? 1 : 0;
  // Once NaN, always NaN.
  const auto larger = [](double old, double value) {
    return std::isnan(old) || std::isnan(value) ? std::numeric_limits<double>::quiet_NaN()
                                                : std::max(old, value);
  };
  match.max_abs = larger(match.max_abs, difference);
  match.max_relative = larger(match.max_relative, relative);
}

// The first elements of `view` along every dimension, contiguous.
Result<Tensor> Crop(const TensorView& view, const Shape& sizes) {
  return Tensor::Copy({view.dtype, view.data, sizes, view.strides});
}

}  // namespace

Result<ElementMatch> MatchElements(const TensorView& a, const TensorView& b) {
  for (const TensorView* view : {&a, &b}) {
    if (InfoOf(view->dtype).kind != DTypeKind::kComplex) continue;
    return Error(ErrorCode::kUnsupported, fmt::format("elements of {}", InfoOf(view->dtype).name));
  }
  Shape left(a.sizes.begin(), a.sizes.end()), right(b.sizes.begin(), b.sizes.end());
  if (left.size() == right.size()) {
    for (size_t d = 0; d < left.size(); ++d) left[d] = right[d] = std::min(left[d], right[d]);
  }
  PL_TRY_ASSIGN(const Tensor first, Crop(a, left));
  PL_TRY_ASSIGN(const Tensor second, Crop(b, right));
  const TensorView x = first.view(), y = second.view();
  const auto count = static_cast<size_t>(std::min(x.element_count(), y.element_count()));
  const size_t x_size = InfoOf(x.dtype).size_bytes, y_size = InfoOf(y.dtype).size_bytes;
  const bool is_wide = AreWide(x.dtype, y.dtype);
  ElementMatch match;
  for (size_t i = 0; i < count; ++i) {
    const std::byte* const p = x.data + i * x_size;
    const std::byte* const q = y.data + i * y_size;
    const double u = ElementAsDouble(x.dtype, p), v = ElementAsDouble(y.dtype, q);
    const bool equal = is_wide ? std::memcmp(p, q, sizeof(int64_t)) == 0 : u == v;
    Add(u, v, equal, match);
  }
  return match;
}

}  // namespace plumbline::measure
