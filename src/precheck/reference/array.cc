#include "precheck/reference/array.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/process/parallel.h"
#include "tensor/half.h"

namespace plumbline::precheck::reference {
namespace {

// Work below this many elements is not worth a thread of its own.
constexpr size_t kElementsPerRange = size_t{1} << 14;
// Partial sums are merged in index order, so their number must not depend on threads.
constexpr size_t kPartialSums = 32;
constexpr size_t kRowsPerPartial = 64;
constexpr size_t kSumRun = 64;

template <class T>
void ReadAs(const Operand& from, size_t first, size_t count, double* out) {
  const auto* const values = reinterpret_cast<const T*>(from.data) + first;
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<double>(values[i]);
}

// One value at a time: raised calls have no narrow operands, so this is the rare case.
void ReadNarrow(NarrowFormat format, const std::byte* from, size_t count, double* out) {
  for (size_t i = 0; i < count; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, from + i * sizeof(bits), sizeof(bits));
    out[i] = static_cast<double>(NarrowToFloat(format, bits));
  }
}

bool IsReal(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

}  // namespace

size_t CountOf(const Shape& shape) {
  size_t count = 1;
  for (const int64_t size : shape) count *= static_cast<size_t>(size);
  return count;
}

size_t Operand::count() const { return CountOf(shape); }
size_t Operand::last() const { return shape.empty() ? 1 : static_cast<size_t>(shape.back()); }

Array::Array(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  // One byte at least: a result without elements still has an address to hand out.
  const size_t bytes = std::max<size_t>(1, CountOf(shape_) * InfoOf(dtype).size_bytes);
  data_ = ArrayMemory(HugePageAllocator<std::byte>().allocate(bytes), FreeArray{bytes});
}

std::optional<Array> Array::Try(DType dtype, Shape shape) try {
  return Array(dtype, std::move(shape));
} catch (const std::bad_alloc&) {
  return std::nullopt;
}

void Read(const Operand& from, size_t first, size_t count, double* out) {
  switch (from.dtype) {
    case DType::kFloat64:
      return ReadAs<double>(from, first, count, out);
    case DType::kFloat32:
      return ReadAs<float>(from, first, count, out);
    case DType::kInt64:
      return ReadAs<int64_t>(from, first, count, out);
    case DType::kInt32:
      return ReadAs<int32_t>(from, first, count, out);
    case DType::kBool:
    case DType::kUInt8:
      return ReadAs<uint8_t>(from, first, count, out);
    default:
      break;
  }
  if (const NarrowFormat* const format = NarrowFormatOf(from.dtype)) {
    ReadNarrow(*format, from.data + first * sizeof(uint16_t), count, out);
  }
}

void Write(Array& to, size_t first, size_t count, const double* values) {
  if (to.dtype() == DType::kFloat64) {
    std::copy_n(values, count, reinterpret_cast<double*>(to.data()) + first);
    return;
  }
  if (to.dtype() == DType::kFloat32) {
    auto* const out = reinterpret_cast<float*>(to.data()) + first;
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(values[i]);
    return;
  }
  const NarrowFormat format = *NarrowFormatOf(to.dtype());
  for (size_t i = 0; i < count; ++i) {
    const auto bits = static_cast<uint16_t>(FloatToNarrow(format, static_cast<float>(values[i])));
    std::memcpy(to.data() + (first + i) * sizeof(bits), &bits, sizeof(bits));
  }
}

double RoundTo(DType dtype, double value) {
  // Devices compute in float32 and round from there, so a tie is decided twice here too.
  const auto single = static_cast<float>(value);
  const NarrowFormat* const format = NarrowFormatOf(dtype);
  return static_cast<double>(format ? NarrowToFloat(*format, FloatToNarrow(*format, single))
                                    : single);
}

Error BadArgument(std::string_view argument, std::string_view problem) {
  return {ErrorCode::kInvalidArgument, fmt::format("{}: {}", argument, problem)};
}

std::string ShapeText(const Shape& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

Status CheckFloating(std::string_view argument, const Operand& operand) {
  if (IsReal(operand.dtype)) return {};
  return BadArgument(argument, fmt::format("has no place in this operator (expected float16, "
                                           "bfloat16, float32 or float64, got {})",
                                           InfoOf(operand.dtype).name));
}

Status CheckShape(std::string_view argument, const Operand& operand, const Shape& expected) {
  if (operand.shape == expected) return {};
  return BadArgument(argument, fmt::format("has another shape (expected {}, got {})",
                                           ShapeText(expected), ShapeText(operand.shape)));
}

std::optional<DType> NarrowType(std::optional<DType> recorded, const Operand& operand) {
  // The operand's own type first: where it is narrow, nothing was raised.
  for (const DType dtype : {operand.dtype, recorded.value_or(operand.dtype)}) {
    if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return dtype;
  }
  return std::nullopt;
}

Status Broadcast::Check(std::string_view argument, const Operand& operand, const Shape& shape) {
  // From the last dimension: those in front may be absent.
  bool fits = operand.shape.size() <= shape.size();
  for (size_t i = 1; fits && i <= operand.shape.size(); ++i) {
    const int64_t size = operand.shape[operand.shape.size() - i];
    fits = size == 1 || size == shape[shape.size() - i];
  }
  if (fits) return {};
  return BadArgument(argument, fmt::format("shape {} cannot be broadcast to {}",
                                           ShapeText(operand.shape), ShapeText(shape)));
}

Broadcast::Broadcast(const Operand& operand, const Shape& shape) : operand_(&operand) {
  const size_t rank = operand.shape.size();
  const size_t added = shape.size() - rank;
  if (!shape.empty()) spans_row_ = rank > 0 && operand.shape.back() == shape.back();
  // A row of the operand is its last dimension, also where that has one element.
  size_t stride = operand.last();
  for (size_t i = shape.empty() ? 0 : shape.size() - 1; i-- > 0;) {
    const int64_t own = i < added ? 1 : operand.shape[i - added];
    sizes_.push_back(static_cast<size_t>(shape[i]));
    strides_.push_back(own == 1 ? 0 : stride);
    stride *= static_cast<size_t>(own);
  }
}

size_t Broadcast::Start(size_t row) const {
  size_t start = 0;  // dimensions are kept innermost first
  for (size_t i = 0; i < sizes_.size(); ++i) {
    start += row % sizes_[i] * strides_[i];
    row /= sizes_[i];
  }
  return start;
}

void Broadcast::ReadRow(size_t row, size_t count, double* out) const {
  if (spans_row_) return Read(*operand_, Start(row), count, out);
  Read(*operand_, Start(row), 1, out);
  std::fill_n(out, count, out[0]);
}

double Sum(const double* values, size_t count) {
  if (count > kSumRun) {
    // Cut at a multiple of the run, so that only the last run is shorter.
    const size_t half = (count / 2 + kSumRun - 1) / kSumRun * kSumRun;
    return Sum(values, half) + Sum(values + half, count - half);
  }
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += values[i];
  return sum;
}

void ForRanges(size_t count, size_t elements, const std::function<void(size_t, size_t)>& body) {
  ParallelBlocks(count, std::max<size_t>(1, kElementsPerRange / std::max<size_t>(1, elements)),
                 body);
}

std::vector<double> SumRanges(size_t count, size_t width,
                              const std::function<void(size_t, size_t, double*)>& body) {
  const size_t rows =
      std::max(kRowsPerPartial, (count + kPartialSums - 1) / kPartialSums);  // by shape alone
  const size_t parts = (count + rows - 1) / rows;
  // All partial sums are kept: adding them as they come would make the order one of time.
  std::vector<double> partial(parts * width);
  ParallelFor(parts, [&](size_t part) {
    body(part * rows, std::min(count, (part + 1) * rows), partial.data() + part * width);
  });
  std::vector<double> total(width);
  for (size_t i = 0; i < partial.size(); ++i) total[i % width] += partial[i];
  return total;
}

}  // namespace plumbline::precheck::reference
