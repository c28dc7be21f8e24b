#include "precheck/input_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "base/process/parallel.h"
#include "load/run_reader.h"
#include "tensor/element_value.h"
#include "tensor/float_range.h"
#include "tensor/half.h"

namespace plumbline::precheck {

namespace {

constexpr double kTwoToMinus32 = 0x1p-32;
constexpr double kTwoToMinus53 = 0x1p-53;

// Elements that one thread fills at a time, and from how many on more than one thread does. Even:
// elements of at most 32 bits take half a random number each.
constexpr size_t kBlock = size_t{1} << 16;

template <class T>
void StoreAt(std::byte* out, size_t i, T value) {
  std::memcpy(out + i * sizeof(T), &value, sizeof(T));
}

bool HasInfinity(DType dtype) {
  const NarrowFormat* const format = NarrowFormatOf(dtype);
  return format == nullptr || format->has_infinity;
}

// Nearest float16 of a float of at most 65504, without branches: a loop over it is vectorised. The
// sum with 0.5 leaves a denormal's multiple of 2^-24 in the lowest bits, rounded by the hardware.
uint16_t ToFloat16(float value) {
  constexpr uint32_t kLeastNormal = 0x38800000, kHalf = 0x3F000000, kRebase = 112u << 23;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  const uint32_t normal = (magnitude + 0xFFF + ((magnitude >> 13) & 1) - kRebase) >> 13;
  const uint32_t denormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - kHalf;
  return static_cast<uint16_t>(((bits >> 16) & 0x8000) |
                               (magnitude < kLeastNormal ? denormal : normal));
}

uint16_t ToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

// One element of a floating type, NaN and infinities included.
void StoreReal(DType dtype, double value, std::byte* out, size_t i) {
  if (std::isinf(value) && !HasInfinity(dtype)) {
    value = std::copysign(LargestFinite(dtype), value);
  }
  if (dtype == DType::kFloat64) return StoreAt(out, i, value);
  const auto narrow = static_cast<float>(value);
  if (dtype == DType::kFloat32) return StoreAt(out, i, narrow);
  const uint32_t bits = FloatToNarrow(*NarrowFormatOf(dtype), narrow);
  if (InfoOf(dtype).size_bytes == 1) return StoreAt(out, i, static_cast<uint8_t>(bits));
  StoreAt(out, i, static_cast<uint16_t>(bits));
}

template <const NarrowFormat* kFormat>
struct FormatConstant {
  static constexpr NarrowFormat value = *kFormat;
};

// Where elements of a floating type are drawn from.
struct RealDraw {
  uint64_t key = 0;
  double low = 0, high = 0;  // finite
  // As a difference the width of a wide range would overflow. A bound may be missed by a rounding.
  [[nodiscard]] double At(double u) const {
    const double value = low * (1 - u) + high * u;
    return std::min(std::max(value, std::min(low, high)), std::max(low, high));
  }
};

// Calls fill(begin, end) for ranges that cover the elements.
template <class Fill>
void OverBlocks(size_t count, const Fill& fill) {
  if (count <= kBlock) return fill(size_t{0}, count);
  ParallelBlocks(count, kBlock, [&](size_t begin, size_t end) { fill(begin, end); });
}

// The halves of the random numbers, as elements of at most 32 bits take them: element i has half
// i % 2 of number i / 2. Calls use(halves, first, count) for one run of them after the other.
template <class Use>
void OverHalves(uint64_t key, size_t count, const Use& use) {
  constexpr size_t kRun = 256;
  OverBlocks(count, [&](size_t begin, size_t end) {
    uint32_t halves[kRun];
    for (size_t i = begin; i < end; i += kRun) {
      for (size_t k = 0; k < kRun; k += 2) {
        const uint64_t number = StreamNumber(key, (i + k) / 2);
        halves[k] = static_cast<uint32_t>(number);
        halves[k + 1] = static_cast<uint32_t>(number >> 32);
      }
      use(halves, i, std::min(kRun, end - i));
    }
  });
}

// Floating elements of at most 32 bits. `to_stored` makes one of a double.
template <class ToStored>
void FillHalves(const RealDraw& draw, size_t count, std::byte* out, const ToStored& to_stored) {
  const double least = std::min(draw.low, draw.high), most = std::max(draw.low, draw.high);
  OverHalves(draw.key, count, [&](const uint32_t* halves, size_t first, size_t run) {
    for (size_t k = 0; k < run; ++k) {
      // The conversion of a natural number, spelled so that it is vectorised.
      constexpr uint64_t kTwoTo52 = 0x4330000000000000u;
      const double whole = std::bit_cast<double>(kTwoTo52 | halves[k]) - 0x1p52;
      const double u = whole * kTwoToMinus32;
      const double value = draw.low * (1 - u) + draw.high * u;
      StoreAt(out, first + k, to_stored(std::min(std::max(value, least), most)));
    }
  });
}

void FillFloat8(DType dtype, const RealDraw& draw, size_t count, std::byte* out) {
  // Formats as constants, for the compiler to work with.
  const auto fill = [&](auto format) {
    FillHalves(draw, count, out, [](double x) {
      return static_cast<uint8_t>(FloatToNarrow(decltype(format)::value, static_cast<float>(x)));
    });
  };
  switch (dtype) {
    case DType::kFloat8E4M3FN:
      return fill(FormatConstant<&kFloat8E4M3FNFormat>());
    case DType::kFloat8E4M3FNUZ:
      return fill(FormatConstant<&kFloat8E4M3FNUZFormat>());
    case DType::kFloat8E5M2:
      return fill(FormatConstant<&kFloat8E5M2Format>());
    default:
      return fill(FormatConstant<&kFloat8E5M2FNUZFormat>());
  }
}

void FillReals(DType dtype, const RealDraw& draw, size_t count, std::byte* out) {
  switch (dtype) {
    case DType::kFloat64:
      return OverBlocks(count, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          const auto whole = static_cast<double>(StreamNumber(draw.key, i) >> 11);
          StoreAt(out, i, draw.At(whole * kTwoToMinus53));
        }
      });
    case DType::kFloat32:
      return FillHalves(draw, count, out, [](double x) { return static_cast<float>(x); });
    case DType::kFloat16:
      return FillHalves(draw, count, out,
                        [](double x) { return ToFloat16(static_cast<float>(x)); });
    case DType::kBFloat16:
      return FillHalves(draw, count, out,
                        [](double x) { return ToBFloat16(static_cast<float>(x)); });
    default:
      return FillFloat8(dtype, draw, count, out);
  }
}

// How many elements the last slice along the first dimension has; none of a tensor without one.
size_t LastSlice(const Shape& shape, size_t count) {
  return shape.empty() ? 0 : count / static_cast<size_t>(shape[0]);
}

// The element that stands for each infinite or NaN end of a range, and the ends themselves.
// `store(i, value)` writes an element.
template <class Store>
void PlantEnds(const ValueRange& range, size_t count, const Store& store) {
  const size_t last = count - 1;
  if (std::isnan(range.raw_high)) {
    const bool has_room = count > 2;
    if (has_room) store(0, range.low);
    store(has_room ? 1 : 0, std::nan(""));
    return store(last, range.high);
  }
  store(0, std::isinf(range.raw_low) ? range.raw_low : range.low);
  store(last, std::isinf(range.raw_high) ? range.raw_high : range.high);
}

// Where the elements of a range lie that are no mask, and the mask; NaN: it has none.
struct UnmaskedRange {
  double low, high, mask;
};
UnmaskedRange Unmasked(DType dtype, double low, double high) {
  const bool low_is_mask = IsMask(dtype, low, high), high_is_mask = IsMask(dtype, high, low);
  if (low_is_mask == high_is_mask) return {low, high, std::nan("")};
  if (low_is_mask) return {std::min(-std::abs(high), high - 1), high, low};
  return {low, std::max(std::abs(low), low + 1), high};
}

// Masks few of the elements. `store(i, value)` writes one.
template <class Store>
void PlantMasks(uint64_t key, double mask, size_t count, const Store& store) {
  // Of another stream than the elements themselves.
  const uint64_t of_masks = StreamNumber(key, ~uint64_t{0});
  OverBlocks(count, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (StreamNumber(of_masks, i) % kMaskedEvery == 0) store(i, mask);
    }
  });
}

// Draws elements of a type with NaN and infinities. `fill(draw)` fills all, `store` one.
template <class FillAll, class Store>
void GenerateReals(const TensorFill& fill, const GeneratedData& data, const FillAll& fill_all,
                   const Store& store) {
  const auto count = static_cast<size_t>(*ElementCount(fill.shape));
  const ValueRange& range = data.range;
  // Nothing was finite: each element is NaN, or the upper end and in the last slice the lower one.
  if (std::isnan(range.high) || std::isinf(range.high)) {
    const size_t lower_from = std::isnan(range.high) ? count : count - LastSlice(fill.shape, count);
    const bool low_fits = !(std::abs(range.low) <= std::numeric_limits<double>::max()) ||
                          std::abs(range.low) <= LargestFinite(fill.dtype);
    const double low = low_fits ? range.low : range.high;
    for (size_t i = 0; i < count; ++i) store(i, i < lower_from ? range.high : low);
    return;
  }
  const double largest = LargestFinite(fill.dtype);
  const double low = std::clamp(range.low, -largest, largest);
  const double high = std::clamp(range.high, -largest, largest);
  const bool has_masks = InfoOf(fill.dtype).kind == DTypeKind::kFloat;
  const UnmaskedRange drawn =
      has_masks ? Unmasked(fill.dtype, low, high) : UnmaskedRange{low, high, std::nan("")};
  fill_all(RealDraw{data.key, drawn.low, drawn.high}, count);
  if (!std::isnan(drawn.mask)) PlantMasks(data.key, drawn.mask, count, store);
  PlantEnds(ValueRange{range.raw_low, range.raw_high, low, high}, count, store);
}

// A unit vector of uniform direction, by Marsaglia's method: sums and products alone, whose results
// do not depend on a library of functions. Attempt k of element i takes number 64 i + k.
std::pair<double, double> UnitVector(uint64_t key, size_t i) {
  constexpr uint64_t kAttempts = 64;  // of which each fails with a probability of 0.21
  for (uint64_t attempt = 1; attempt < kAttempts; ++attempt) {
    const uint64_t number = StreamNumber(key, i * kAttempts + attempt);
    const double x = static_cast<double>(static_cast<uint32_t>(number)) * 2 * kTwoToMinus32 - 1;
    const double y = static_cast<double>(number >> 32) * 2 * kTwoToMinus32 - 1;
    const double square = x * x + y * y;
    if (square > 0 && square <= 1) return {(x * x - y * y) / square, 2 * x * y / square};
  }
  return {1, 0};
}

template <class Part>
void GenerateComplex(const TensorFill& fill, const GeneratedData& data, std::byte* out) {
  const auto store = [out](size_t i, double real, double imaginary) {
    StoreAt(out, 2 * i, static_cast<Part>(real));
    StoreAt(out, 2 * i + 1, static_cast<Part>(imaginary));
  };
  const auto fill_all = [&](const RealDraw& draw, size_t count) {
    OverBlocks(count, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const auto whole = static_cast<double>(StreamNumber(draw.key, i * 64) >> 11);
        const double magnitude = draw.At(whole * kTwoToMinus53);
        const auto [real, imaginary] = UnitVector(draw.key, i);
        store(i, magnitude * real, magnitude * imaginary);
      }
    });
  };
  GenerateReals(fill, data, fill_all,
                [&](size_t i, double value) { store(i, value, std::isnan(value) ? value : 0); });
}

// The high 64 bits of a product.
uint64_t HighProduct(uint64_t a, uint64_t b) {
  constexpr uint64_t kLow = 0xFFFFFFFF;
  const uint64_t low = (a & kLow) * (b & kLow);
  const uint64_t middle = (a >> 32) * (b & kLow) + (low >> 32);
  const uint64_t other = (a & kLow) * (b >> 32) + (middle & kLow);
  return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
}

// The integer of type T that is nearest to `end`, cut towards zero.
template <class T>
T Truncated(double end) {
  using Limits = std::numeric_limits<T>;
  // The largest 64-bit integers are no doubles: the first double beyond them is compared with.
  const double beyond = std::ldexp(1.0, Limits::digits);
  if (end >= beyond) return Limits::max();
  if (end < static_cast<double>(Limits::min())) return Limits::min();
  return static_cast<T>(end);
}

// Integers from `low` to `high`, ends included.
template <class T>
struct IntegerDraw {
  IntegerDraw(T a, T b)
      : low(static_cast<uint64_t>(std::min(a, b))),
        width(static_cast<uint64_t>(std::max(a, b)) - low) {}

  // From 32 random bits. Requires: fits_halves().
  [[nodiscard]] T OfHalf(uint32_t half) const {
    return static_cast<T>(low + ((half * (width + 1)) >> 32));
  }
  [[nodiscard]] T OfNumber(uint64_t number) const {
    // Of all 64-bit integers the width plus one is zero.
    return static_cast<T>(low + (width + 1 == 0 ? number : HighProduct(number, width + 1)));
  }
  [[nodiscard]] bool fits_halves() const { return width < uint64_t{1} << 32; }

  uint64_t low, width;
};

// Fills `out` with what `to_stored` makes of drawn integers.
template <class T, class ToStored>
void FillIntegers(uint64_t key, const IntegerDraw<T>& draw, std::span<std::byte> out,
                  const ToStored& to_stored) {
  const size_t count = out.size() / sizeof(to_stored(T{}));
  if (draw.fits_halves()) {
    return OverHalves(key, count, [&](const uint32_t* halves, size_t first, size_t run) {
      for (size_t k = 0; k < run; ++k) {
        StoreAt(out.data(), first + k, to_stored(draw.OfHalf(halves[k])));
      }
    });
  }
  OverBlocks(count, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      StoreAt(out.data(), i, to_stored(draw.OfNumber(StreamNumber(key, i))));
    }
  });
}

// Along one dimension all numbers are different: they count on from a drawn one, modulo the extent.
template <class T>
void FillDistinct(const TensorFill& fill, const GeneratedData& data, size_t count, std::byte* out) {
  const auto dimension = static_cast<size_t>(data.dimension);
  const auto extent = static_cast<uint64_t>(data.extent);
  const auto size = static_cast<size_t>(fill.shape[dimension]);
  size_t inner = 1;
  for (size_t d = dimension + 1; d < fill.shape.size(); ++d) {
    inner *= static_cast<size_t>(fill.shape[d]);
  }
  OverBlocks(count, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t line = i / (inner * size) * inner + i % inner;
      const uint64_t first = StreamNumber(data.key, line) % extent;
      StoreAt(out, i, static_cast<T>((first + i / inner % size) % extent));
    }
  });
}

// Ascending; NaN behind all numbers.
template <class T>
void SortElements(size_t count, std::byte* out) {
  std::vector<T> sorted(count);
  std::memcpy(sorted.data(), out, count * sizeof(T));
  std::ranges::sort(sorted, [](T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a) || std::isnan(b)) return std::isnan(b) && !std::isnan(a);
    }
    return a < b;
  });
  std::memcpy(out, sorted.data(), count * sizeof(T));
}

template <class T>
void GenerateIntegers(const TensorFill& fill, const GeneratedData& data, size_t count,
                      std::byte* out) {
  if (data.pattern == Pattern::kDistinct) return FillDistinct<T>(fill, data, count, out);
  const T low = Truncated<T>(data.range.low), high = Truncated<T>(data.range.high);
  FillIntegers(data.key, IntegerDraw<T>(low, high), {out, count * sizeof(T)},
               [](T value) { return value; });
  StoreAt(out, 0, low);
  StoreAt(out, count - 1, high);
  if (data.pattern == Pattern::kAscending) SortElements<T>(count, out);
}

void SortReals(DType dtype, size_t count, std::byte* out) {
  if (dtype == DType::kFloat64) return SortElements<double>(count, out);
  if (dtype == DType::kFloat32) return SortElements<float>(count, out);
  const size_t size = InfoOf(dtype).size_bytes;
  std::vector<float> wide(count);
  for (size_t i = 0; i < count; ++i) wide[i] = LoadNarrow(dtype, out + i * size);
  SortElements<float>(count, reinterpret_cast<std::byte*>(wide.data()));
  for (size_t i = 0; i < count; ++i) StoreReal(dtype, wide[i], out, i);
}

void GenerateBools(const TensorFill& fill, const GeneratedData& data, size_t count,
                   std::byte* out) {
  if (data.pattern == Pattern::kStrictlyUpper && fill.shape.size() >= 2) {
    const auto columns = static_cast<size_t>(fill.shape.back());
    const auto rows = static_cast<size_t>(fill.shape[fill.shape.size() - 2]);
    for (size_t i = 0; i < count; ++i) {
      out[i] = static_cast<std::byte>(i % columns > i / columns % rows);
    }
    return;
  }
  const IntegerDraw<int64_t> draw(Truncated<int64_t>(data.range.low),
                                  Truncated<int64_t>(data.range.high));
  FillIntegers(data.key, draw, {out, count},
               [](int64_t value) { return static_cast<uint8_t>(value > 0); });
}

// See TensorFill::rounds_to_hf32. What is not finite stays.
void RoundToHf32(std::span<std::byte> floats) {
  const size_t count = floats.size() / sizeof(float);
  OverBlocks(count, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      int32_t bits = 0;
      std::memcpy(&bits, floats.data() + i * sizeof(bits), sizeof(bits));
      constexpr int32_t kInfinity = 0x7F800000;
      if ((bits & kInfinity) == kInfinity) continue;
      StoreAt(floats.data(), i, (((bits >> 11) + 1) >> 1) << 12);
    }
  });
}

double NumberOf(const Statistic& statistic) {
  return std::visit(
      [](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return std::nan("");
        } else {
          return static_cast<double>(value);
        }
      },
      statistic);
}

bool IsAbsent(const Statistic& statistic) {
  return std::holds_alternative<std::monostate>(statistic);
}

Skip Missing(const RecordedData& data, std::string_view problem) {
  return Skip{SkipCause::kMissingData, fmt::format("{}: {}", data.name, problem)};
}

// Elements of `from` as those that a call takes: the conversions that the preparation of an API
// asks for, and bfloat16, which .npy files hold as float32.
void Convert(DType from, std::span<const std::byte> elements, std::span<std::byte> out) {
  const auto convert = [&]<class From, class To>(From, To) {
    for (size_t i = 0; i < elements.size() / sizeof(From); ++i) {
      From value;
      std::memcpy(&value, elements.data() + i * sizeof(From), sizeof(From));
      StoreAt(out.data(), i, static_cast<To>(value));
    }
  };
  if (from == DType::kInt32) return convert(int32_t{}, int64_t{});
  if (from == DType::kInt64) return convert(int64_t{}, float{});
  for (size_t i = 0; i < elements.size() / sizeof(float); ++i) {
    const auto value = LoadAs<float>(elements.data() + i * sizeof(float));
    StoreAt(out.data(), i, static_cast<uint16_t>(FloatToNarrow(kBFloat16Format, value)));
  }
}

// From contiguous elements; bytes besides 0 and 1 are no bools, and what a framework makes of them is
// not defined.
void TakeHeld(const TensorFill& fill, const HeldData& data, std::span<std::byte> out) {
  if (data.dtype != fill.dtype) return Convert(data.dtype, data.bytes, out);
  if (!out.empty()) std::memcpy(out.data(), data.bytes.data(), out.size());
  if (fill.dtype != DType::kBool) return;
  for (std::byte& byte : out) byte = static_cast<std::byte>(byte != std::byte{0});
}

OrSkip<void> ReadRecorded(const TensorFill& fill, const RecordedData& data,
                          std::span<std::byte> out) {
  const auto file = load::OpenTensorIn(data.directory, data.name);
  if (!file) return Skip{SkipCause::kMissingData, file.error().message()};
  const TensorView view = file->view();
  if (view.dtype != data.dtype || !std::ranges::equal(view.sizes, fill.shape)) {
    return Missing(data, "changed while the calls were being run");
  }
  if (data.dtype != fill.dtype) {
    std::vector<std::byte> elements(view.size_bytes());
    CopyContiguous(view, elements);
    Convert(data.dtype, elements, out);
    return {};
  }
  CopyContiguous(view, out);
  // Bytes besides 0 and 1 are no bools, and what a framework makes of them is not defined.
  if (fill.dtype == DType::kBool) {
    for (std::byte& byte : out) byte = static_cast<std::byte>(byte != std::byte{0});
  }
  return {};
}

}  // namespace

uint64_t StreamKey(uint64_t seed, const StreamName& name) {
  constexpr uint64_t kPrime = 0x100000001B3u;
  uint64_t hash = 0xCBF29CE484222325u;
  for (const std::string_view part : {name.call, name.direction, name.path}) {
    for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
    hash *= kPrime;  // a zero byte
  }
  return StreamNumber(hash, seed);
}

bool IsMask(DType dtype, double end, double other) {
  constexpr double kTimesTheOther = 1000, kLeastNegative = -9984, kAlways = 1e30;
  constexpr double kShareOfLargest = 0.9;
  if (!(std::abs(end) >= kTimesTheOther * std::max(1.0, std::abs(other)))) return false;
  return end <= kLeastNegative || std::abs(end) >= kAlways ||
         std::abs(end) >= kShareOfLargest * LargestFinite(dtype);
}

OrSkip<ValueRange> RangeOf(const TensorRecord& record, DType dtype) {
  const Statistic& low = record.min_finite ? *record.min_finite : record.min;
  const Statistic& high = record.max_finite ? *record.max_finite : record.max;
  if (IsAbsent(low) || IsAbsent(high)) {
    return Skip{SkipCause::kBadArgument,
                "a tensor without Max and Min (expected a recording of statistics)"};
  }
  const ValueRange range{NumberOf(record.min), NumberOf(record.max), NumberOf(low), NumberOf(high)};
  const DTypeKind kind = InfoOf(dtype).kind;
  const bool has_nan = kind == DTypeKind::kFloat || kind == DTypeKind::kComplex;
  const bool is_nan = std::isnan(range.low);
  if (is_nan != std::isnan(range.high) || (is_nan && !has_nan)) {
    return Skip{SkipCause::kBadArgument, fmt::format("a tensor of type {} with Max {} and Min {}",
                                                     record.dtype_text, range.high, range.low)};
  }
  return range;
}

void Generate(const TensorFill& fill, const GeneratedData& data, std::span<std::byte> out) {
  if (out.empty()) return;
  const size_t count = out.size() / InfoOf(fill.dtype).size_bytes;
  std::byte* const to = out.data();
  switch (fill.dtype) {
    case DType::kBool:
      return GenerateBools(fill, data, count, to);
    case DType::kUInt8:
      return GenerateIntegers<uint8_t>(fill, data, count, to);
    case DType::kUInt16:
      return GenerateIntegers<uint16_t>(fill, data, count, to);
    case DType::kUInt32:
      return GenerateIntegers<uint32_t>(fill, data, count, to);
    case DType::kUInt64:
      return GenerateIntegers<uint64_t>(fill, data, count, to);
    case DType::kInt8:
      return GenerateIntegers<int8_t>(fill, data, count, to);
    case DType::kInt16:
      return GenerateIntegers<int16_t>(fill, data, count, to);
    case DType::kInt32:
      return GenerateIntegers<int32_t>(fill, data, count, to);
    case DType::kInt64:
      return GenerateIntegers<int64_t>(fill, data, count, to);
    case DType::kComplex64:
      return GenerateComplex<float>(fill, data, to);
    case DType::kComplex128:
      return GenerateComplex<double>(fill, data, to);
    default:
      GenerateReals(
          fill, data,
          [&](const RealDraw& draw, size_t elements) { FillReals(fill.dtype, draw, elements, to); },
          [&](size_t i, double value) { StoreReal(fill.dtype, value, to, i); });
      if (data.pattern == Pattern::kAscending) SortReals(fill.dtype, count, to);
  }
}

OrSkip<void> FillInputs(const PreparedCall& call, std::span<std::byte> memory) {
  for (const TensorFill& fill : call.fills) {
    const auto count = static_cast<size_t>(*ElementCount(fill.shape));
    const std::span<std::byte> out =
        memory.subspan(fill.offset, count * InfoOf(fill.dtype).size_bytes);
    if (const auto* recorded = std::get_if<RecordedData>(&fill.source)) {
      const OrSkip<void> read = ReadRecorded(fill, *recorded, out);
      if (!read) return read;
    } else if (const auto* held = std::get_if<HeldData>(&fill.source)) {
      TakeHeld(fill, *held, out);
    } else {
      Generate(fill, std::get<GeneratedData>(fill.source), out);
    }
    if (fill.rounds_to_hf32) RoundToHf32(out);
  }
  return {};
}

}  // namespace plumbline::precheck
