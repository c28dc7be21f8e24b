#include "formats/acl/acl_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "tensor/half.h"

namespace plumbline::acl {
namespace {

using Bytes = std::span<const std::byte>;

constexpr TypeInfo Unsupported(int32_t code, std::string_view name, std::string_view file_name) {
  return {code, name, file_name, Encoding::kUnsupported, DType::kUInt8, 0};
}

// In the order of their numbers, without gaps.
constexpr TypeInfo kTypes[] = {
    {0, "UNDEFINED", "int8", Encoding::kRawBytes, DType::kInt8, 8},
    {1, "FLOAT", "float32", Encoding::kPlain, DType::kFloat32, 32},
    {2, "FLOAT16", "float16", Encoding::kPlain, DType::kFloat16, 16},
    {3, "INT8", "int8", Encoding::kPlain, DType::kInt8, 8},
    {4, "UINT8", "uint8", Encoding::kPlain, DType::kUInt8, 8},
    {5, "INT16", "int16", Encoding::kPlain, DType::kInt16, 16},
    {6, "UINT16", "uint16", Encoding::kPlain, DType::kUInt16, 16},
    {7, "INT32", "int32", Encoding::kPlain, DType::kInt32, 32},
    {8, "INT64", "int64", Encoding::kPlain, DType::kInt64, 64},
    {9, "UINT32", "uint32", Encoding::kPlain, DType::kUInt32, 32},
    {10, "UINT64", "uint64", Encoding::kPlain, DType::kUInt64, 64},
    {11, "BOOL", "bool", Encoding::kPlain, DType::kBool, 8},
    {12, "DOUBLE", "float64", Encoding::kPlain, DType::kFloat64, 64},
    {13, "STRING", "string", Encoding::kRawBytes, DType::kUInt8, 8},
    Unsupported(14, "DUAL_SUB_INT8", "dual_sub_int8"),
    Unsupported(15, "DUAL_SUB_UINT8", "dual_sub_uint8"),
    {16, "COMPLEX64", "complex64", Encoding::kPlain, DType::kComplex64, 64},
    {17, "COMPLEX128", "complex128", Encoding::kPlain, DType::kComplex128, 128},
    {18, "QINT8", "int8", Encoding::kPlain, DType::kInt8, 8},
    {19, "QINT16", "int16", Encoding::kPlain, DType::kInt16, 16},
    {20, "QINT32", "int32", Encoding::kPlain, DType::kInt32, 32},
    {21, "QUINT8", "uint8", Encoding::kPlain, DType::kUInt8, 8},
    {22, "QUINT16", "uint16", Encoding::kPlain, DType::kUInt16, 16},
    {23, "RESOURCE", "int64", Encoding::kPlain, DType::kInt64, 64},
    Unsupported(24, "STRING_REF", "string_ref"),
    Unsupported(25, "DUAL", "dual"),
    Unsupported(26, "VARIANT", "variant"),
    {27, "BF16", "bfloat16", Encoding::kPlain, DType::kBFloat16, 16},
    {28, "INT4", "int4", Encoding::kNibbles, DType::kInt8, 4},
    {29, "UINT1", "uint1", Encoding::kBits, DType::kUInt8, 1},
    Unsupported(30, "INT2", "int2"),
    Unsupported(31, "UINT2", "uint2"),
    {32, "COMPLEX32", "complex32", Encoding::kComplex32, DType::kComplex64, 32},
    {33, "HIFLOAT8", "hifloat8", Encoding::kHiFloat8, DType::kFloat32, 8},
    {34, "FLOAT8_E5M2", "float8_e5m2", Encoding::kPlain, DType::kFloat8E5M2, 8},
    {35, "FLOAT8_E4M3FN", "float8_e4m3fn", Encoding::kPlain, DType::kFloat8E4M3FN, 8},
    {36, "FLOAT8_E8M0", "float8_e8m0", Encoding::kFloat8E8M0, DType::kFloat32, 8},
    Unsupported(37, "FLOAT6_E3M2", "float6_e3m2"),
    Unsupported(38, "FLOAT6_E2M3", "float6_e2m3"),
    Unsupported(39, "FLOAT4_E2M1", "float4_e2m1"),
    Unsupported(40, "FLOAT4_E1M2", "float4_e1m2"),
};

// By the number of a nano dump.
constexpr int32_t kOfNano[] = {1,  2,  3,  7,  4,  -1, 5,  6,  9,  8,  10, 12, 11, 13, 14, 15, 16,
                               17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 0,  28, 29, 30, 31};

uint64_t BitsOf(const TypeInfo& info) { return info.bits; }

// Bytes of `count` elements as they are stored; nothing if they are more than can be.
std::optional<uint64_t> StoredBytes(const TypeInfo& info, int64_t count) {
  const auto elements = static_cast<uint64_t>(count);
  const uint64_t per_byte = std::max<uint64_t>(8 / BitsOf(info), 1);
  if (per_byte > 1) return elements / per_byte + (elements % per_byte != 0 ? 1 : 0);
  const uint64_t width = BitsOf(info) / 8;
  if (elements > std::numeric_limits<uint64_t>::max() / width) return std::nullopt;
  return elements * width;
}

template <float (*Value)(uint8_t)>
std::array<float, 256> TableOf() {
  std::array<float, 256> table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = Value(static_cast<uint8_t>(i));
  return table;
}

void Store(float value, std::byte* out) { std::memcpy(out, &value, sizeof(value)); }

void DecodeByTable(const std::array<float, 256>& table, Bytes data, std::byte* out) {
  for (const std::byte one : data) {
    Store(table[std::to_integer<uint8_t>(one)], out);
    out += sizeof(float);
  }
}

// `count` elements, which are there, to `out`.
void DecodeTo(const TypeInfo& info, Bytes data, size_t count, std::byte* out) {
  static const std::array<float, 256> hifloat8 = TableOf<HiFloat8Value>();
  static const std::array<float, 256> e8m0 = TableOf<Float8E8M0Value>();
  switch (info.encoding) {
    case Encoding::kHiFloat8:
      return DecodeByTable(hifloat8, data, out);
    case Encoding::kFloat8E8M0:
      return DecodeByTable(e8m0, data, out);
    case Encoding::kComplex32:
      for (size_t i = 0; i < 2 * count; ++i) {
        uint16_t half = 0;
        std::memcpy(&half, data.data() + 2 * i, sizeof(half));
        Store(NarrowToFloat(kFloat16Format, half), out + i * sizeof(float));
      }
      return;
    case Encoding::kNibbles:
      for (size_t i = 0; i < count; ++i) {
        const auto pair = std::to_integer<unsigned>(data[i / 2]);
        const unsigned nibble = (i % 2 == 0 ? pair : pair >> 4) & 0xf;
        out[i] = static_cast<std::byte>(nibble >= 8 ? nibble | 0xf0 : nibble);
      }
      return;
    case Encoding::kBits:
      for (size_t i = 0; i < count; ++i) {
        out[i] = static_cast<std::byte>(std::to_integer<unsigned>(data[i / 8]) >> (7 - i % 8) & 1);
      }
      return;
    case Encoding::kPlain:
    case Encoding::kRawBytes:
    case Encoding::kUnsupported:
      return;
  }
}

}  // namespace

const TypeInfo* FindType(int32_t code) {
  if (code < 0 || static_cast<size_t>(code) >= std::size(kTypes)) return nullptr;
  return &kTypes[code];
}

std::string TypeName(int32_t code) {
  const TypeInfo* info = FindType(code);
  return info != nullptr ? std::string(info->name) : fmt::format("TYPE_{}", code);
}

std::optional<int32_t> CodeOfDType(DType dtype) {
  for (const TypeInfo& info : kTypes) {
    if (info.encoding == Encoding::kPlain && info.dtype == dtype) return info.code;
  }
  return std::nullopt;
}

int32_t CodeOfNanoType(int32_t nano_code) {
  if (nano_code < 0 || static_cast<size_t>(nano_code) >= std::size(kOfNano)) return -1;
  return kOfNano[nano_code];
}

void Elements::Align() {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % InfoOf(dtype).size_bytes == 0) return;
  owned.assign(bytes.begin(), bytes.end());
  bytes = owned;
}

Result<ElementsPlan> PlanDecode(int32_t code, const std::optional<Shape>& sizes, Bytes data) {
  const TypeInfo* info = FindType(code);
  if (info == nullptr || info->encoding == Encoding::kUnsupported) {
    return Error(
        ErrorCode::kUnsupported,
        fmt::format("data type {} ({}): its elements cannot be read", TypeName(code), code));
  }
  const bool is_flat = !sizes || info->encoding == Encoding::kRawBytes;
  ElementsPlan plan{info, {}};
  plan.sizes = is_flat ? Shape{static_cast<int64_t>(data.size() * 8 / BitsOf(*info))} : *sizes;
  PL_TRY_ASSIGN(plan.count, ElementCount(plan.sizes));
  const std::optional<uint64_t> stored = StoredBytes(*info, plan.count);
  if (!stored || *stored > data.size()) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{} bytes of elements (expected {} for shape [{}] of {})", data.size(),
                             stored ? fmt::to_string(*stored) : "more than 2^64",
                             fmt::join(plan.sizes, ", "), info->name));
  }
  plan.stored_bytes = *stored;
  return plan;
}

Result<Elements> Decode(int32_t code, const std::optional<Shape>& sizes, Bytes data) {
  PL_TRY_ASSIGN(ElementsPlan plan, PlanDecode(code, sizes, data));
  Elements elements;
  elements.dtype = plan.type->dtype;
  elements.sizes = std::move(plan.sizes);
  elements.strides = ContiguousStrides(elements.sizes);
  elements.bytes = data.first(plan.stored_bytes);
  const Encoding encoding = plan.type->encoding;
  if (encoding != Encoding::kPlain && encoding != Encoding::kRawBytes) {
    const auto count = static_cast<size_t>(plan.count);
    elements.owned.resize(count * InfoOf(elements.dtype).size_bytes);
    DecodeTo(*plan.type, elements.bytes, count, elements.owned.data());
    elements.bytes = elements.owned;
  }
  return elements;
}

float HiFloat8Value(uint8_t bits) {
  constexpr uint8_t kZero = 0x00, kNaN = 0x80, kInfinity = 0x6f, kMinusInfinity = 0xef;
  if (bits == kZero) return 0;
  if (bits == kNaN) return std::numeric_limits<float>::quiet_NaN();
  if (bits == kInfinity) return std::numeric_limits<float>::infinity();
  if (bits == kMinusInfinity) return -std::numeric_limits<float>::infinity();
  const float sign = bits >= 0x80 ? -1.0F : 1.0F;
  const unsigned rest = bits & 0x7fU;
  if (rest < 8) return sign * std::ldexp(1.0F, static_cast<int>(rest) - 23);  // below all prefixes
  // Width of the prefix, of the exponent, and of the mantissa: 7 in all.
  struct Widths {
    unsigned exponent, mantissa;
  };
  const Widths widths = rest >= 0x60   ? Widths{4, 1}
                        : rest >= 0x40 ? Widths{3, 2}
                        : rest >= 0x20 ? Widths{2, 3}
                        : rest >= 0x10 ? Widths{1, 3}
                                       : Widths{0, 3};
  const unsigned mantissa = rest & ((1U << widths.mantissa) - 1);
  int exponent = 0;
  if (widths.exponent > 0) {
    const unsigned field = rest >> widths.mantissa & ((1U << widths.exponent) - 1);
    const unsigned leading = 1U << (widths.exponent - 1);
    exponent = static_cast<int>(leading + (field & (leading - 1)));
    if ((field & leading) != 0) exponent = -exponent;
  }
  const float significand =
      1.0F + static_cast<float>(mantissa) / static_cast<float>(1U << widths.mantissa);
  return sign * std::ldexp(significand, exponent);
}

float Float8E8M0Value(uint8_t bits) {
  if (bits == 0xff) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0F, static_cast<int>(bits) - 127);
}

}  // namespace plumbline::acl
