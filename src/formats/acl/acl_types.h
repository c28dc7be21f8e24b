// Element types of device dumps: their numbers, names, and elements as plain dtypes
// (docs/formats/acl_dump.md).

#ifndef PLUMBLINE_FORMATS_ACL_ACL_TYPES_H_
#define PLUMBLINE_FORMATS_ACL_ACL_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/tensor.h"

namespace plumbline::acl {

// What records of nano dumps and newer overflow records begin with.
inline constexpr uint32_t kRecordMagic = 0x5a5a5a5a;

// How the bytes of a tensor become elements.
enum class Encoding : uint8_t {
  kPlain,        // the elements as they are
  kRawBytes,     // bytes without element structure: one dimension
  kHiFloat8,     // to float32, by a table as the next
  kFloat8E8M0,   // to float32: powers of two
  kComplex32,    // two float16 to two float32
  kNibbles,      // signed, two a byte, low half first; to int8
  kBits,         // eight a byte, most significant first; to uint8
  kUnsupported,  // how they are packed is not documented, or they are no numbers
};

// One row of the table of element types.
struct TypeInfo {
  int32_t code;                // in the message
  std::string_view name;       // "FLOAT16"
  std::string_view file_name;  // "float16", in names of .bin files
  Encoding encoding;
  DType dtype;   // of the decoded elements; without meaning for kUnsupported
  uint8_t bits;  // of one stored element; 0: unknown
};

// Null for a number that no release has.
const TypeInfo* FindType(int32_t code);
// Name of a type, or TYPE_{n}.
std::string TypeName(int32_t code);
// The number that stands for elements of `dtype`; nothing for the types that devices lack.
std::optional<int32_t> CodeOfDType(DType dtype);
// Nano dumps number the types in another way. -1 for a number without a type.
int32_t CodeOfNanoType(int32_t nano_code);

// Row-major elements of one tensor. `bytes` lie in the dump, at any address, or in `owned`.
// Move-only.
struct Elements {
  Elements() = default;
  Elements(Elements&&) = default;
  Elements& operator=(Elements&&) = default;

  DType dtype = DType::kFloat32;
  Shape sizes;
  std::span<const std::byte> bytes;  // count of elements * width of dtype
  std::vector<std::byte> owned;
  std::vector<int64_t> strides;

  // Moves the elements into `owned` if their address is not a multiple of their width.
  void Align();
  // Valid while this object lives and is not moved from. Requires: Align() was called.
  [[nodiscard]] TensorView view() const { return {dtype, bytes.data(), sizes, strides}; }
};

// The elements of type `code` in `data`; surplus bytes are ignored. Without `sizes` there is one
// dimension of as many as the bytes hold. kUnsupported for a type that cannot be read, kCorrupt if
// the bytes are too few (the message has no path).
Result<Elements> Decode(int32_t code, const std::optional<Shape>& sizes,
                        std::span<const std::byte> data);

// What Decode() would give, without the elements: their dtype and sizes. Its errors.
struct ElementsPlan {
  const TypeInfo* type = nullptr;
  Shape sizes;
  int64_t count = 0;
  uint64_t stored_bytes = 0;
};
Result<ElementsPlan> PlanDecode(int32_t code, const std::optional<Shape>& sizes,
                                std::span<const std::byte> data);

// The value of one HiFloat8: a sign, a prefix of variable length that says how many exponent bits
// follow, and one to three mantissa bits.
float HiFloat8Value(uint8_t bits);
// The value of one OCP E8M0 scale: 2^(bits - 127), 0xFF is NaN.
float Float8E8M0Value(uint8_t bits);

}  // namespace plumbline::acl

#endif  // PLUMBLINE_FORMATS_ACL_ACL_TYPES_H_
