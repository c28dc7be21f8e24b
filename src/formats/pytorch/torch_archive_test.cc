#include "formats/pytorch/torch_archive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "base/file/file.h"
#include "formats/array/safetensors.h"
#include "formats/pytorch/torch_pt.h"

namespace plumbline::torch_pt {
namespace {

constexpr const char* kFiles = PLUMBLINE_TEST_DATA "/checkpoints/";
constexpr const char* kSingleFiles = PLUMBLINE_TEST_DATA "/torch_pt/";

std::string Hex(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const std::byte b : bytes) {
    out += kDigits[static_cast<int>(b) >> 4];
    out += kDigits[static_cast<int>(b) & 15];
  }
  return out.empty() ? "-" : out;
}

std::string Describe(const TensorView& view) {
  std::string shape;
  for (const int64_t size : view.sizes) shape += (shape.empty() ? "" : ",") + std::to_string(size);
  std::vector<std::byte> bytes(view.size_bytes());
  CopyContiguous(view, bytes);
  return std::string(InfoOf(view.dtype).name) + " " + (shape.empty() ? "-" : shape) + " " +
         Hex(bytes);
}

// File -> name -> "dtype shape bytes", as PyTorch has it.
std::map<std::string, std::map<std::string, std::string>> Expected() {
  std::map<std::string, std::map<std::string, std::string>> files;
  std::ifstream in(std::string(kFiles) + "expected.txt");
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string file, name, dtype, shape, data;
    fields >> file >> name >> dtype >> shape >> data;
    files[file][name] = dtype + " " + shape + " " + data;
  }
  return files;
}

TEST(TorchArchive, FindsEveryTensorThatPyTorchSaved) {
  for (const char* name : {"nested.pt", "nested_legacy.pth"}) {
    const auto archive = TorchArchive::Open(std::string(kFiles) + name);
    ASSERT_TRUE(archive.has_value()) << archive.error().message();
    std::map<std::string, std::string> found;
    for (const ArchiveTensor& tensor : archive->tensors()) {
      EXPECT_EQ(tensor.problem, "");
      EXPECT_TRUE(CheckBytes(tensor).has_value());
      found[tensor.name] = Describe(tensor.view());
    }
    EXPECT_EQ(found, Expected()[name]) << name;
    const PickleNode* args = archive->machine().Find(archive->root(), "args");
    ASSERT_NE(args, nullptr);
    ASSERT_NE(archive->machine().Find(*args, "size"), nullptr);
    EXPECT_EQ(archive->machine().Find(*args, "size")->number, 2);
    EXPECT_EQ(archive->machine().Find(*args, "absent"), nullptr);
  }
}

TEST(Safetensors, HoldsTheValuesThatWereWritten) {
  const auto file = safetensors::SafetensorsFile::Open(std::string(kFiles) + "plain.safetensors");
  ASSERT_TRUE(file.has_value()) << file.error().message();
  std::map<std::string, std::string> found;
  for (const safetensors::StoredTensor& tensor : file->tensors()) {
    const std::vector<int64_t> strides = ContiguousStrides(tensor.sizes);
    found[tensor.name] = Describe({tensor.dtype, file->data(tensor).data(), tensor.sizes, strides});
  }
  EXPECT_EQ(found, Expected()["plain.safetensors"]);
}

// What the reader of one tensor reads, this one reads as the same.
TEST(TorchArchive, AgreesWithTheReaderOfOneTensor) {
  int read = 0;
  const auto names = ListDirectory(kSingleFiles);
  ASSERT_TRUE(names.has_value());
  for (const std::string& name : *names) {
    const auto file = PtFile::Open(kSingleFiles + name);
    const auto archive = TorchArchive::Open(kSingleFiles + name);
    if (name.starts_with("hostile_system") || name.starts_with("hostile_eval") ||
        name.starts_with("hostile_getattr")) {
      ASSERT_FALSE(archive.has_value()) << name;
      EXPECT_NE(archive.error().message().find("Nothing was executed"), std::string::npos) << name;
    }
    if (!file || name.starts_with("big_endian")) continue;
    ASSERT_TRUE(archive.has_value()) << name << ": " << archive.error().message();
    ASSERT_EQ(archive->tensors().size(), 1U) << name;
    const ArchiveTensor& tensor = archive->tensors().front();
    EXPECT_EQ(tensor.name, "");
    ASSERT_EQ(tensor.problem, "") << name;
    if (tensor.view().element_count() > 1000) continue;
    EXPECT_EQ(Describe(tensor.view()), Describe(file->view())) << name;
    ++read;
  }
  EXPECT_GT(read, 30);
}

TEST(TorchArchive, CutFilesAreErrorsAndChangedBytesAreNoCrash) {
  for (const char* name : {"nested.pt", "nested_legacy.pth"}) {
    const auto whole = ReadFile(std::string(kFiles) + name);
    ASSERT_TRUE(whole.has_value());
    for (size_t size = 0; size < whole->size(); size += 7) {
      const std::string text = whole->substr(0, size);
      EXPECT_FALSE(TorchArchive::Parse(std::as_bytes(std::span(text))).has_value()) << size;
    }
    for (size_t at = 0; at < std::min<size_t>(whole->size(), 3000); ++at) {
      std::string text = *whole;
      text[at] = static_cast<char>(text[at] ^ 0x55);
      const auto archive = TorchArchive::Parse(std::as_bytes(std::span(text)));
      if (!archive) continue;
      for (const ArchiveTensor& tensor : archive->tensors()) {
        if (!tensor.problem.empty() || tensor.view().element_count() > 100000) continue;
        (void)Describe(tensor.view());
      }
    }
  }
}

TEST(Safetensors, EveryCutIsCorrupt) {
  const auto whole = ReadFile(std::string(kFiles) + "plain.safetensors");
  ASSERT_TRUE(whole.has_value());
  for (size_t size = 0; size < whole->size(); ++size) {
    const std::string text = whole->substr(0, size);
    const auto file = safetensors::SafetensorsFile::Parse(std::as_bytes(std::span(text)));
    ASSERT_FALSE(file.has_value()) << size;
    EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt) << size;
  }
}

}  // namespace
}  // namespace plumbline::torch_pt
