#include "formats/acl/atb_bin.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace plumbline::atb {
namespace {

const std::string kHeader =
    "$Version=1.0\n$Object.Count=1\n$Object.Length=8\nformat=2\ndtype=27\ndims=2,3\n"
    "$Object.data=0,12\n$End=1\n";

Result<BinFile> ParseText(const std::string& text) {
  return BinFile::Parse(std::as_bytes(std::span(text)));
}
ErrorCode CodeOf(const std::string& text) {
  const auto file = ParseText(text);
  return file ? ErrorCode::kInternal : file.error().code();
}

TEST(AtbBin, BrainFloatsAreRead) {
  std::string data;
  for (const int byte : {0x00, 0x3f, 0x00, 0x40, 0x40, 0x40}) data += static_cast<char>(byte);
  const std::string text = kHeader + data + data;
  const auto file = ParseText(text);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->view().dtype, DType::kBFloat16);
  EXPECT_EQ(Shape(file->view().sizes.begin(), file->view().sizes.end()), (Shape{2, 3}));
  uint16_t second = 0;
  std::memcpy(&second, file->view().data + 2, sizeof second);
  EXPECT_EQ(second, 0x4000);
}

TEST(AtbBin, BadHeadersAreErrors) {
  EXPECT_EQ(CodeOf(""), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf(kHeader), ErrorCode::kCorrupt);  // no elements
  EXPECT_EQ(CodeOf(kHeader + std::string(11, 'x')), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf("dtype=0\ndims=1"), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf("dtype=0=1\n$End=1\n"), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf("dtype\n$End=1\n"), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf("dtype=x\n$End=1\n"), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf("dtype=0\ndims=2,x\n$End=1\n"), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf("dtype=0\ndims=-1\n$End=1\n"), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf("dims=0\n$End=1\n"), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf("dtype=0\ndims=9000000000,9000000000\n$End=1\n"), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf("dtype=99\n$End=1\n"), ErrorCode::kUnsupported);
  EXPECT_EQ(CodeOf("dtype=0\ndata=1\n$End=1\n"), ErrorCode::kUnsupported);
  EXPECT_EQ(CodeOf("dtype=2\ndims=0\n$End=1\n"), ErrorCode::kInternal);  // empty, and fine
}

}  // namespace
}  // namespace plumbline::atb
