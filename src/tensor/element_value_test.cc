#include "tensor/element_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

namespace plumbline {
namespace {

// Where every number begins at an odd address.
template <class... T>
std::vector<std::byte> Stored(T... values) {
  std::vector<std::byte> bytes(1 + (sizeof(T) + ...));
  std::byte* to = bytes.data() + 1;
  const auto add = [&to](const auto& value) {
    std::memcpy(to, &value, sizeof(value));
    to += sizeof(value);
  };
  (add(values), ...);
  return bytes;
}

template <class T>
double DoubleOf(DType dtype, T value) {
  return ElementAsDouble(dtype, Stored(value).data() + 1);
}

TEST(ElementValue, IntegersKeepSignAndWidth) {
  EXPECT_EQ(DoubleOf<uint8_t>(DType::kUInt8, 255), 255);
  EXPECT_EQ(DoubleOf<int8_t>(DType::kInt8, -128), -128);
  EXPECT_EQ(DoubleOf<uint16_t>(DType::kUInt16, 65535), 65535);
  EXPECT_EQ(DoubleOf<int16_t>(DType::kInt16, -32768), -32768);
  EXPECT_EQ(DoubleOf<uint32_t>(DType::kUInt32, 4294967295U), 4294967295.0);
  EXPECT_EQ(DoubleOf<int32_t>(DType::kInt32, INT32_MIN), -2147483648.0);
  EXPECT_EQ(DoubleOf<uint64_t>(DType::kUInt64, UINT64_MAX), 0x1p64);
  EXPECT_EQ(DoubleOf<int64_t>(DType::kInt64, INT64_MIN), -0x1p63);
}

TEST(ElementValue, FloatingTypesAreExact) {
  EXPECT_EQ(DoubleOf(DType::kFloat32, 0.1F), 0.1F);
  EXPECT_EQ(DoubleOf(DType::kFloat64, 0.1), 0.1);
  EXPECT_EQ(DoubleOf<uint16_t>(DType::kFloat16, 0x3555), 0.333251953125);
  EXPECT_EQ(DoubleOf<uint16_t>(DType::kBFloat16, 0x3EAB), 0.333984375);
  EXPECT_EQ(DoubleOf<uint8_t>(DType::kFloat8E4M3FN, 0x7E), 448);
  EXPECT_EQ(DoubleOf<uint8_t>(DType::kFloat8E5M2, 0x7B), 57344);
  EXPECT_EQ(DoubleOf<uint8_t>(DType::kFloat8E4M3FNUZ, 0x7F), 240);
  EXPECT_EQ(DoubleOf<uint8_t>(DType::kFloat8E5M2FNUZ, 0x7F), 57344);
  EXPECT_TRUE(std::isnan(DoubleOf<uint8_t>(DType::kFloat8E4M3FNUZ, 0x80)));
}

// Damaged truth values must not look alike.
TEST(ElementValue, BoolIsItsByte) {
  EXPECT_EQ(DoubleOf<uint8_t>(DType::kBool, 1), 1);
  EXPECT_EQ(DoubleOf<uint8_t>(DType::kBool, 7), 7);
}

TEST(ElementValue, ComplexIsNoDouble) {
  EXPECT_TRUE(std::isnan(ElementAsDouble(DType::kComplex64, Stored(1.0F, 2.0F).data() + 1)));
  EXPECT_TRUE(std::isnan(ElementAsDouble(DType::kComplex128, Stored(1.0, 2.0).data() + 1)));
}

struct Described {
  template <class T>
  std::string operator()(T value) const {
    const char* kind = std::is_same_v<T, bool> ? "truth " : "number ";
    return kind + std::to_string(value) + " of " + std::to_string(sizeof(T));
  }
  template <class T>
  std::string operator()(T real, T imaginary) const {
    return (*this)(real) + " and " + (*this)(imaginary);
  }
};

TEST(ElementValue, VisitorsGetTheTypeOfCpp) {
  const auto visited = [](DType dtype, const std::vector<std::byte>& bytes) {
    return VisitElement(dtype, bytes.data() + 1, Described());
  };
  EXPECT_EQ(visited(DType::kBool, Stored(uint8_t{7})), "truth 1 of 1");
  EXPECT_EQ(visited(DType::kInt64, Stored(INT64_MIN)), "number -9223372036854775808 of 8");
  EXPECT_EQ(visited(DType::kUInt64, Stored(UINT64_MAX)), "number 18446744073709551615 of 8");
  EXPECT_EQ(visited(DType::kBFloat16, Stored(uint16_t{0x3F80})), "number 1.000000 of 4");
  EXPECT_EQ(visited(DType::kComplex64, Stored(1.0F, -2.0F)),
            "number 1.000000 of 4 and number -2.000000 of 4");
  EXPECT_EQ(visited(DType::kComplex128, Stored(1.0, -2.0)),
            "number 1.000000 of 8 and number -2.000000 of 8");
}

TEST(ElementValue, NarrowElementsAreStoredAsFloats) {
  const std::vector<std::byte> halves = Stored(uint16_t{0x3C00}, uint16_t{0xC000});
  const auto floats = StoredAsFloats(DType::kFloat16, std::span(halves).subspan(1));
  ASSERT_EQ(floats.size(), 8U);
  EXPECT_EQ(LoadAs<float>(floats.data()), 1);
  EXPECT_EQ(LoadAs<float>(floats.data() + 4), -2);
  const std::vector<std::byte> bytes = Stored(uint8_t{0x38}, uint8_t{0x40}, uint8_t{0x48});
  const auto three = StoredAsFloats(DType::kFloat8E4M3FN, std::span(bytes).subspan(1));
  ASSERT_EQ(three.size(), 12U);
  EXPECT_EQ(LoadAs<float>(three.data() + 8), 4);
}

}  // namespace
}  // namespace plumbline
