#include "precheck/online/single_benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "base/text/number_text.h"
#include "tensor/device_layout.h"
#include "tensor/element_value.h"

namespace plumbline::precheck {
namespace {

constexpr size_t kBlock = 1024;

template <class T>
void Widen(const std::byte* from, std::span<double> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<double>(LoadAs<T>(from + i * sizeof(T)));
  }
}

// Elements of a part type as doubles, which hold all of them but the largest integers.
void WidenParts(DType part, const std::byte* from, std::span<double> out) {
  switch (part) {
    case DType::kFloat32:
      return Widen<float>(from, out);
    case DType::kFloat64:
      return Widen<double>(from, out);
    default:
      const size_t width = InfoOf(part).size_bytes;
      for (size_t i = 0; i < out.size(); ++i) out[i] = ElementAsDouble(part, from + i * width);
  }
}

// From which magnitude on a value becomes infinite in a type.
double OverflowsFrom(DType part) {
  const auto from = [](int digits, int exponent) {
    return std::ldexp(2 - std::ldexp(1.0, -digits), exponent);
  };
  switch (part) {
    case DType::kFloat16:
      return from(11, 15);
    case DType::kBFloat16:
      return from(8, 127);
    case DType::kFloat32:
      return from(24, 127);
    default:
      return std::numeric_limits<double>::infinity();
  }
}

// Goes over the elements of both sides, block by block.
class Measuring {
 public:
  explicit Measuring(DType device_part) : overflows_from_(OverflowsFrom(device_part)) {}

  void Add(std::span<const double> device, std::span<const double> bench) {
    double sum = 0;
    for (size_t i = 0; i < device.size(); ++i) sum += Error(device[i], bench[i], first_ + i);
    sum_ += sum;
    first_ += device.size();
  }

  [[nodiscard]] SingleMeasure measure() const {
    SingleMeasure measure = measure_;
    if (finite_ > 0) measure.error_balance = std::abs(sum_ / static_cast<double>(finite_));
    return measure;
  }
  // Whether the limit lets anything pass, also zeros in the place of every element.
  [[nodiscard]] bool proves_nothing(double limit) const {
    return measure_.max_abs_error > 0 && largest_ <= limit && beyond_ == 0 && infinite_ == 0;
  }
  [[nodiscard]] bool is_all_nan() const { return first_ > 0 && nan_ == first_; }
  // One that is not finite on one side only, or in another way.
  bool has_odd = false;
  uint64_t odd_index = 0;
  double odd_device = 0, odd_bench = 0;

  [[nodiscard]] std::string SpecialsText() const {
    std::string text;
    const auto add = [&](uint64_t count, std::string_view what) {
      if (count == 0) return;
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", CountText(count, "element"), what);
    };
    add(nan_, "NaN on both sides");
    add(infinite_, "the same infinity");
    add(beyond_, "beyond the range of the type on both sides");
    return text;
  }

 private:
  // Of the mean error; 0 of elements that are left out.
  double Error(double device, double bench, uint64_t index) {
    if (!std::isfinite(device) || !std::isfinite(bench)) {
      CountSpecial(device, bench, index);
      return 0;
    }
    ++finite_;
    const double error = device - bench, size = std::abs(bench);
    largest_ = std::max(largest_, size);
    if (size < kSingleBenchmarkSmallValue) {
      Raise(std::abs(error), index, measure_.max_abs_error, measure_.max_abs_index);
      return error;
    }
    const double relative = error / (size + kSingleBenchmarkEpsilon);
    Raise(std::abs(relative), index, measure_.max_rel_error, measure_.max_rel_index);
    return relative;
  }

  static void Raise(double error, uint64_t index, double& largest,
                    std::optional<uint64_t>& largest_index) {
    if (largest_index && error <= largest) return;
    largest = error;
    largest_index = index;
  }

  void CountSpecial(double device, double bench, uint64_t index) {
    if (std::isnan(device) && std::isnan(bench)) {
      ++nan_;
    } else if (device == bench) {
      ++infinite_;
    } else if (std::isinf(device) && std::abs(bench) >= overflows_from_ &&
               std::signbit(device) == std::signbit(bench)) {
      ++beyond_;
    } else if (!has_odd) {
      has_odd = true;
      odd_index = index;
      odd_device = device;
      odd_bench = bench;
    }
  }

  double overflows_from_;
  uint64_t first_ = 0, finite_ = 0, nan_ = 0, infinite_ = 0, beyond_ = 0;
  double sum_ = 0, largest_ = 0;  // |benchmark|
  SingleMeasure measure_;
};

SingleGrade Failed(std::string message) {
  SingleGrade grade;
  grade.verdict = SingleVerdict::kFail;
  grade.message = std::move(message);
  return grade;
}

// Integers, bits and narrower floats: each element as it is.
SingleGrade GradeExactly(const TensorView& device, const TensorView& bench) {
  SingleGrade grade;
  const auto count = static_cast<uint64_t>(device.element_count());
  const size_t width = InfoOf(device.dtype).size_bytes;
  const bool is_same_type = device.dtype == bench.dtype;
  const size_t bench_width = InfoOf(bench.dtype).size_bytes;
  SingleMeasure measure;
  uint64_t differing = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const std::byte* const at = device.data + i * width;
    const std::byte* const expected = bench.data + i * bench_width;
    if (is_same_type && std::memcmp(at, expected, width) == 0) continue;
    const double d = ElementAsDouble(device.dtype, at);
    const double b = ElementAsDouble(bench.dtype, expected);
    if (d == b && !is_same_type) continue;
    ++differing;
    const double error = std::abs(d - b);
    if (!measure.max_abs_index || error > measure.max_abs_error) {
      measure.max_abs_error = std::isfinite(error) ? error : measure.max_abs_error;
      measure.max_abs_index = i;
    }
  }
  grade.measure = measure;
  grade.verdict = differing == 0 ? SingleVerdict::kPass : SingleVerdict::kFail;
  if (differing > 0) {
    grade.message = fmt::format("{} of {} differ, where every element has to be equal", differing,
                                CountText(count, "element"));
  }
  return grade;
}

std::string LimitText(const SingleMeasure& measure, const SingleBenchmarkLimits& limits) {
  std::string text;
  const auto add = [&](std::string_view name, double value, double limit,
                       const std::optional<uint64_t>& index) {
    if (!(value > limit)) return;
    text += fmt::format("{}{} {:.4g} > {:.4g}", text.empty() ? "" : ", ", name, value, limit);
    if (index) text += fmt::format(" at element {}", *index);
  };
  add("max_abs_diff", measure.max_abs_error, limits.error, measure.max_abs_index);
  add("max_rel_diff", measure.max_rel_error, limits.error, measure.max_rel_index);
  add("error_balance", measure.error_balance, limits.balance, std::nullopt);
  return text;
}

SingleGrade GradeFloats(const TensorView& device, const TensorView& bench,
                        const SingleBenchmarkLimits& limits) {
  const DType device_part = PartOf(device.dtype), bench_part = PartOf(bench.dtype);
  const size_t parts = device_part == device.dtype ? 1 : 2;
  const size_t count = static_cast<size_t>(device.element_count()) * parts;
  const size_t device_width = InfoOf(device_part).size_bytes;
  const size_t bench_width = InfoOf(bench_part).size_bytes;
  std::array<double, kBlock> d{}, b{};
  Measuring measuring(device_part);
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t size = std::min(kBlock, count - first);
    WidenParts(device_part, device.data + first * device_width, std::span(d).first(size));
    WidenParts(bench_part, bench.data + first * bench_width, std::span(b).first(size));
    measuring.Add(std::span<const double>(d).first(size), std::span<const double>(b).first(size));
  }
  SingleGrade grade;
  grade.limits = limits;
  const std::string specials = measuring.SpecialsText();
  if (measuring.has_odd) {
    grade.verdict = SingleVerdict::kFail;
    grade.message = fmt::format("element {} is {} where the benchmark has {}",
                                measuring.odd_index, PythonFloat(measuring.odd_device),
                                PythonFloat(measuring.odd_bench));
  } else if (measuring.is_all_nan()) {
    grade.message = "not checked: every element is NaN on both sides";
    return grade;
  } else {
    grade.message = LimitText(measuring.measure(), limits);
    grade.verdict = grade.message.empty() ? SingleVerdict::kPass : SingleVerdict::kFail;
    if (grade.verdict == SingleVerdict::kPass && measuring.proves_nothing(limits.error)) {
      grade.verdict = SingleVerdict::kNotChecked;
      grade.message = "not checked: no element of the benchmark is above the limit";
    }
  }
  grade.measure = measuring.measure();
  if (!specials.empty()) grade.message += (grade.message.empty() ? "" : "; ") + specials;
  return grade;
}

}  // namespace

SingleGrade GradeSingle(const TensorView& device, const TensorView& bench) {
  if (!std::equal(device.sizes.begin(), device.sizes.end(), bench.sizes.begin(),
                  bench.sizes.end())) {
    return Failed(fmt::format("shape {} where the benchmark has {}",
                              ShapeText({device.sizes.begin(), device.sizes.end()}),
                              ShapeText({bench.sizes.begin(), bench.sizes.end()})));
  }
  const DTypeKind kind = InfoOf(device.dtype).kind;
  if (kind != InfoOf(bench.dtype).kind) {
    return Failed(fmt::format("{} where the benchmark has {}", InfoOf(device.dtype).torch_name,
                              InfoOf(bench.dtype).torch_name));
  }
  if (device.element_count() == 0) {
    SingleGrade grade;
    grade.verdict = SingleVerdict::kPass;
    grade.message = "empty on both sides";
    return grade;
  }
  const auto limits = SingleBenchmarkLimitsOf(device.dtype);
  return limits ? GradeFloats(device, bench, *limits) : GradeExactly(device, bench);
}

}  // namespace plumbline::precheck
