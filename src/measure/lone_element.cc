#include "measure/lone_element.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "measure/widened.h"

namespace plumbline::measure {
namespace {

constexpr double kFar = 8;    // roundings that a few operations make
constexpr double kOff = 16;   // and more than these are an error of its own
constexpr double kRare = 40;  // times fewer than noise of sums leaves that far off
constexpr double kMostFarRatio = 1e-3;
constexpr uint64_t kManyDiffer = 200;  // so many that ten of them were far, if noise did it

struct Counts {
  uint64_t differing = 0, far = 0;
  bool has_off = false;
  double most = 0;  // roundings
};

// Adds finite pairs.
void Count(const double* target, const double* golden, size_t count,
           const TypicalDifference& typical, Counts& counts) {
  const double least = LeastOfLoneElement(typical);
  for (size_t i = 0; i < count; ++i) {
    const double distance = std::fabs(target[i] - golden[i]);
    if (!(distance > 0) || !std::isfinite(distance)) continue;
    ++counts.differing;
    const double own = typical.unit_roundoff * std::fabs(golden[i]);
    if (!(distance > kFar * own)) continue;
    ++counts.far;
    counts.most = std::max(counts.most, distance / own);
    counts.has_off = counts.has_off || (distance > kOff * own && distance > least);
  }
}

}  // namespace

double LeastOfLoneElement(const TypicalDifference& typical) {
  return kFar * std::max(typical.unit_roundoff * typical.golden, typical.difference);
}

bool HasLoneElement(const TensorView& target, const TensorView& golden,
                    const TypicalDifference& typical) {
  const bool is_complex = InfoOf(target.dtype).kind == DTypeKind::kComplex ||
                          InfoOf(golden.dtype).kind == DTypeKind::kComplex;
  if (is_complex || !target.is_contiguous() || !golden.is_contiguous()) return false;
  constexpr size_t kBlock = 1024;
  std::array<double, kBlock> mine, theirs;
  Counts counts;
  const auto elements = static_cast<size_t>(golden.element_count());
  for (size_t at = 0; at < elements; at += kBlock) {
    const size_t size = std::min(kBlock, elements - at);
    Widen(target.dtype, target.data + at * InfoOf(target.dtype).size_bytes, size, mine.data());
    Widen(golden.dtype, golden.data + at * InfoOf(golden.dtype).size_bytes, size, theirs.data());
    Count(mine.data(), theirs.data(), size, typical, counts);
  }
  if (!counts.has_off) return false;
  const auto differing = static_cast<double>(counts.differing);
  if (counts.differing >= kManyDiffer) {
    return static_cast<double>(counts.far) <= std::max(1.0, kMostFarRatio * differing);
  }
  return counts.most > kRare * differing;
}

}  // namespace plumbline::measure
