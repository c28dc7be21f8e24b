#include "formats/array/npy.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "base/memory/bytes.h"

namespace plumbline::npy {
namespace {

constexpr const char* kFiles = PLUMBLINE_TEST_DATA "/npy/";

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string ElementsHex(const TensorView& view) {
  std::vector<std::byte> bytes(view.size_bytes());
  CopyContiguous(view, bytes);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const std::byte b : bytes) {
    out += kDigits[static_cast<int>(b) >> 4];
    out += kDigits[static_cast<int>(b) & 15];
  }
  return out.empty() ? "-" : out;
}

std::string ShapeText(std::span<const int64_t> sizes) {
  std::string out;
  for (const int64_t size : sizes) out += (out.empty() ? "" : ",") + std::to_string(size);
  return out.empty() ? "-" : out;
}

// A version 1.0 file with this header text and data.
std::string FileOf(std::string header, std::string_view data) {
  header += '\n';
  std::string out("\x93NUMPY\1\0", 8);
  AppendU16(static_cast<uint16_t>(header.size()), out);
  return out + header + std::string(data);
}

ErrorCode CodeOf(const std::string& text) {
  const auto file = NpyFile::Parse(Bytes(text));
  if (!file) return file.error().code();
  ADD_FAILURE() << "was read: " << text;
  return ErrorCode::kInternal;
}

TEST(Npy, EveryFileOfNumPyHasItsValuesOrItsRefusal) {
  std::ifstream in(std::string(kFiles) + "expected.txt");
  std::string line;
  int count = 0;
  for (; std::getline(in, line); ++count) {
    std::istringstream fields(line);
    std::string name, dtype, shape, data, same;
    fields >> name >> dtype >> shape >> data >> same;
    const auto file = NpyFile::Open(kFiles + name);
    if (dtype == "error") {
      ASSERT_FALSE(file) << name;
      EXPECT_EQ(ErrorCodeName(file.error().code()), shape);
      EXPECT_NE(file.error().message().find(name + ": "), std::string::npos);
      continue;
    }
    ASSERT_TRUE(file) << file.error().message();
    const TensorView view = file->view();
    EXPECT_EQ(InfoOf(view.dtype).name, dtype);
    EXPECT_EQ(ShapeText(view.sizes), shape) << name;
    EXPECT_EQ(ElementsHex(view), data) << name;
    if (same == "same") {
      const std::string header = MakeHeader(view.dtype, view.sizes).value();
      EXPECT_EQ(ReadFile(kFiles + name).value().substr(0, header.size()), header) << name;
      EXPECT_EQ(header.size() % 64, 0U);
    }
  }
  EXPECT_GT(count, 35);
}

TEST(Npy, DTypesUnknownToNumPyAreUnsupported) {
  EXPECT_EQ(MakeHeader(DType::kBFloat16, Shape{2}).error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(MakeHeader(DType::kFloat8E5M2, Shape{2}).error().code(), ErrorCode::kUnsupported);
}

TEST(Npy, HeaderOverTheFirstLimitHasVersion2) {
  const Shape sizes(30000, 1);
  const std::string header = MakeHeader(DType::kInt8, sizes).value();
  EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\2\0", 8));
  EXPECT_EQ(header.size() % 64, 0U);
}

// Byte for byte: files of MindSpore 2.10 follow the same rule. What fills a multiple of 64 without
// blanks gets 64 of them.
TEST(Npy, HeadersOfGraphDumpsHaveOneTo64Blanks) {
  std::string many;
  for (int i = 0; i < 14; ++i) many += "11111111,";
  const std::pair<Shape, std::string> cases[] = {
      {{}, ""}, {{3}, "3,"}, {{2, 3}, "2,3,"}, {Shape(14, 11111111), many}};
  for (const auto& [sizes, text] : cases) {
    const std::string front = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + text + "), }";
    const size_t blanks = 64 - (10 + front.size() + 1) % 64;
    const std::string header = *MakeGraphHeader(DType::kFloat32, sizes);
    EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\1\0", 8));
    EXPECT_EQ(header.substr(10), front + std::string(blanks, ' ') + "\n");
    EXPECT_EQ(header.size() % 64, 0U);
    EXPECT_EQ(blanks == 64, sizes.size() == 14);
  }
  const std::string scalar = *MakeGraphHeader(DType::kFloat32, Shape{}) + "abcd";
  EXPECT_TRUE(NpyFile::Parse(Bytes(scalar)));
  EXPECT_EQ(MakeGraphHeader(DType::kBFloat16, Shape{}).error().code(), ErrorCode::kUnsupported);
}

TEST(Npy, UnusualButValidHeadersAreRead) {
  for (const char* header :
       {"{'shape':(1,),'descr':'<i2','fortran_order':True}",
        "{\"descr\": \"=i2\", \"fortran_order\": False, \"shape\": (1L,), }   ",
        "{'descr': '|i2', 'fortran_order': False, 'shape': ( 1 , ) , }"}) {
    const std::string text = FileOf(header, "\x02\x01 trailing bytes");
    const auto file = NpyFile::Parse(Bytes(text));
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_EQ(ElementsHex(file->view()), "0201");
  }
}

TEST(Npy, DamagedHeadersAreCorrupt) {
  for (const char* header :
       {"", "{", "{}", "{'descr': '<i2'}", "{'descr': '<i2', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': 1}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '<i2' 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (1 1)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '<i2, 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (2,)}"}) {
    EXPECT_EQ(CodeOf(FileOf(header, "ab")), ErrorCode::kCorrupt) << header;
  }
  EXPECT_EQ(CodeOf(""), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf("not numpy at all"), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf(std::string("\x93NUMPY\4\0\0\0", 10)), ErrorCode::kUnsupported);
  EXPECT_EQ(CodeOf(std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12)), ErrorCode::kCorrupt);
}

TEST(Npy, ContentsOfDTypesThatNumPyLacksAreFloat32) {
  const std::string bfloats("\x80\x3f\x00\xc0", 4);  // 1, -2
  const std::vector<int64_t> sizes = {2};
  const auto wide = MakeContents(DType::kBFloat16, sizes, Bytes(bfloats));
  ASSERT_TRUE(wide) << wide.error().message();
  EXPECT_EQ(wide->dtype, DType::kFloat32);
  const auto file =
      std::string(wide->header) + std::string(reinterpret_cast<const char*>(wide->data.data()), 8);
  const auto read = NpyFile::Parse(Bytes(file));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(ElementsHex(read->view()), "0000803f000000c0");
  const auto same = MakeContents(DType::kFloat16, sizes, Bytes(bfloats));
  ASSERT_TRUE(same) << same.error().message();
  EXPECT_EQ(same->data.data(), Bytes(bfloats).data());
}

TEST(Npy, HeaderWithoutLineBreakIsCorrupt) {
  std::string text = ReadFile(std::string(kFiles) + "float32.npy").value();
  text[127] = ' ';
  EXPECT_EQ(CodeOf(text), ErrorCode::kCorrupt);
}

TEST(Npy, EveryTruncationIsCorrupt) {
  const std::string whole = ReadFile(std::string(kFiles) + "float32.npy").value();
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const auto file = NpyFile::Parse(std::as_bytes(std::span(cut)));
    ASSERT_FALSE(file) << size;
    EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt) << size;
  }
}

// The format has no checksum: a flip may change values or the shape, but never what memory is read.
TEST(Npy, EveryFlippedByteIsReadSafely) {
  std::string text = ReadFile(std::string(kFiles) + "float32.npy").value();
  size_t refused = 0;
  for (char& at : text) {
    for (const int mask : {0x01, 0x08, 0x80, 0xff}) {
      const char saved = at;
      at = static_cast<char>(at ^ mask);
      const auto file = NpyFile::Parse(Bytes(text));
      if (file) {
        EXPECT_LE(file->view().size_bytes(), text.size());
        ElementsHex(file->view());
      } else {
        ++refused;
      }
      at = saved;
    }
  }
  EXPECT_GT(refused, 100U);
}

}  // namespace
}  // namespace plumbline::npy
