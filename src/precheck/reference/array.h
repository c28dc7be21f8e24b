// Arrays of the reference functions: what they read, what they return, and the loops over rows that
// all of them share. Elements are widened to double when they are read and rounded once, to the
// type of the result, when they are written.

#ifndef PLUMBLINE_PRECHECK_REFERENCE_ARRAY_H_
#define PLUMBLINE_PRECHECK_REFERENCE_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory/pages.h"
#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::precheck::reference {

// A contiguous tensor in host memory that an operator reads. Borrows `data`.
struct Operand {
  DType dtype = DType::kFloat32;
  const std::byte* data = nullptr;
  Shape shape;

  [[nodiscard]] size_t count() const;
  [[nodiscard]] size_t last() const;  // size of the last dimension; 1 of a 0-d tensor
};
using OptionalOperand = std::optional<Operand>;

// In huge pages where it is large: the faults of others take longer than most operators do.
struct FreeArray {
  size_t bytes = 0;
  void operator()(std::byte* data) const { HugePageAllocator<std::byte>().deallocate(data, bytes); }
};
using ArrayMemory = std::unique_ptr<std::byte[], FreeArray>;

// A contiguous tensor that an operator returns. Owns its memory. Movable.
class Array {
 public:
  Array() = default;
  // Uninitialised elements. Throws std::bad_alloc when there is no memory.
  Array(DType dtype, Shape shape);
  // The same; nothing when there is no memory.
  static std::optional<Array> Try(DType dtype, Shape shape);

  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::byte* data() const { return data_.get(); }
  [[nodiscard]] Operand operand() const { return {dtype_, data_.get(), shape_}; }
  [[nodiscard]] size_t count() const { return operand().count(); }
  // Gives the memory away.
  ArrayMemory Release() { return std::move(data_); }

 private:
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  ArrayMemory data_;
};

// Elements `first` to `first + count` in row-major order, as doubles. Bool is 0 and 1; integers of
// 64 bits are rounded.
void Read(const Operand& from, size_t first, size_t count, double* out);
// The same into a result, rounded to its type. Requires: it is a floating type.
void Write(Array& to, size_t first, size_t count, const double* values);
// A value as a type of at most 32 bits holds it, by way of float32 as devices compute.
double RoundTo(DType dtype, double value);

// kInvalidArgument unless the type is a floating one of 16, 32 or 64 bits.
Status CheckFloating(std::string_view argument, const Operand& operand);
// kInvalidArgument unless the shape is this one.
Status CheckShape(std::string_view argument, const Operand& operand, const Shape& expected);
// "<argument>: <problem>".
Error BadArgument(std::string_view argument, std::string_view problem);
std::string ShapeText(const Shape& shape);  // "(2, 3)"
size_t CountOf(const Shape& shape);

// The 16-bit type of the device, where it rounds in between: the recorded type or that of the
// operand. Nothing: wider types, which are not rounded in between.
std::optional<DType> NarrowType(std::optional<DType> recorded, const Operand& operand);

// An operand seen in a larger shape. Requires: Broadcast::Check().
class Broadcast {
 public:
  static Status Check(std::string_view argument, const Operand& operand, const Shape& shape);
  Broadcast(const Operand& operand, const Shape& shape);

  // First element of the operand for a row (all dimensions but the last) of the larger shape.
  [[nodiscard]] size_t Start(size_t row) const;
  // False: one element stands for a whole row.
  [[nodiscard]] bool spans_row() const { return spans_row_; }
  // `count` elements of that row, as doubles.
  void ReadRow(size_t row, size_t count, double* out) const;

 private:
  const Operand* operand_;
  std::vector<size_t> sizes_, strides_;  // of the dimensions but the last
  bool spans_row_ = true;
};

// Sum in pairs of halves, down to runs of 64. Does not depend on anything but the values.
double Sum(const double* values, size_t count);

// body(first, last) over consecutive ranges of `count` things of `elements` each, in parallel.
void ForRanges(size_t count, size_t elements, const std::function<void(size_t, size_t)>& body);
// body(first, last, sums) adds to `width` sums of its own; their totals, added in index order.
std::vector<double> SumRanges(
    size_t count, size_t width,
    const std::function<void(size_t first, size_t last, double* sums)>& body);

}  // namespace plumbline::precheck::reference

#endif  // PLUMBLINE_PRECHECK_REFERENCE_ARRAY_H_
