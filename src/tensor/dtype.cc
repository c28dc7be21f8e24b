// The one dtype table.

#include <algorithm>
#include <array>
#include <cmath>

#include "plumbline/tensor.h"

namespace plumbline {
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

}  // namespace plumbline
