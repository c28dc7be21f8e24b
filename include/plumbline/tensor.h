// Tensors as plumbline sees them: element type, shape, a borrowed view and an owned copy.

#ifndef PLUMBLINE_TENSOR_H_
#define PLUMBLINE_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

// Element types. The numbers are stored in journals and must not change.
enum class DType : uint8_t {
  kBool = 0,
  kUInt8 = 1,
  kUInt16 = 2,
  kUInt32 = 3,
  kUInt64 = 4,
  kInt8 = 5,
  kInt16 = 6,
  kInt32 = 7,
  kInt64 = 8,
  kFloat16 = 9,
  kBFloat16 = 10,
  kFloat32 = 11,
  kFloat64 = 12,
  kComplex64 = 13,       // two float32: real, imaginary
  kComplex128 = 14,      // two float64
  kFloat8E4M3FN = 15,    // OCP E4M3: no infinities, NaN is S.1111.111
  kFloat8E5M2 = 16,      // OCP E5M2: IEEE-like, with infinities
  kFloat8E4M3FNUZ = 17,  // bias 8, one NaN (0x80), no negative zero
  kFloat8E5M2FNUZ = 18,  // bias 16, one NaN (0x80), no negative zero
};
inline constexpr int kDTypeCount = 19;

// What arithmetic applies to an element type.
enum class DTypeKind : uint8_t { kBool, kUnsigned, kSigned, kFloat, kComplex };

// One row of the dtype table. Static data; valid for the life of the program.
struct DTypeInfo {
  DType dtype;
  DTypeKind kind;
  uint8_t size_bytes;               // of one element; complex counts both parts
  int8_t significand_bits;          // including the hidden bit; 0 for bool and integers
  std::string_view name;            // "bfloat16"
  std::string_view torch_name;      // "torch.bfloat16"
  std::string_view mindspore_name;  // "BFloat16"; empty if MindSpore has none
  std::string_view numpy_descr;     // "<f4"; empty if NumPy has none
};

// The table row of a dtype. Total: every enumerator has a row.
const DTypeInfo& InfoOf(DType dtype);

// Half the spacing of values around 1 (2^-significand_bits): the largest relative error of rounding
// to this type. 0 for bool and integers. For complex types that of one part.
double UnitRoundoff(DType dtype);

// The dtype spelled `text` by any framework ("torch.float32", "Float32", "float32", "<f4"), or
// nothing if no row has that spelling.
std::optional<DType> ParseDType(std::string_view text);

// Sizes of the dimensions, outermost first. Empty for a 0-d tensor.
using Shape = std::vector<int64_t>;

// Product of the dimensions. kCorrupt if one is negative or the product overflows int64_t.
Result<int64_t> ElementCount(std::span<const int64_t> sizes);

// Row-major strides in elements, as the frameworks compute them (a dimension of size 0 counts as
// 1).
std::vector<int64_t> ContiguousStrides(std::span<const int64_t> sizes);

// Borrowed, read-only tensor in host memory. Owns nothing: data, sizes and strides must outlive
// it. Thread-compatible. Strides are in elements and may be 0 (expanded) or negative.
// Requires: every index inside `sizes` addresses readable memory.
struct TensorView {
  DType dtype = DType::kFloat32;
  const std::byte* data = nullptr;  // element (0, 0, ...), not the start of the storage
  std::span<const int64_t> sizes;
  std::span<const int64_t> strides;  // same length as sizes

  [[nodiscard]] int64_t element_count() const;  // 1 for 0-d
  [[nodiscard]] size_t size_bytes() const;      // element_count() * element size
  [[nodiscard]] bool is_contiguous() const;     // row-major without gaps; true when empty
};

// Owned, contiguous (row-major) tensor. Movable, not copyable.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Tensor&&) = default;
  Tensor& operator=(Tensor&&) = default;

  // Copies `view` into contiguous memory. kInternal when memory runs out.
  static Result<Tensor> Copy(const TensorView& view);

  // View of the contents; valid while this object lives and is not moved from.
  [[nodiscard]] TensorView view() const;

 private:
  DType dtype_ = DType::kFloat32;
  Shape sizes_;
  std::vector<int64_t> strides_;
  std::unique_ptr<std::byte[]> data_;  // null when there are no elements
};

// Copies the elements of `view` into `out` in row-major order.
// Requires: out.size() == view.size_bytes().
void CopyContiguous(const TensorView& view, std::span<std::byte> out);

}  // namespace plumbline

#endif  // PLUMBLINE_TENSOR_H_
