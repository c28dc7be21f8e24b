#include "load/statistic_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>

#include "base/memory/digest.h"
#include "formats/table/statistic_csv.h"

namespace plumbline::load {
namespace {

template <class T>
std::string Text(DType dtype, const std::vector<T>& values, const std::string& items,
                 int digits = kSixDigits) {
  const Shape sizes = {static_cast<int64_t>(values.size())};
  const std::vector<int64_t> strides = ContiguousStrides(sizes);
  const TensorView view{dtype, reinterpret_cast<const std::byte*>(values.data()), sizes, strides};
  std::vector<std::string> names;
  for (size_t from = 0; from <= items.size();) {
    const size_t comma = std::min(items.find(',', from), items.size());
    names.push_back(items.substr(from, comma - from));
    from = comma + 1;
  }
  std::string text;
  for (const std::string& one : StatisticTexts(view, names, digits)) text += one + ' ';
  return text;
}

constexpr const char* kCounts =
    "count,negative zero count,positive zero count,zero count,nan count,positive inf count,"
    "negative inf count";

TEST(StatisticValues, NonFiniteElementsCountAsTheNewestReleaseCounts) {
  const std::vector<float> values = {1, -2, 0, -0.0F, NAN, INFINITY, -INFINITY};
  EXPECT_EQ(Text(DType::kFloat32, values, kCounts), "7 2 2 2 1 1 1 ");
  EXPECT_EQ(Text(DType::kFloat32, values, "max,min,avg,l2norm"), "nan nan nan nan ");
  const std::vector<double> infinite = {1, -INFINITY};
  EXPECT_EQ(Text(DType::kFloat64, infinite, "max,min,avg,l2norm"), "1 -inf -inf inf ");
  EXPECT_EQ(Text(DType::kFloat64, std::vector<double>{-1e-320, 1e-320}, kCounts), "2 1 1 0 0 0 0 ");
}

TEST(StatisticValues, OtherTypes) {
  const std::vector<int64_t> wide = {(int64_t{1} << 53) + 1, -3};
  EXPECT_EQ(Text(DType::kInt64, wide, "max,min"), "9.0072e+15 -3 ");
  EXPECT_EQ(Text(DType::kInt64, wide, "max,min", 17), "9007199254740993 -3 ");
  EXPECT_EQ(Text(DType::kUInt8, std::vector<uint8_t>{255, 1}, "max,min,avg,l2norm"),
            "255 1 128 255.002 ");
  EXPECT_EQ(Text(DType::kBool, std::vector<uint8_t>{1, 0}, "max,min,avg,count"), "1 0 0.5 2 ");
  const std::vector<uint16_t> subnormal = {0x0001, 0x8001};  // +-2^-24
  EXPECT_EQ(Text(DType::kFloat16, subnormal, "max,min"), "5.96046e-08 -5.96046e-08 ");
  EXPECT_EQ(Text(DType::kFloat16, subnormal, kCounts), "2 1 1 0 0 0 0 ");
  EXPECT_EQ(Text(DType::kBFloat16, std::vector<uint16_t>{0x3F80, 0xC000}, "max,min"), "1 -2 ");
  EXPECT_EQ(Text(DType::kComplex64, std::vector<std::complex<float>>{{3, 4}, 0}, "max,min,count"),
            "5 0 2 ");
  EXPECT_EQ(Text(DType::kFloat32, std::vector<float>{}, "max,count"), "null 0 ");
}

TEST(StatisticValues, DigestsAreOfTheBytes) {
  const std::vector<int8_t> values = {'a', 'b', 'c'};
  EXPECT_EQ(Text(DType::kInt8, values, "md5,hash:sha1"),
            "900150983cd24fb0d6963f7d28e17f72 a9993e364706816aba3e25717850c26c9cd0d89d ");
}

TEST(StatisticValues, LongTensorsHaveTheDigestOfTheirSlices) {
  const std::vector<int8_t> fits(20480, 1), longer(20481, 1);
  const auto bytes = std::as_bytes(std::span(longer));
  EXPECT_EQ(Text(DType::kInt8, fits, "hash"), *Sha1Hex(std::as_bytes(std::span(fits))) + ' ');
  const std::string joined = *Sha1Hex(bytes.first(20480)) + *Sha1Hex(bytes.last(1));
  EXPECT_EQ(Text(DType::kInt8, longer, "hash"), *Sha1Hex(std::as_bytes(std::span(joined))) + ' ');
}

TEST(StatisticCsv, RowsHaveACommaThatTheHeaderHasNot) {
  const std::vector<std::string> items = {"max", "hash:md5", "md5"};
  EXPECT_EQ(statistic_csv::WithoutRepeats(items).size(), 2U);
  EXPECT_EQ(statistic_csv::HeaderLine({items.data(), 2}),
            "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max "
            "Value,MD5\n");
  std::string out;
  const std::string shape = statistic_csv::ShapeCell(std::vector<int64_t>{2, 3});
  const std::string_view cells[] = {"Sub", "a,b", "0",       "0",   "17", "input",
                                    "0",   "4",   "float32", shape, "3"};
  statistic_csv::AppendRow(cells, out);
  EXPECT_EQ(out, "Sub,\"a,b\",0,0,17,input,0,4,float32,\"(2,3)\",3,\n");
}

}  // namespace
}  // namespace plumbline::load
