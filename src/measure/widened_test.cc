#include "measure/widened.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tensor/element_value.h"

namespace plumbline::measure {
namespace {

constexpr size_t kCount = 2500;  // more than are widened at a time

// Bytes of every kind, numbers at odd addresses where `offset` is odd.
std::vector<std::byte> Pattern(size_t offset) {
  std::vector<std::byte> bytes(offset + kCount * 16);
  for (size_t i = offset; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>((i - offset) * 2654435761U >> 13);
  }
  return bytes;
}

bool IsSame(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

TEST(Widened, EveryRealTypeAtAnyAddress) {
  for (int type = 0; type < kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    const DTypeInfo& info = InfoOf(dtype);
    if (info.kind == DTypeKind::kComplex) continue;
    for (const size_t offset : {size_t{0}, size_t{1}}) {
      const std::vector<std::byte> bytes = Pattern(offset);
      const std::byte* const data = bytes.data() + offset;
      const auto all = WidenAll<std::vector<double>>(dtype, data, kCount);
      ASSERT_EQ(all.size(), kCount);
      std::vector<double> filled(kCount, -1);
      Widen(dtype, data, kCount, filled.data());
      for (size_t i = 0; i < kCount; ++i) {
        double wanted = ElementAsDouble(dtype, data + i * info.size_bytes);
        if (info.kind == DTypeKind::kBool) wanted = wanted != 0 ? 1 : 0;
        ASSERT_TRUE(IsSame(all[i], wanted)) << info.name << " " << i;
        ASSERT_TRUE(IsSame(filled[i], wanted)) << info.name << " " << i;
      }
    }
  }
}

TEST(Widened, ComplexElementsGiveBothPartsOrTheModulus) {
  const std::vector<float> single = {3, -4, 0, 2};
  const auto* data = reinterpret_cast<const std::byte*>(single.data());
  EXPECT_EQ(WidenAll<std::vector<double>>(DType::kComplex64, data, 2),
            (std::vector<double>{3, -4, 0, 2}));
  std::vector<double> moduli(2);
  Widen(DType::kComplex64, data, 2, moduli.data());
  EXPECT_EQ(moduli, (std::vector<double>{5, 2}));
  const std::vector<double> wide = {3, -4, 0, 2};
  EXPECT_EQ(WidenAll<std::vector<double>>(DType::kComplex128,
                                          reinterpret_cast<const std::byte*>(wide.data()), 2),
            wide);
}

}  // namespace
}  // namespace plumbline::measure
