#include "formats/pytorch/torch_pt.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/memory/bytes.h"
#include "base/memory/digest.h"
#include "formats/json/dump_json.h"
#include "formats/pytorch/zip.h"

namespace plumbline::torch_pt {
namespace {

constexpr const char* kTorchFiles = PLUMBLINE_TEST_DATA "/torch_pt/";
constexpr const char* kFrames = PLUMBLINE_TEST_DATA "/torch_frames/";

std::string HexOf(std::span<const std::byte> bytes) {
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

std::string ElementsHex(const TensorView& view) {
  std::vector<std::byte> bytes(view.size_bytes());
  CopyContiguous(view, bytes);
  return HexOf(bytes);
}

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

void AddTensors(const Value& value, std::vector<TensorRecord>& out) {
  if (const auto* tensor = value.As<TensorRecord>()) out.push_back(*tensor);
  if (const auto* list = value.As<ValueList>()) {
    for (const Value& item : *list) AddTensors(item, out);
  }
  if (const auto* map = value.As<ValueMap>()) {
    for (const auto& [key, item] : *map) AddTensors(item, out);
  }
}

TEST(TorchPt, EveryFileOfTorchHasItsValuesOrItsRefusal) {
  std::ifstream in(std::string(kTorchFiles) + "expected.txt");
  std::string line;
  int count = 0;
  for (; std::getline(in, line); ++count) {
    std::istringstream fields(line);
    std::string name, dtype, shape, rest;
    fields >> name >> dtype >> shape >> std::ws;
    std::getline(fields, rest);
    const auto file = PtFile::Open(kTorchFiles + name);
    if (dtype == "error") {
      ASSERT_FALSE(file) << name;
      EXPECT_EQ(ErrorCodeName(file.error().code()), shape) << name << file.error().message();
      EXPECT_NE(file.error().message().find(rest), std::string::npos) << file.error().message();
      EXPECT_NE(file.error().message().find(name + ": "), std::string::npos);
      continue;
    }
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_EQ(InfoOf(file->view().dtype).torch_name, "torch." + dtype) << name;
    EXPECT_EQ(ShapeText(file->view().sizes), shape) << name;
    EXPECT_EQ(ElementsHex(file->view()), rest) << name;
  }
  EXPECT_GT(count, 65);
  EXPECT_EQ(PtFile::Open("/nonexistent.pt").error().code(), ErrorCode::kNotFound);
}

TEST(TorchPt, UncheckedDataIsReadAsItIs) {
  const std::string path = std::string(kTorchFiles) + "wrong_crc.pt";
  EXPECT_TRUE(PtFile::Open(path, DataCheck::kTrust).has_value());
}

TEST(TorchPt, ViewSurvivesAMove) {
  PtFile first = PtFile::Open(std::string(kTorchFiles) + "big_endian_int16.pt").value();
  const std::string before = ElementsHex(first.view());
  const PtFile second = std::move(first);
  EXPECT_EQ(ElementsHex(second.view()), before);
}

// Bytes that are a valid element of every dtype (bool: 0 and 1), the same in test_torch_pt.py.
std::string Pattern(DType dtype, uint64_t count) {
  std::string data;
  for (uint64_t i = 0; i < count * InfoOf(dtype).size_bytes; ++i) {
    data += static_cast<char>(dtype == DType::kBool ? i % 2 : (7 * i + 1) % 64);
  }
  return data;
}

std::string FileOf(DType dtype, const Shape& sizes) {
  const std::string data = Pattern(dtype, static_cast<uint64_t>(ElementCount(sizes).value()));
  const Frame frame = MakeFrame(dtype, sizes, data.size(), Crc32(Bytes(data)));
  EXPECT_EQ(frame.head.size() % 64, 0U);
  return frame.head + data + frame.tail;
}

// The stored files are loaded by torch.load(weights_only=True) in tests/python/test_torch_pt.py.
// PLUMBLINE_UPDATE=1 rewrites them.
TEST(TorchPt, FramesAreTheFilesThatTorchLoads) {
  const bool update = std::getenv("PLUMBLINE_UPDATE") != nullptr;
  const auto check = [update](DType dtype, const Shape& sizes) {
    std::string shape;
    for (const int64_t size : sizes) shape += "_" + std::to_string(size);
    const std::string path = kFrames + std::string(InfoOf(dtype).name) + shape + ".pt";
    const std::string text = FileOf(dtype, sizes);
    if (update) std::ofstream(path) << text;
    const auto stored = ReadFile(path);
    ASSERT_TRUE(stored) << stored.error().message();
    EXPECT_EQ(text, *stored) << path;
    const auto file = PtFile::Open(path);
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_EQ(file->view().dtype, dtype);
    EXPECT_EQ(ShapeText(file->view().sizes), ShapeText(sizes));
  };
  for (int i = 0; i < kDTypeCount; ++i) check(static_cast<DType>(i), {2, 3});
  for (const Shape& sizes : {Shape{}, Shape{0}, Shape{1}, Shape{0, 4}, Shape{5, 1, 2},
                             Shape{2, 1, 2, 3}, Shape{300, 2}}) {
    check(DType::kFloat32, sizes);
  }
}

TEST(TorchPt, HugeSizesUseLongIntegersAndZip64) {
  const Shape sizes = {70000, 70000};
  const uint64_t bytes = uint64_t{70000} * 70000;
  const Frame frame = MakeFrame(DType::kUInt8, sizes, bytes, 0);
  EXPECT_EQ(frame.head.size() % 64, 0U);
  // 4900000000 as LONG1: eight-bit length, then two's complement with a clear sign bit.
  EXPECT_NE(frame.head.find(std::string("\x8a\x05\x00\x11\x10\x24\x01", 7)), std::string::npos);
  EXPECT_NE(frame.tail.find("PK\6\6"), std::string::npos);
  EXPECT_NE(frame.tail.find("PK\6\7"), std::string::npos);
}

// Every tensor file of the real upstream, as its dump.json describes it.
TEST(TorchPt, EveryTensorFileOfUpstreamFitsItsDump) {
  for (const char* release : {"upstream_1.2.2", "upstream_26.2.0"}) {
    const std::string directory = fmt::format("{}/{}/l1_tensor/", PLUMBLINE_TEST_DATA, release);
    const auto dump = dump_json::ReadDump(directory + "dump.json", false);
    ASSERT_TRUE(dump) << dump.error().message();
    std::vector<TensorRecord> tensors;
    for (const Call& call : dump->calls) {
      for (const auto& [key, value] : call.members) AddTensors(value, tensors);
    }
    EXPECT_EQ(tensors.size(), ListDirectory(directory + "dump_tensor_data")->size());
    for (const TensorRecord& tensor : tensors) {
      const auto file = PtFile::Open(directory + "dump_tensor_data/" + tensor.data_name.value());
      ASSERT_TRUE(file) << file.error().message();
      EXPECT_EQ(ShapeText(file->view().sizes), ShapeText(tensor.shape));
      EXPECT_EQ(InfoOf(file->view().dtype).torch_name, tensor.dtype_text);
    }
  }
}

// 4.9 GB of zeros in a sparse file: sizes beyond 32 bits come back.
TEST(TorchPt, FileOverFourGigabytesIsReadBack) {
  const Shape sizes = {70000, 70000};
  const uint64_t bytes = uint64_t{70000} * 70000;
  const Frame frame = MakeFrame(DType::kUInt8, sizes, bytes, 0);
  const std::string path = ::testing::TempDir() + "plumbline_huge.pt";
  {
    std::ofstream out(path, std::ios::binary);
    out << frame.head;
    out.seekp(static_cast<std::streamoff>(frame.head.size() + bytes));
    out << frame.tail;
  }
  {
    const auto file = PtFile::Open(path, DataCheck::kTrust);
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_EQ(ShapeText(file->view().sizes), "70000,70000");
    EXPECT_EQ(file->view().data[bytes - 1], std::byte{0});
  }
  std::filesystem::remove(path);
}

std::string PickleFile(std::string_view pickle) {
  zip::Writer archive;
  archive.Add("a/data.pkl", pickle);
  archive.Add("a/data/0", "abcd");
  return archive.text() + archive.Directory();
}

TEST(TorchPt, DeepAndVastPicklesAreRefusedWithoutRecursion) {
  const auto nested = [](size_t levels) {
    return "\x80\x02" + std::string(levels, ']') + std::string(levels - 1, 'a') + ".";
  };
  const auto deep = PtFile::Parse(Bytes(PickleFile(nested(90000))));
  EXPECT_EQ(deep.error().code(), ErrorCode::kUnsupported);
  const auto vast = PtFile::Parse(Bytes(PickleFile(nested(300000))));
  EXPECT_EQ(vast.error().code(), ErrorCode::kUnsupported);
}

// Two entries of the central directory that name the same bytes, as zip bombs do.
TEST(TorchPt, OverlappingMembersAreCorrupt) {
  constexpr size_t kOffsetOfHeader = 42;  // in an entry of the central directory
  zip::Writer archive;
  archive.Add("a/data.pkl", "\x80\x02.");
  const std::string::size_type header = archive.text().size();
  archive.Add("a/data/0", "abcd");
  archive.Add("a/data/0", "abcd");
  std::string text = archive.text() + archive.Directory();
  const size_t last = text.rfind("PK\1\2");
  ASSERT_LT(header, 256u);
  text.replace(last + kOffsetOfHeader, 4, {static_cast<char>(header), 0, 0, 0});
  const auto file = PtFile::Parse(Bytes(text));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt);
  EXPECT_NE(file.error().message().find("overlap"), std::string::npos) << file.error().message();
}

TEST(TorchPt, EveryTruncationIsCorrupt) {
  for (const char* name : {"shape_1.pt", "legacy_float32.pt"}) {
    const std::string whole = ReadFile(kTorchFiles + std::string(name)).value();
    ASSERT_TRUE(PtFile::Parse(Bytes(whole)).has_value());
    for (size_t size = 0; size < whole.size(); ++size) {
      const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      const auto file = PtFile::Parse(std::as_bytes(std::span(cut)));
      ASSERT_FALSE(file) << name << " " << size;
      EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt) << name << " " << size;
    }
  }
}

// Zip files carry checksums of everything that matters, so a flip is noticed or harmless.
TEST(TorchPt, EveryFlippedByteOfAnArchiveIsHarmlessOrRefused) {
  std::string text = ReadFile(std::string(kFrames) + "float32_2_3.pt").value();
  const auto whole = PtFile::Parse(Bytes(text));
  const std::string truth = ElementsHex(whole->view());
  size_t refused = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    for (const int mask : {0x01, 0x80, 0xff}) {
      const char saved = text[i];
      text[i] = static_cast<char>(text[i] ^ mask);
      const auto file = PtFile::Parse(Bytes(text));
      if (file) {
        EXPECT_EQ(ElementsHex(file->view()), truth) << i;
        EXPECT_EQ(file->view().dtype, DType::kFloat32) << i;
        EXPECT_EQ(ShapeText(file->view().sizes), "2,3") << i;
      } else {
        EXPECT_TRUE(file.error().code() == ErrorCode::kCorrupt ||
                    file.error().code() == ErrorCode::kUnsupported);
        ++refused;
      }
      text[i] = saved;
    }
  }
  EXPECT_GT(refused, text.size());
}

// Legacy files have no checksums: a flip may change values, but never what memory is read.
TEST(TorchPt, EveryFlippedByteOfALegacyFileIsReadSafely) {
  std::string text = ReadFile(std::string(kTorchFiles) + "legacy_float32.pt").value();
  for (size_t i = 0; i < text.size(); ++i) {
    for (const int mask : {0x01, 0x08, 0x80, 0xff}) {
      const char saved = text[i];
      text[i] = static_cast<char>(text[i] ^ mask);
      const std::vector<char> copy(text.begin(), text.end());
      const auto file = PtFile::Parse(std::as_bytes(std::span(copy)));
      if (file) {
        EXPECT_LE(file->view().size_bytes(), copy.size());
        ElementsHex(file->view());
      }
      text[i] = saved;
    }
  }
}

}  // namespace
}  // namespace plumbline::torch_pt
