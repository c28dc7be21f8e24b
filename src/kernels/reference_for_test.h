// Plain scalar forms of the kernels' rules. Tests only.

#ifndef PLUMBLINE_KERNELS_REFERENCE_FOR_TEST_H_
#define PLUMBLINE_KERNELS_REFERENCE_FOR_TEST_H_

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"
#include "plumbline/tensor.h"
#include "tensor/element_value.h"

namespace plumbline::kernels {

inline constexpr double kReferenceInf = std::numeric_limits<double>::infinity();

// |re + i im| by the rule of convert.inl: scaled by a power of two outside 2^-500 .. 2^500.
inline double ReferenceModulus(double re, double im) {
  if (std::isinf(re) || std::isinf(im)) return kReferenceInf;
  const double large = std::fmax(std::fabs(re), std::fabs(im));
  double scale = 1;
  if (large > 0x1p+500) scale = 0x1p-600;
  if (large < 0x1p-500) scale = 0x1p+600;
  const double x = std::fabs(re) * scale;
  const double y = std::fabs(im) * scale;
  return std::sqrt(x * x + y * y) / scale;
}

// Element `i` as the kernels see it: a bool is 0 or 1, a complex element its modulus.
inline double ElementAsDouble(DType dtype, const std::byte* data, size_t i) {
  const std::byte* at = data + i * InfoOf(dtype).size_bytes;
  switch (dtype) {
    case DType::kBool:
      return LoadAs<uint8_t>(at) != 0 ? 1 : 0;
    case DType::kComplex64:
      return ReferenceModulus(LoadAs<float>(at), LoadAs<float>(at + 4));
    case DType::kComplex128:
      return ReferenceModulus(LoadAs<double>(at), LoadAs<double>(at + 8));
    default:
      return plumbline::ElementAsDouble(dtype, at);
  }
}

// Real and imaginary part of element `i` of any type.
inline std::pair<double, double> PartsOf(DType dtype, const std::byte* data, size_t i) {
  if (dtype == DType::kComplex64) {
    return {LoadAs<float>(data + 8 * i), LoadAs<float>(data + 8 * i + 4)};
  }
  if (dtype == DType::kComplex128) {
    return {LoadAs<double>(data + 16 * i), LoadAs<double>(data + 16 * i + 8)};
  }
  return {ElementAsDouble(dtype, data, i), 0.0};
}

// The lane rule: element i to lane i mod 16 inside a block, lanes halved, blocks in order.
class LaneSum {
 public:
  void Add(double x) {
    lanes_[count_ % 16] += x;
    if (++count_ % kBlockElements == 0) EndBlock();
  }
  [[nodiscard]] double Total() const {
    LaneSum copy = *this;
    copy.EndBlock();
    return std::isnan(copy.total_) ? std::numeric_limits<double>::quiet_NaN() : copy.total_;
  }

 private:
  void EndBlock() {
    for (size_t width = 8; width != 0; width /= 2) {
      for (size_t l = 0; l < width; ++l) lanes_[l] += lanes_[l + width];
    }
    total_ += lanes_[0];
    for (double& lane : lanes_) lane = 0;
  }
  double lanes_[16] = {};
  double total_ = 0;
  size_t count_ = 0;
};

// The same bits, with any two NaN alike.
inline bool SameBits(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

// Greater, with +0 above -0.
inline bool ReferenceAbove(double a, double b) {
  return a > b || (a == 0 && b == 0 && !std::signbit(a) && std::signbit(b));
}

inline Moments ReferenceMoments(DType dtype, const std::byte* data, size_t count) {
  Moments m;
  LaneSum sum, squares;
  const DTypeKind kind = InfoOf(dtype).kind;
  for (size_t i = 0; i < count; ++i) {
    const double x = ElementAsDouble(dtype, data, i);
    ++m.count;
    sum.Add(x);
    squares.Add(x * x);
    m.nan_count += std::isnan(x) ? 1u : 0u;
    m.inf_count += std::isinf(x) ? 1u : 0u;
    m.zero_count += x == 0 ? 1u : 0u;
    if (ReferenceAbove(x, m.max)) m.max = x;
    if (ReferenceAbove(m.min, x)) m.min = x;
    if (std::isfinite(x) && ReferenceAbove(x, m.finite_max)) m.finite_max = x;
    if (std::isfinite(x) && ReferenceAbove(m.finite_min, x)) m.finite_min = x;
    if (kind == DTypeKind::kSigned) {
      const int64_t v =
          dtype == DType::kInt64 ? LoadAs<int64_t>(data + 8 * i) : static_cast<int64_t>(x);
      m.int_max = std::max(m.int_max, v);
      m.int_min = std::min(m.int_min, v);
    }
    if (kind == DTypeKind::kUnsigned || kind == DTypeKind::kBool) {
      const uint64_t v =
          dtype == DType::kUInt64 ? LoadAs<uint64_t>(data + 8 * i) : static_cast<uint64_t>(x);
      m.uint_max = std::max(m.uint_max, v);
      m.uint_min = std::min(m.uint_min, v);
    }
  }
  m.sum = sum.Total();
  m.sum_squares = squares.Total();
  return m;
}

// Names the first member that differs, or is empty.
inline std::string Difference(const Moments& a, const Moments& b) {
  const auto real = [](const char* name, double x, double y) {
    if (SameBits(x, y)) return std::string();
    char text[128];
    std::snprintf(text, sizeof(text), "%s: %a != %a", name, x, y);
    return std::string(text);
  };
  const auto whole = [](const char* name, auto x, auto y) {
    return x == y ? std::string()
                  : std::string(name) + ": " + std::to_string(x) + " != " + std::to_string(y);
  };
  for (const std::string& text :
       {whole("count", a.count, b.count), whole("nan_count", a.nan_count, b.nan_count),
        whole("inf_count", a.inf_count, b.inf_count),
        whole("zero_count", a.zero_count, b.zero_count), real("max", a.max, b.max),
        real("min", a.min, b.min), real("finite_max", a.finite_max, b.finite_max),
        real("finite_min", a.finite_min, b.finite_min), real("sum", a.sum, b.sum),
        real("sum_squares", a.sum_squares, b.sum_squares), whole("int_max", a.int_max, b.int_max),
        whole("int_min", a.int_min, b.int_min), whole("uint_max", a.uint_max, b.uint_max),
        whole("uint_min", a.uint_min, b.uint_min)}) {
    if (!text.empty()) return text;
  }
  return {};
}

}  // namespace plumbline::kernels

#endif  // PLUMBLINE_KERNELS_REFERENCE_FOR_TEST_H_
