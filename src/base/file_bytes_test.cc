#include "base/file_bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/test_directory.h"

namespace plumbline {
namespace {

std::string TextOf(const FileBytes& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(FileBytes, SmallAndLargeFilesAreWhole) {
  const testing::TestDirectory directory;
  const std::string path = directory.Path("file");
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{122879}, size_t{122880}, size_t{122881}, size_t{3} << 20}) {
    std::string text(size, 'x');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 % 251);
    ASSERT_TRUE(WriteFileAtomically(path, text, false));
    Result<FileBytes> file = FileBytes::Open(path);
    ASSERT_TRUE(file);
    const FileBytes moved = std::move(*file);
    EXPECT_TRUE(TextOf(moved) == text) << size;
  }
}

TEST(FileBytes, WhatCannotBeReadIsAnError) {
  const testing::TestDirectory directory;
  const auto missing = FileBytes::Open(directory.Path("missing"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
  const auto folder = FileBytes::Open(directory.Path(""));
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(folder.error().message().find("not a regular file"), std::string::npos);
}

}  // namespace
}  // namespace plumbline
