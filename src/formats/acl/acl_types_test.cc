#include "formats/acl/acl_types.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <string>

#include "formats/array/npy.h"

namespace plumbline::acl {
namespace {

// HiFloat8 from its definition, by reading the bits as text.
double HiFloat8ByText(unsigned code) {
  std::string bits;
  for (int i = 6; i >= 0; --i) bits += (code >> i & 1) != 0 ? '1' : '0';
  const double sign = code >= 128 ? -1 : 1;
  if (code == 0x80) return NAN;
  if (bits == "0000000") return 0;
  if (bits == "1101111") return sign * INFINITY;
  const std::pair<std::string, size_t> prefixes[] = {
      {"11", 4}, {"10", 3}, {"01", 2}, {"001", 1}, {"0001", 0}};
  for (const auto& [prefix, width] : prefixes) {
    if (!bits.starts_with(prefix)) continue;
    const std::string field = bits.substr(prefix.size(), width);
    const std::string mantissa = bits.substr(prefix.size() + width);
    double exponent = 0;
    if (width > 0) {
      // The hidden leading one, then the bits behind the sign.
      exponent = std::stoi("1" + field.substr(1), nullptr, 2);
      if (field[0] == '1') exponent = -exponent;
    }
    const double fraction = std::stoi(mantissa, nullptr, 2) / std::pow(2, mantissa.size());
    return sign * std::pow(2, exponent) * (1 + fraction);
  }
  return sign * std::pow(2, std::stoi(bits.substr(4), nullptr, 2) - 23);
}

double E5M2ByDefinition(unsigned code) {
  const double sign = code >= 128 ? -1 : 1;
  const int exponent = static_cast<int>(code >> 2 & 31), mantissa = static_cast<int>(code & 3);
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * mantissa / 4.0 * std::pow(2, -14);
  return sign * (1 + mantissa / 4.0) * std::pow(2, exponent - 15);
}

double E4M3ByDefinition(unsigned code) {
  const double sign = code >= 128 ? -1 : 1;
  const int exponent = static_cast<int>(code >> 3 & 15), mantissa = static_cast<int>(code & 7);
  if ((code & 0x7f) == 0x7f) return NAN;
  if (exponent == 0) return sign * mantissa / 8.0 * std::pow(2, -6);
  return sign * (1 + mantissa / 8.0) * std::pow(2, exponent - 7);
}

double E8M0ByDefinition(unsigned code) { return code == 255 ? NAN : std::pow(2, code - 127.0); }

void ExpectValue(double expected, float got, unsigned code) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(got)) << code;
  } else {
    EXPECT_EQ(std::bit_cast<uint64_t>(expected), std::bit_cast<uint64_t>(double{got})) << code;
  }
}

// All 256 codes, as float32.
std::vector<float> DecodeAllCodes(int32_t type) {
  std::vector<std::byte> codes(256);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i);
  Result<Elements> elements = Decode(type, Shape{16, 16}, codes);
  EXPECT_TRUE(elements);
  EXPECT_EQ(elements->sizes, (Shape{16, 16}));
  const auto npy = npy::MakeContents(elements->dtype, elements->sizes, elements->bytes);
  EXPECT_TRUE(npy);
  EXPECT_EQ(npy->dtype, DType::kFloat32);
  std::vector<float> values(256);
  EXPECT_EQ(npy->data.size(), 1024U);
  std::memcpy(values.data(), npy->data.data(), 1024);
  return values;
}

TEST(AclTypes, EveryCodeOfTheSmallFloats) {
  const std::map<int32_t, double (*)(unsigned)> types = {
      {33, HiFloat8ByText}, {34, E5M2ByDefinition}, {35, E4M3ByDefinition}, {36, E8M0ByDefinition}};
  for (const auto& [type, reference] : types) {
    const std::vector<float> values = DecodeAllCodes(type);
    for (unsigned code = 0; code < 256; ++code) ExpectValue(reference(code), values[code], code);
  }
}

TEST(AclTypes, KnownValues) {
  EXPECT_EQ(HiFloat8Value(0x08), 1.0F);
  EXPECT_EQ(HiFloat8Value(0x10), 2.0F);
  EXPECT_EQ(HiFloat8Value(0xef), -INFINITY);
  EXPECT_EQ(HiFloat8Value(0x01), std::ldexp(1.0F, -22));
  EXPECT_EQ(HiFloat8Value(0x6e), 32768.0F);  // the largest finite one
  EXPECT_TRUE(std::isnan(DecodeAllCodes(35)[0x7f]));
  EXPECT_EQ(DecodeAllCodes(34)[0xfc], -INFINITY);
  EXPECT_EQ(Float8E8M0Value(0), std::ldexp(1.0F, -127));
}

template <class T>
std::vector<T> DecodeAs(int32_t type, const std::optional<Shape>& sizes, std::string_view data) {
  const auto elements = Decode(type, sizes, std::as_bytes(std::span(data)));
  EXPECT_TRUE(elements) << elements.error().message();
  if (!elements || elements->bytes.empty()) return {};
  std::vector<T> values(elements->bytes.size() / sizeof(T));
  std::memcpy(values.data(), elements->bytes.data(), values.size() * sizeof(T));
  return values;
}

TEST(AclTypes, PackedElements) {
  EXPECT_EQ(DecodeAs<uint8_t>(29, Shape{8}, "\x81"),
            (std::vector<uint8_t>{1, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(DecodeAs<uint8_t>(29, Shape{3, 3}, "\x81\x80").size(), 9U);
  EXPECT_EQ(DecodeAs<int8_t>(28, Shape{3}, "\x8f\x07"), (std::vector<int8_t>{-1, -8, 7}));
  EXPECT_EQ(DecodeAs<int8_t>(28, std::nullopt, "\x21"), (std::vector<int8_t>{1, 2}));
  EXPECT_EQ(DecodeAs<float>(32, Shape{1}, std::string("\x00\x3c\x00\xc0", 4)),
            (std::vector<float>{1, -2}));
}

TEST(AclTypes, BfloatWidensExactly) {
  const std::string codes("\xc0\x7f\x80\xff\x01\x00\x80\x3f", 8);
  Result<Elements> elements = Decode(27, Shape{4}, std::as_bytes(std::span(codes)));
  ASSERT_TRUE(elements);
  const auto npy = npy::MakeContents(elements->dtype, elements->sizes, elements->bytes);
  ASSERT_TRUE(npy);
  uint32_t bits[4];
  std::memcpy(bits, npy->data.data(), sizeof(bits));
  EXPECT_EQ(bits[0], 0x7fc00000U);
  EXPECT_EQ(bits[1], 0xff800000U);
  EXPECT_EQ(bits[2], 0x00010000U);
  EXPECT_EQ(bits[3], 0x3f800000U);
}

TEST(AclTypes, ShapesAndSizes) {
  EXPECT_EQ(DecodeAs<int16_t>(5, Shape{}, "abcd").size(), 1U);  // surplus is ignored
  EXPECT_EQ(DecodeAs<int16_t>(5, std::nullopt, "abcd").size(), 2U);
  EXPECT_EQ(DecodeAs<int16_t>(5, Shape{0, 3}, "").size(), 0U);
  const auto elements = Decode(0, Shape{2}, std::as_bytes(std::span("abcdefg", 7)));
  ASSERT_TRUE(elements);
  EXPECT_EQ(elements->sizes, Shape{7});  // unknown elements are bytes, whatever the shape says
  for (const Shape& sizes : {Shape{3}, Shape{INT64_MAX}, Shape{INT64_MAX, 3}}) {
    const auto cut = Decode(5, sizes, std::as_bytes(std::span("abcd", 4)));
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().code(), ErrorCode::kCorrupt);
  }
}

TEST(AclTypes, TypesThatCannotBeRead) {
  for (const int32_t type : {14, 15, 24, 25, 26, 30, 31, 37, 38, 39, 40, 41, -1, 1000}) {
    const auto elements = Decode(type, Shape{1}, std::as_bytes(std::span("abcdefgh", 8)));
    ASSERT_FALSE(elements) << type;
    EXPECT_EQ(elements.error().code(), ErrorCode::kUnsupported);
    EXPECT_NE(elements.error().message().find(TypeName(type)), std::string::npos);
  }
}

TEST(AclTypes, RowsStandAtTheirNumbers) {
  for (int32_t code = 0; code <= 40; ++code) {
    ASSERT_NE(FindType(code), nullptr);
    EXPECT_EQ(FindType(code)->code, code);
  }
  EXPECT_EQ(TypeName(27), "BF16");
  EXPECT_EQ(TypeName(41), "TYPE_41");
  const std::map<int32_t, std::string> nano = {
      {0, "FLOAT"}, {1, "FLOAT16"},    {3, "INT32"},  {9, "INT64"},   {12, "BOOL"},
      {27, "BF16"}, {28, "UNDEFINED"}, {32, "UINT2"}, {5, "TYPE_-1"}, {33, "TYPE_-1"}};
  for (const auto& [code, name] : nano) EXPECT_EQ(TypeName(CodeOfNanoType(code)), name);
}

}  // namespace
}  // namespace plumbline::acl
