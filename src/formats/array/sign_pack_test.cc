#include "formats/array/sign_pack.h"

#include <gtest/gtest.h>

#include "base/file/test_directory.h"

namespace plumbline::sign_pack {
namespace {

using plumbline::testing::TestDirectory;

std::vector<std::byte> SignBytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

std::string WriteSample(const TestDirectory& directory) {
  const auto first = SignBytes({0b10110001, 0b1}), second = SignBytes({0b101});
  const Entry entries[] = {{"a.weight", {3, 3}, first}, {"scalar", {}, second}, {"none", {0}, {}}};
  const std::string path = directory.Path("signs.plumb");
  auto file = AtomicFile::Create(path);
  EXPECT_TRUE(file && Write(entries, *file) && file->Commit(false));
  return path;
}

TEST(SignPack, BitsBecomeBytesFromTheLowestOn) {
  std::vector<std::byte> out(16);
  Unpack(SignBytes({0b10110001, 0b11}), out);
  EXPECT_EQ(out, SignBytes({1, 0, 0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0}));
}

TEST(SignPack, WhatWasWrittenIsRead) {
  const TestDirectory directory;
  const auto file = SignFile::Open(WriteSample(directory));
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_EQ(file->entries().size(), 3u);
  EXPECT_EQ(file->entries()[0].name, "a.weight");
  EXPECT_EQ(file->entries()[0].sizes, (Shape{3, 3}));
  EXPECT_EQ(file->entries()[0].bits[0], std::byte{0b10110001});
  EXPECT_EQ(file->entries()[1].bits[0], std::byte{0b101});
  EXPECT_TRUE(file->entries()[2].bits.empty());
}

TEST(SignPack, DamageOfAnyByteIsToldAndEveryCut) {
  const TestDirectory directory;
  const std::string whole = *ReadFile(WriteSample(directory));
  const std::string path = directory.Path("damaged");
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    ASSERT_TRUE(WriteFileAtomically(path, changed, false));
    const auto file = SignFile::Open(path);
    ASSERT_FALSE(file) << "byte " << i;
    EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt);
    ASSERT_TRUE(WriteFileAtomically(path, whole.substr(0, i), false));
    EXPECT_FALSE(SignFile::Open(path)) << "cut at " << i;
  }
}

}  // namespace
}  // namespace plumbline::sign_pack
