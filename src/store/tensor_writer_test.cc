#include "store/tensor_writer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/test_directory.h"
#include "formats/torch_pt.h"

namespace plumbline {
namespace {

using testing::FailingCalls;
using testing::TestDirectory;

// A job whose elements are bytes counting up from `first`.
TensorJob Job(TensorWriter& writer, const std::string& path, size_t size, int first = 0) {
  TensorJob job;
  job.path = path;
  job.dtype = DType::kUInt8;
  job.sizes = {static_cast<int64_t>(size)};
  job.buffer = writer.Acquire(size);
  if (!job.buffer.is_valid()) return job;
  for (size_t i = 0; i < size; ++i) {
    job.buffer.bytes()[i] = static_cast<std::byte>(i + static_cast<size_t>(first));
  }
  job.crc32 = Crc32(job.buffer.bytes());
  return job;
}

TensorJob LinkJob(const std::string& from, const std::string& to) {
  TensorJob job;
  job.path = to;
  job.link_from = from;
  return job;
}

ino_t Inode(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

// The frame around the data comes from formats/torch_pt; its reader is the truth here.
void ExpectHolds(const std::string& path, size_t size, int first = 0) {
  const auto file = torch_pt::PtFile::Open(path);
  ASSERT_TRUE(file) << file.error().message();
  const TensorView view = file->view();
  ASSERT_EQ(view.size_bytes(), size);
  for (size_t i = 0; i < size; i += 997) {
    ASSERT_EQ(view.data[i], static_cast<std::byte>(i + static_cast<size_t>(first)));
  }
}

TEST(TensorWriter, FilesOfAllSizesHoldTheirTensor) {
  const TestDirectory dir;
  TensorWriter writer;
  for (const size_t size : {0UL, 1UL, 65535UL, 65536UL, 65537UL, 3UL << 20}) {
    const std::string path = dir.Path(std::to_string(size) + ".pt");
    writer.WaitFor(writer.Submit(Job(writer, path, size)));
    ExpectHolds(path, size);
  }
  EXPECT_EQ(writer.stats().files, 6U);
  EXPECT_EQ(writer.stats().lost, 0U);
  EXPECT_EQ(ListDirectory(dir.path())->size(), 6U);
}

TEST(TensorWriter, ZerosTakeNoDiskSpace) {
  const TestDirectory dir;
  TensorWriter writer;
  constexpr size_t kSize = size_t{4} << 20;
  // Ones at the begin, around the middle and at the end; or nowhere.
  for (const bool has_ones : {true, false}) {
    const std::string path = dir.Path(has_ones ? "ones.pt" : "zeros.pt");
    TensorJob job = Job(writer, path, kSize);
    const std::span<std::byte> bytes = job.buffer.bytes();
    std::ranges::fill(bytes, std::byte{0});
    for (const size_t at : {size_t{0}, kSize / 2 - 1, kSize / 2 + 70000, kSize - 1}) {
      if (has_ones) bytes[at] = std::byte{1};
    }
    const std::vector<std::byte> expected(bytes.begin(), bytes.end());
    job.crc32 = Crc32(bytes);
    writer.WaitFor(writer.Submit(std::move(job)));
    const auto file = torch_pt::PtFile::Open(path);
    ASSERT_TRUE(file) << file.error().message();
    ASSERT_EQ(file->view().size_bytes(), kSize);
    EXPECT_EQ(std::memcmp(file->view().data, expected.data(), kSize), 0);
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_GT(info.st_size, static_cast<off_t>(kSize));
    EXPECT_LT(info.st_blocks * 512, info.st_size / 4);
  }
}

TEST(TensorWriter, EqualContentsAreLinks) {
  const TestDirectory dir;
  TensorWriter writer;
  writer.Submit(Job(writer, dir.Path("a.pt"), 1000));
  writer.WaitFor(writer.Submit(LinkJob(dir.Path("a.pt"), dir.Path("b.pt"))));
  EXPECT_EQ(Inode(dir.Path("a.pt")), Inode(dir.Path("b.pt")));
  EXPECT_EQ(writer.stats().files, 1U);
  EXPECT_EQ(writer.stats().links, 1U);
}

TEST(TensorWriter, LinkReplacesAFileOfAnEarlierRun) {
  const TestDirectory dir;
  ASSERT_TRUE(WriteFileAtomically(dir.Path("b.pt"), "old", false));
  TensorWriter writer;
  writer.Submit(Job(writer, dir.Path("a.pt"), 1000));
  writer.Submit(LinkJob(dir.Path("a.pt"), dir.Path("b.pt")));
  writer.WaitFor(writer.Submit(LinkJob(dir.Path("a.pt"), dir.Path("b.pt"))));
  ExpectHolds(dir.Path("b.pt"), 1000);
  EXPECT_FALSE(writer.failed());
  EXPECT_EQ(ListDirectory(dir.path())->size(), 2U);
}

TEST(TensorWriter, WithoutLinksContentsAreCopied) {
  const TestDirectory dir;
  TensorWriter writer;
  writer.WaitFor(writer.Submit(Job(writer, dir.Path("a.pt"), 2 << 20)));
  const SyscallTable real = Syscalls();
  Syscalls().link = [](const char*, const char*) {
    errno = EPERM;
    return -1;
  };
  writer.WaitFor(writer.Submit(LinkJob(dir.Path("a.pt"), dir.Path("b.pt"))));
  Syscalls() = real;
  EXPECT_NE(Inode(dir.Path("a.pt")), Inode(dir.Path("b.pt")));
  ExpectHolds(dir.Path("b.pt"), 2 << 20);
}

// The disk fills up at every call in turn: nothing partial is visible, one message, the rest is
// counted.
TEST(TensorWriter, FullDiskSwitchesWritingOffOnce) {
  SetLogLevel(LogLevel::kInfo);
  for (int n = 0; n < 6; ++n) {
    const TestDirectory dir;
    ::testing::internal::CaptureStdout();
    size_t files = 0;
    {
      TensorWriter writer;
      const FailingCalls faults(n, ENOSPC, /*sticky=*/true);
      uint64_t ticket = 0;
      for (int i = 0; i < 4; ++i) {
        ticket = writer.Submit(Job(writer, dir.Path(std::to_string(i) + ".pt"), 100));
      }
      writer.WaitFor(ticket);
      EXPECT_TRUE(writer.failed());
      EXPECT_FALSE(writer.Acquire(10).is_valid());
      files = writer.stats().files;
      EXPECT_EQ(writer.stats().lost, 4 - files);
    }
    const std::string log = ::testing::internal::GetCapturedStdout();
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
    EXPECT_NE(log.find("No space left"), std::string::npos) << log;
    const auto names = ListDirectory(dir.path());
    ASSERT_TRUE(names);
    EXPECT_EQ(names->size(), files) << n;
    for (const std::string& name : *names) ExpectHolds(dir.Path(name), 100);
  }
}

TEST(TensorWriter, BudgetMakesTheProducerWait) {
  const TestDirectory dir;
  constexpr size_t kSize = 1 << 20;
  TensorWriter writer(2 * kSize);
  for (int i = 0; i < 20; ++i) writer.Submit(Job(writer, dir.Path(std::to_string(i)), kSize, i));
  writer.WaitFor(20);
  EXPECT_EQ(writer.stats().files, 20U);
  for (int i = 0; i < 20; ++i) ExpectHolds(dir.Path(std::to_string(i)), kSize, i);
}

TEST(TensorWriter, OneTensorLargerThanTheBudgetIsAllowed) {
  const TestDirectory dir;
  TensorWriter writer(1000);
  writer.WaitFor(writer.Submit(Job(writer, dir.Path("a"), 100000)));
  ExpectHolds(dir.Path("a"), 100000);
}

// A caller may hold several buffers before it submits any: waiting would be for ever.
TEST(TensorWriter, BuffersInOneHandDoNotDeadlock) {
  TensorWriter writer(1000);
  const TensorBuffer first = writer.Acquire(900);
  const TensorBuffer second = writer.Acquire(900);
  EXPECT_TRUE(first.is_valid() && second.is_valid());
}

TEST(TensorWriter, BuffersAreRecycled) {
  TensorWriter writer;
  const std::byte* first = nullptr;
  {
    const TensorBuffer buffer = writer.Acquire(8 << 20);
    first = buffer.bytes().data();
  }
  const TensorBuffer again = writer.Acquire((8 << 20) - 100);
  EXPECT_EQ(again.bytes().data(), first);
  EXPECT_EQ(again.bytes().size(), (8U << 20) - 100);
}

TEST(TensorWriter, DestructionFinishesTheQueue) {
  const TestDirectory dir;
  {
    TensorWriter writer;
    for (int i = 0; i < 50; ++i) writer.Submit(Job(writer, dir.Path(std::to_string(i)), 10000));
  }
  EXPECT_EQ(ListDirectory(dir.path())->size(), 50U);
}

TEST(ContentKey, DependsOnBytesTypeAndShape) {
  const Digest128 digest{1, 2};
  const int64_t flat[] = {6};
  const int64_t square[] = {2, 3};
  const ContentKey key = MakeContentKey(digest, DType::kFloat32, flat);
  EXPECT_EQ(key, MakeContentKey(digest, DType::kFloat32, flat));
  EXPECT_NE(key, MakeContentKey(digest, DType::kInt32, flat));
  EXPECT_NE(key, MakeContentKey(digest, DType::kFloat32, square));
  EXPECT_NE(key, MakeContentKey(Digest128{1, 3}, DType::kFloat32, flat));
  EXPECT_NE(MakeContentKey(digest, DType::kFloat32, {}), MakeContentKey(digest, DType::kInt32, {}));
}

}  // namespace
}  // namespace plumbline
