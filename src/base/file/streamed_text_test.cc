#include "base/file/streamed_text.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/file/test_directory.h"

namespace plumbline {
namespace {

using testing::TestDirectory;

constexpr size_t kMegabyte = size_t{1} << 20;

std::string Numbered(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i % 23);
  return text;
}

TEST(StreamedText, HoldsTheWholeFile) {
  const TestDirectory directory;
  const std::string path = directory.Path("text");
  // Around the steps in which memory is taken.
  for (const size_t size :
       {size_t{0}, size_t{1}, 4 * kMegabyte - 1, 4 * kMegabyte, 4 * kMegabyte + 1}) {
    const std::string expected = Numbered(size);
    ASSERT_TRUE(WriteFileAtomically(path, expected, false));
    const auto text = StreamedText::Load(path);
    ASSERT_TRUE(text);
    EXPECT_TRUE(text->view() == expected) << size;
  }
}

TEST(StreamedText, WhatIsNotReleasedStays) {
  const TestDirectory directory;
  const std::string path = directory.Path("text");
  const std::string expected = Numbered(13 * kMegabyte);
  ASSERT_TRUE(WriteFileAtomically(path, expected, false));
  auto text = StreamedText::Load(path);
  ASSERT_TRUE(text);
  for (const size_t bytes : {size_t{0}, size_t{5}, 9 * kMegabyte, 3 * kMegabyte, 10 * kMegabyte}) {
    text->Release(bytes);
  }
  EXPECT_TRUE(text->view().substr(10 * kMegabyte) == expected.substr(10 * kMegabyte));
  EXPECT_EQ(text->view()[0], '\0');  // given back
  text->Release(expected.size() + kMegabyte);
}

TEST(StreamedText, LoadsAsFarAsAsked) {
  const TestDirectory directory;
  const std::string path = directory.Path("text");
  const std::string expected = Numbered(9 * kMegabyte + 5);
  ASSERT_TRUE(WriteFileAtomically(path, expected, false));
  auto text = StreamedText::Open(path);
  ASSERT_TRUE(text);
  EXPECT_TRUE(text->view().empty());
  for (const size_t bytes : {size_t{3}, 4 * kMegabyte + 1, 2 * kMegabyte, 9 * kMegabyte + 5}) {
    ASSERT_TRUE(text->LoadUntil(bytes));
    EXPECT_GE(text->view().size(), bytes);
    EXPECT_TRUE(text->view() == std::string_view(expected).substr(0, text->view().size()));
  }
  ASSERT_TRUE(text->LoadUntil(expected.size() + 1));
  EXPECT_TRUE(text->is_whole());
  EXPECT_EQ(text->view().size(), expected.size());
}

TEST(StreamedText, GrowsWithAFileThatSaysNothingOfItsSize) {
  // Files of the kernel are read until they end; their size is 0.
  const auto text = StreamedText::Load("/proc/self/status");
  ASSERT_TRUE(text);
  EXPECT_TRUE(text->view().starts_with("Name:"));
}

TEST(StreamedText, MissingFileAndDirectory) {
  const TestDirectory directory;
  EXPECT_EQ(StreamedText::Load(directory.Path("no")).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(StreamedText::Load(directory.path()).error().code(), ErrorCode::kInvalidArgument);
}

TEST(StreamedText, ReadsOnInReleasedMemoryAlsoWhereTheFileGrew) {
  const TestDirectory directory;
  const std::string path = directory.Path("text");
  const std::string expected = Numbered(61 * kMegabyte + 5);
  ASSERT_TRUE(WriteFileAtomically(path, expected.substr(0, 33 * kMegabyte + 3), false));
  auto text = StreamedText::Open(path);
  ASSERT_TRUE(text);
  std::ofstream(path, std::ios::app) << expected.substr(33 * kMegabyte + 3);
  size_t at = 0;
  for (; !text->is_whole(); at = text->view().size()) {
    ASSERT_TRUE(text->LoadUntil(at + 3 * kMegabyte + 7));
    const std::string_view piece = text->view().substr(at);
    ASSERT_TRUE(piece == std::string_view(expected).substr(at, piece.size())) << at;
    text->Release(at + piece.size() / 2);
  }
  EXPECT_EQ(at, expected.size());
}

// Address space that another thread gets meanwhile is its own.
TEST(StreamedText, ReleasedAddressesAreNobodyElses) {
  const TestDirectory directory;
  const std::string path = directory.Path("text");
  ASSERT_TRUE(WriteFileAtomically(path, std::string(64 * kMegabyte, 'x'), false));
  constexpr size_t kSize = 4 * kMegabyte, kMost = 50'000;
  for (int run = 0; run < 25; ++run) {
    std::atomic<bool> is_done = false;
    std::vector<void*> taken;
    std::thread other([&] {
      while (!is_done && taken.size() < kMost) {
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        void* const memory = ::mmap(nullptr, kSize, PROT_NONE, flags, -1, 0);
        if (memory == MAP_FAILED) break;
        taken.push_back(memory);
      }
    });
    {
      auto text = StreamedText::Open(path);
      for (size_t at = 0; text && !text->is_whole(); at = text->view().size()) {
        if (!text->LoadUntil(at + kMegabyte)) break;
        text->Release(text->view().size());
      }
      EXPECT_TRUE(text && text->is_whole());
    }
    is_done = true;
    other.join();
    size_t lost = 0;
    for (void* const memory : taken) {
      std::vector<unsigned char> resident(kSize >> 12);
      lost += ::mincore(memory, kSize, resident.data()) == 0 ? 0 : 1;
      ::munmap(memory, kSize);
    }
    EXPECT_EQ(lost, 0U);
  }
}

}  // namespace
}  // namespace plumbline
