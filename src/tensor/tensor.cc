#include "plumbline/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <new>

namespace plumbline {

// The one dtype table.

namespace {

using enum DType;

// In the order of the enumerators. NumPy has no bfloat16 and no float8 of its own.
constexpr std::array<DTypeInfo, kDTypeCount> kTable = {{
    {DType::kBool, DTypeKind::kBool, 1, 0, "bool", "torch.bool", "Bool", "|b1"},
    {kUInt8, DTypeKind::kUnsigned, 1, 0, "uint8", "torch.uint8", "UInt8", "|u1"},
    {kUInt16, DTypeKind::kUnsigned, 2, 0, "uint16", "torch.uint16", "UInt16", "<u2"},
    {kUInt32, DTypeKind::kUnsigned, 4, 0, "uint32", "torch.uint32", "UInt32", "<u4"},
    {kUInt64, DTypeKind::kUnsigned, 8, 0, "uint64", "torch.uint64", "UInt64", "<u8"},
    {kInt8, DTypeKind::kSigned, 1, 0, "int8", "torch.int8", "Int8", "|i1"},
    {kInt16, DTypeKind::kSigned, 2, 0, "int16", "torch.int16", "Int16", "<i2"},
    {kInt32, DTypeKind::kSigned, 4, 0, "int32", "torch.int32", "Int32", "<i4"},
    {kInt64, DTypeKind::kSigned, 8, 0, "int64", "torch.int64", "Int64", "<i8"},
    {kFloat16, DTypeKind::kFloat, 2, 11, "float16", "torch.float16", "Float16", "<f2"},
    {kBFloat16, DTypeKind::kFloat, 2, 8, "bfloat16", "torch.bfloat16", "BFloat16", ""},
    {kFloat32, DTypeKind::kFloat, 4, 24, "float32", "torch.float32", "Float32", "<f4"},
    {kFloat64, DTypeKind::kFloat, 8, 53, "float64", "torch.float64", "Float64", "<f8"},
    {kComplex64, DTypeKind::kComplex, 8, 24, "complex64", "torch.complex64", "Complex64", "<c8"},
    {kComplex128, DTypeKind::kComplex, 16, 53, "complex128", "torch.complex128", "Complex128",
     "<c16"},
    {kFloat8E4M3FN, DTypeKind::kFloat, 1, 4, "float8_e4m3fn", "torch.float8_e4m3fn", "Float8E4M3FN",
     ""},
    {kFloat8E5M2, DTypeKind::kFloat, 1, 3, "float8_e5m2", "torch.float8_e5m2", "Float8E5M2", ""},
    {kFloat8E4M3FNUZ, DTypeKind::kFloat, 1, 4, "float8_e4m3fnuz", "torch.float8_e4m3fnuz", "", ""},
    {kFloat8E5M2FNUZ, DTypeKind::kFloat, 1, 3, "float8_e5m2fnuz", "torch.float8_e5m2fnuz", "", ""},
}};

constexpr bool RowsAreInOrder() {
  for (size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<size_t>(kTable[i].dtype) != i) return false;
  }
  return true;
}
static_assert(RowsAreInOrder());

struct Alias {
  std::string_view text;
  DType dtype;
};

// Second names that the frameworks accept for the same types.
constexpr std::array kAliases = {
    Alias{"half", kFloat16},     Alias{"float", kFloat32},      Alias{"double", kFloat64},
    Alias{"short", kInt16},      Alias{"int", kInt32},          Alias{"long", kInt64},
    Alias{"cfloat", kComplex64}, Alias{"cdouble", kComplex128}, Alias{"bool_", DType::kBool},
};

std::optional<DType> ParseDescr(std::string_view text) {
  // The byte order mark may be missing or say "native"; for one byte it does not matter.
  if (!text.empty() && (text[0] == '<' || text[0] == '=' || text[0] == '|')) text.remove_prefix(1);
  if (text == "?") return DType::kBool;
  for (const DTypeInfo& row : kTable) {
    if (!row.numpy_descr.empty() && row.numpy_descr.substr(1) == text) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace

const DTypeInfo& InfoOf(DType dtype) { return kTable[static_cast<size_t>(dtype)]; }

double UnitRoundoff(DType dtype) {
  const int bits = InfoOf(dtype).significand_bits;
  return bits == 0 ? 0.0 : std::ldexp(1.0, -bits);
}

namespace {

std::optional<DType> LookUp(std::string_view text) {
  for (const DTypeInfo& row : kTable) {
    if (text == row.name || text == row.torch_name || text == row.mindspore_name ||
        text == row.numpy_descr) {
      return row.dtype;
    }
  }
  std::string_view plain = text;
  for (std::string_view prefix : {"torch.", "mindspore.", "numpy."}) {
    if (plain.starts_with(prefix)) {
      plain.remove_prefix(prefix.size());
      for (const DTypeInfo& row : kTable) {
        if (plain == row.name) return row.dtype;
      }
      break;
    }
  }
  for (const Alias& alias : kAliases) {
    if (alias.text == plain) return alias.dtype;
  }
  return ParseDescr(text);
}

}  // namespace

std::optional<DType> ParseDType(std::string_view text) {
  if (text.empty()) return std::nullopt;
  // Rows of one table have few types, and equal ones stand together.
  constexpr size_t kMostKept = 32;
  struct Last {
    std::array<char, kMostKept> text{};
    size_t size = 0;
    std::optional<DType> dtype;
  };
  thread_local Last last;
  if (text == std::string_view(last.text.data(), last.size)) return last.dtype;
  const std::optional<DType> found = LookUp(text);
  if (text.size() <= kMostKept) {
    std::copy(text.begin(), text.end(), last.text.begin());
    last.size = text.size();
    last.dtype = found;
  }
  return found;
}

Result<int64_t> ElementCount(std::span<const int64_t> sizes) {
  int64_t count = 1;
  bool overflow = false;
  for (const int64_t size : sizes) {
    if (size < 0) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("shape: dimension is {} (expected 0 or more)", size));
    }
    // A later zero makes the product 0, so an overflow counts only at the end.
    if (size == 0) count = 0;
    if (count != 0 && __builtin_mul_overflow(count, size, &count)) {
      overflow = true;
      count = 1;
    }
  }
  if (overflow && count != 0) {
    return Error(ErrorCode::kCorrupt, "shape: number of elements exceeds 2^63 - 1");
  }
  return count;
}

std::vector<int64_t> ContiguousStrides(std::span<const int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    // Wraps only for shapes that ElementCount() refuses or that hold no element.
    if (sizes[i] != 0 && __builtin_mul_overflow(stride, sizes[i], &stride)) stride = 0;
  }
  return strides;
}

namespace {

bool HasZero(std::span<const int64_t> sizes) {
  return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
}

}  // namespace

int64_t TensorView::element_count() const {
  // The sizes beside a zero may be anything; all others were checked by ElementCount().
  if (HasZero(sizes)) return 0;
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

size_t TensorView::size_bytes() const {
  return static_cast<size_t>(element_count()) * InfoOf(dtype).size_bytes;
}

bool TensorView::is_contiguous() const {
  if (HasZero(sizes)) return true;
  int64_t stride = 1;
  bool ordered = true;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) continue;
    ordered = ordered && strides[i] == stride;
    stride *= sizes[i];
  }
  return ordered;
}

Result<Tensor> Tensor::Copy(const TensorView& view) {
  PL_TRY_ASSIGN(const int64_t count, ElementCount(view.sizes));
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(count), size_t{InfoOf(view.dtype).size_bytes},
                             &bytes)) {
    return Error(ErrorCode::kCorrupt, "shape: number of bytes exceeds 2^64 - 1");
  }
  Tensor tensor;
  tensor.dtype_ = view.dtype;
  // The only statement here that allocates in proportion to input; everything else is tiny.
  std::byte* memory = bytes == 0 ? nullptr : new (std::nothrow) std::byte[bytes];
  if (bytes != 0 && memory == nullptr) {
    return Error(ErrorCode::kInternal, fmt::format("tensor copy: no memory for {} bytes", bytes));
  }
  tensor.data_.reset(memory);
  tensor.sizes_.assign(view.sizes.begin(), view.sizes.end());
  tensor.strides_ = ContiguousStrides(view.sizes);
  CopyContiguous(view, {memory, bytes});
  return tensor;
}

TensorView Tensor::view() const { return {dtype_, data_.get(), sizes_, strides_}; }

}  // namespace plumbline
