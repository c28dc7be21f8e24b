#include <gtest/gtest.h>

#include "plumbline/tensor.h"

namespace plumbline {
namespace {

TEST(DType, EverySpellingOfEveryRowParsesBack) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const DTypeInfo& info = InfoOf(dtype);
    EXPECT_EQ(info.dtype, dtype);
    for (const std::string_view text :
         {info.name, info.torch_name, info.mindspore_name, info.numpy_descr}) {
      if (!text.empty()) {
        EXPECT_EQ(ParseDType(text), dtype) << text;
      }
    }
  }
}

TEST(DType, AliasesAndPrefixesParse) {
  EXPECT_EQ(ParseDType("torch.half"), DType::kFloat16);
  EXPECT_EQ(ParseDType("torch.long"), DType::kInt64);
  EXPECT_EQ(ParseDType("mindspore.bfloat16"), DType::kBFloat16);
  EXPECT_EQ(ParseDType("bool_"), DType::kBool);
  EXPECT_EQ(ParseDType("f8"), DType::kFloat64);
  EXPECT_EQ(ParseDType("<i1"), DType::kInt8);
  EXPECT_EQ(ParseDType("?"), DType::kBool);
}

TEST(DType, UnknownTextIsNothing) {
  for (const std::string_view text : {"", "torch.", "Float", ">f4", "<f3", "float32 ",
                                      "torch.qint8", "torch.torch.float32", "<", "|"}) {
    EXPECT_EQ(ParseDType(text), std::nullopt) << text;
  }
}

TEST(DType, UnitRoundoffIsHalfTheSpacingAtOne) {
  EXPECT_EQ(UnitRoundoff(DType::kFloat32), 0x1p-24);
  EXPECT_EQ(UnitRoundoff(DType::kBFloat16), 0x1p-8);
  EXPECT_EQ(UnitRoundoff(DType::kFloat8E5M2), 0x1p-3);
  EXPECT_EQ(UnitRoundoff(DType::kComplex128), 0x1p-53);
  EXPECT_EQ(UnitRoundoff(DType::kInt32), 0);
}

}  // namespace
}  // namespace plumbline
