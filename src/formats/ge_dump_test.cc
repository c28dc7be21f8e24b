#include "formats/ge_dump.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace plumbline::ge {
namespace {

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string Field(int number, const std::string& bytes) {
  return {std::string(1, static_cast<char>(number << 3 | 2)) +
          std::string(1, static_cast<char>(bytes.size())) + bytes};
}

std::string Number(int number, int value) {
  return {static_cast<char>(number << 3), static_cast<char>(value)};
}

std::string FileOf(const std::string& message, const std::string& elements) {
  std::string file(8, '\0');
  file[0] = static_cast<char>(message.size());
  return file + message + elements;
}

// One int16 input of two elements and one output of one element.
std::string Message() {
  const std::string pair = Field(3, Field(1, std::string(1, 2)));
  return Field(3, Number(1, 5) + Field(3, "") + Number(6, 2)) +
         Field(4, Number(1, 5) + pair + Number(5, 4));
}

TEST(GeDump, InputsComeBeforeOutputs) {
  const std::string text = FileOf(Message(), std::string("\1\0\2\0\3\0", 6));
  const auto file = DumpFile::Parse(BytesOf(text));
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_EQ(file->inputs().size(), 1U);
  ASSERT_EQ(file->outputs().size(), 1U);
  const TensorView input = file->inputs()[0].view(), output = file->outputs()[0].view();
  EXPECT_EQ(input.dtype, DType::kInt16);
  ASSERT_EQ(input.element_count(), 2);
  EXPECT_EQ(output.sizes.size(), 0U);
  int16_t values[3];
  std::memcpy(values, input.data, 4);
  std::memcpy(values + 2, output.data, 2);
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 2);
  EXPECT_EQ(values[2], 3);
}

TEST(GeDump, CutAnywhereIsNoGoodFile) {
  const std::string text = FileOf(Message(), std::string("\1\0\2\0\3\0", 6));
  for (size_t size = 0; size < text.size(); ++size) {
    const std::string cut = text.substr(0, size);
    const auto file = DumpFile::Parse(BytesOf(cut));
    if (size < text.size() - 6) {
      ASSERT_FALSE(file) << size;
      EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt);
    } else {
      ASSERT_TRUE(file) << size;
      EXPECT_NE(file->outputs()[0].problem(), "");
    }
  }
}

TEST(GeDump, DamagedMessageIsCorrupt) {
  for (const std::string& message :
       {std::string(12, '\xff'), std::string("\x1b"), std::string("\x02\x00", 2),
        Field(4, Field(3, Field(1, "\x80")))}) {
    const std::string text = FileOf(message, "");
    const auto file = DumpFile::Parse(BytesOf(text));
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt);
  }
}

TEST(GeDump, UnknownTypeAndShape) {
  const std::string huge = std::string(9, '\xff') + '\1';  // 2^64 - 1: unknown
  const std::string text =
      FileOf(Field(4, Number(1, 13) + Number(5, 2)) +
                 Field(4, Number(1, 5) + Field(3, Field(1, huge)) + Number(5, 4)) +
                 Field(4, Number(1, 5) + Number(5, 2)),
             "abcdefgh");
  const auto file = DumpFile::Parse(BytesOf(text));
  ASSERT_TRUE(file);
  EXPECT_NE(file->inputs()[0].problem().find("13"), std::string::npos);
  EXPECT_EQ(file->inputs()[1].view().element_count(), 2);
  EXPECT_EQ(file->inputs()[2].view().element_count(), 1);
}

TEST(GeDump, ProductOfSizesThatOverflows) {
  const std::string big = std::string(8, '\xff') + '\x7f';  // 2^63 - 1
  const std::string text =
      FileOf(Field(4, Number(1, 5) + Field(3, Field(1, big + big)) + Number(5, 4)), "abcd");
  const auto file = DumpFile::Parse(BytesOf(text));
  ASSERT_TRUE(file);
  EXPECT_NE(file->inputs()[0].problem(), "");
}

}  // namespace
}  // namespace plumbline::ge
