#include "formats/array/mindspore_ckpt.h"

#include <gtest/gtest.h>

#include <string>

#include "base/memory/digest.h"
#include "base/text/protobuf_wire.h"

namespace plumbline::mindspore_ckpt {
namespace {

using protobuf::MessageWriter;

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// One value of a file, as save_checkpoint() writes it: sizes one by one, since they are proto2.
std::string Value(const std::string& tag, const std::vector<int64_t>& sizes,
                  const std::string& type, const std::string& content) {
  MessageWriter end;
  end.AddBytes(2, type);
  end.AddBytes(3, content);
  std::string tensor;
  for (const int64_t size : sizes) tensor += std::string("\x08") + static_cast<char>(size);
  tensor += end.text();
  MessageWriter value, file;
  value.AddBytes(1, tag);
  value.AddMessage(2, tensor);
  file.AddMessage(1, value.text());
  return file.text();
}

std::string ErrorOf(const std::string& text) {
  const auto file = CkptFile::Parse(Bytes(text));
  return file ? "" : file.error().message();
}

const std::string kEight(8, '\1');

TEST(MindSporeCkpt, TensorsScalarsAndTextsAreRead) {
  const std::string word = {'o', 0, 0, 0, 'k', 0, 0, 0};
  const std::string text =
      Value("w", {2, 1}, "Float32", kEight) + Value("n", {0}, "Int64", kEight) +
      Value("none", {0}, "Int64", "") + Value("h", {4}, "BFloat16", kEight) +
      Value("note", {1}, "str", word) + Value("q", {16}, "QInt4x2", kEight);
  EXPECT_TRUE(CkptFile::LooksLikeOne(Bytes(text)));
  const auto file = CkptFile::Parse(Bytes(text));
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_EQ(file->tensors().size(), 5U);
  EXPECT_EQ(file->tensors()[0].sizes, (Shape{2, 1}));
  EXPECT_EQ(file->tensors()[1].sizes, Shape{});
  EXPECT_EQ(file->tensors()[2].sizes, Shape{0});
  EXPECT_EQ(file->tensors()[3].dtype, DType::kBFloat16);
  EXPECT_EQ(file->tensors()[4].problem, "element type QInt4x2");
  ASSERT_EQ(file->texts().size(), 1U);
  EXPECT_EQ(file->texts()[0].text, "ok");
}

TEST(MindSporeCkpt, PartsOfALargeTensorFollowEachOther) {
  const std::string part = Value("w", {4, 1}, "Float32", kEight);
  const std::string text = part + part + Value("b", {2}, "Float32", kEight);
  const auto file = CkptFile::Parse(Bytes(text));
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_EQ(file->tensors().size(), 2U);
  EXPECT_EQ(file->tensors()[0].runs.size(), 2U);
  EXPECT_NE(ErrorOf(Value("w", {4}, "Float32", kEight)), "");
  EXPECT_NE(ErrorOf(Value("w", {2}, "Float32", kEight) + Value("w", {2}, "Float32", kEight)), "");
  EXPECT_NE(ErrorOf(Value("w", {2}, "Float32", kEight + "x")), "");
}

TEST(MindSporeCkpt, HashTablesAreLeftOut) {
  MessageWriter value, file;
  value.AddBytes(1, "map");
  value.AddMessage(3, "");
  file.AddMessage(1, value.text());
  const std::string text = file.text() + Value("w", {2}, "Float32", kEight);
  const auto read = CkptFile::Parse(Bytes(text));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->left_out(), 1U);
  EXPECT_EQ(read->tensors().size(), 1U);
}

TEST(MindSporeCkpt, TheRecordedChecksumMustBeThatOfTheFile) {
  std::string text = Value("w", {2}, "Float32", kEight);
  const uint32_t crc = Crc32(Bytes(text));
  text += "crc_num" + std::string(6, '\0');
  for (const int shift : {24, 16, 8, 0}) text += static_cast<char>(crc >> shift & 0xFFU);
  EXPECT_EQ(ErrorOf(text), "");
  ASSERT_EQ(CkptFile::Parse(Bytes(text))->tensors().size(), 1U);
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_NE(ErrorOf(damaged), "") << i;
  }
}

TEST(MindSporeCkpt, CutAndOtherBytesAreRefused) {
  const std::string text = Value("weight", {2, 1}, "Float32", kEight);
  for (size_t size = 1; size < text.size(); ++size) {
    EXPECT_NE(ErrorOf(text.substr(0, size)), "") << size;
  }
  EXPECT_NE(ErrorOf("\x12\x02ok"), "");  // another field
  EXPECT_NE(ErrorOf(std::string("\xB0\xE4\x83\x7F", 4) + kEight), "");
  EXPECT_NE(ErrorOf(Value("w", std::vector<int64_t>(65, 1), "Float32", "abcd")), "");
  EXPECT_FALSE(CkptFile::LooksLikeOne(Bytes("PK")));
  EXPECT_FALSE(CkptFile::LooksLikeOne({}));
}

}  // namespace
}  // namespace plumbline::mindspore_ckpt
