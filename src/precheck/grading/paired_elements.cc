#include "precheck/grading/paired_elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/text/number_text.h"
#include "precheck/standards.h"
#include "tensor/element_value.h"
#include "tensor/float_range.h"

namespace plumbline::precheck {

std::optional<FiniteSides> WithoutEqualSpecials(const OutputPair& pair) {
  const DType types[] = {PartOf(pair.bench_dtype), PartOf(pair.device_dtype)};
  const size_t parts = types[0] == pair.bench_dtype ? 1 : 2;
  const size_t widths[] = {InfoOf(types[0]).size_bytes, InfoOf(types[1]).size_bytes};
  const size_t count = pair.count * parts;
  const auto* const bench = static_cast<const std::byte*>(pair.bench);
  const auto* const device = static_cast<const std::byte*>(pair.device);
  FiniteSides sides{
      {bench, bench + count * widths[0]}, {device, device + count * widths[1]}, count};
  for (size_t i = 0; i < count; ++i) {
    const double b = ElementAsDouble(types[0], bench + i * widths[0]);
    const double d = ElementAsDouble(types[1], device + i * widths[1]);
    if (std::isfinite(b) && std::isfinite(d)) continue;
    const bool are_nan = std::isnan(b) && std::isnan(d);
    const bool is_beyond = std::isfinite(b) && std::isinf(d) &&
                           std::signbit(b) == std::signbit(d) && RoundsToNonFinite(types[1], b);
    if (!are_nan && !is_beyond && !(b == d)) return std::nullopt;
    ++(are_nan ? sides.nan : is_beyond ? sides.beyond : sides.infinite);
    std::memset(sides.bench.data() + i * widths[0], 0, widths[0]);
    std::memset(sides.device.data() + i * widths[1], 0, widths[1]);
  }
  return sides;
}

std::string SpecialsText(const FiniteSides& sides) {
  std::string text;
  if (sides.nan > 0) {
    text = fmt::format("{} NaN on both sides at the same places.",
                       CountText(sides.nan, "element is", "elements are"));
  }
  if (sides.infinite > 0) {
    text += fmt::format("{}Infinities are the same on both sides.", text.empty() ? "" : " ");
  }
  if (sides.beyond > 0) {
    text +=
        fmt::format("{}{} infinite on the device, whose type does not reach that far.",
                    text.empty() ? "" : " ", CountText(sides.beyond, "element is", "elements are"));
  }
  const bool is_all = sides.not_judged() == sides.elements;
  return text +
         (is_all ? " There are no other elements." : " What follows is about the other elements.");
}

KeptElements KeptOf(const OutputPair& pair) {
  KeptElements kept;
  const size_t widths[] = {InfoOf(pair.bench_dtype).size_bytes,
                           InfoOf(pair.device_dtype).size_bytes};
  const auto* const bench = static_cast<const std::byte*>(pair.bench);
  const auto* const device = static_cast<const std::byte*>(pair.device);
  const bool is_real = InfoOf(pair.bench_dtype).kind == DTypeKind::kFloat &&
                       InfoOf(pair.device_dtype).kind == DTypeKind::kFloat;
  const double share = std::max(kKeptErrorAtMost, 4 * UnitRoundoff(pair.device_dtype));
  const double subnormal = pair.device_dtype == DType::kFloat16 ? 0x1p-14 : 0;
  for (size_t i = 0; is_real && i < pair.count; ++i) {
    const double b = ElementAsDouble(pair.bench_dtype, bench + i * widths[0]);
    const double d = ElementAsDouble(pair.device_dtype, device + i * widths[1]);
    const bool is_dropped = b == 0 || d == 0 || std::abs(b) < subnormal;
    if (is_dropped || !std::isfinite(b) || !std::isfinite(d)) continue;
    ++kept.both;
    kept.apart += std::abs(d - b) > share * std::abs(b) ? 1 : 0;
  }
  return kept;
}

}  // namespace plumbline::precheck
