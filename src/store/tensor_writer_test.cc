#include "store/tensor_writer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/process/log.h"
#include "formats/array/npy.h"
#include "formats/pytorch/torch_pt.h"

namespace plumbline {
namespace {

using testing::FailingCalls;
using testing::TestDirectory;

std::shared_ptr<TensorDirectory> Shared(const std::string& path) {
  auto directory = Directory::Open(path);
  EXPECT_TRUE(directory);
  return std::make_shared<TensorDirectory>(*std::move(directory));
}

// A writer with a place for its complaints.
struct Complaints {
  Trouble trouble;
};
class TestWriter : private Complaints, public TensorWriter {
 public:
  explicit TestWriter(const TensorLimits& limits = {}) : TensorWriter(trouble, limits) {}
};

// A job whose elements are bytes counting up from `first`.
TensorJob Job(TensorWriter& writer, const std::string& path, size_t size, int first = 0) {
  TensorJob job;
  job.directory = Shared(std::string(DirectoryOf(path)));
  job.name = BaseName(path);
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
  job.directory = Shared(std::string(DirectoryOf(to)));
  job.name = BaseName(to);
  job.link_from = BaseName(from);
  return job;
}

ino_t Inode(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

// The frame around the data comes from formats/pytorch/torch_pt; its reader is the truth here.
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
  TestWriter writer;
  for (const size_t size : {0UL, 1UL, 65535UL, 65536UL, 65537UL, 3UL << 20}) {
    const std::string path = dir.Path(std::to_string(size) + ".pt");
    writer.WaitFor(writer.Submit(Job(writer, path, size)));
    ExpectHolds(path, size);
  }
  EXPECT_EQ(writer.stats().files, 6U);
  EXPECT_EQ(writer.stats().lost, 0U);
  EXPECT_EQ(ListDirectory(dir.path())->size(), 6U);
}

TEST(TensorWriter, NamesInNpyGetNumPysFormat) {
  const TestDirectory dir;
  TestWriter writer;
  for (const size_t size : {0UL, 65537UL, 3UL << 20}) {
    const std::string path = dir.Path(std::to_string(size) + ".npy");
    writer.WaitFor(writer.Submit(Job(writer, path, size)));
    const auto file = npy::NpyFile::Open(path);
    ASSERT_TRUE(file) << file.error().message();
    ASSERT_EQ(file->view().size_bytes(), size);
    for (size_t i = 0; i < size; i += 997) {
      ASSERT_EQ(file->view().data[i], static_cast<std::byte>(i));
    }
  }
}

TEST(TensorWriter, ZerosTakeNoDiskSpace) {
  const TestDirectory dir;
  TestWriter writer;
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
  TestWriter writer;
  writer.Submit(Job(writer, dir.Path("a.pt"), 1000));
  writer.WaitFor(writer.Submit(LinkJob(dir.Path("a.pt"), dir.Path("b.pt"))));
  EXPECT_EQ(Inode(dir.Path("a.pt")), Inode(dir.Path("b.pt")));
  EXPECT_EQ(writer.stats().files, 1U);
  EXPECT_EQ(writer.stats().links, 1U);
}

TEST(TensorWriter, LinkReplacesAFileOfAnEarlierRun) {
  const TestDirectory dir;
  ASSERT_TRUE(WriteFileAtomically(dir.Path("b.pt"), "old", false));
  TestWriter writer;
  writer.Submit(Job(writer, dir.Path("a.pt"), 1000));
  writer.Submit(LinkJob(dir.Path("a.pt"), dir.Path("b.pt")));
  writer.WaitFor(writer.Submit(LinkJob(dir.Path("a.pt"), dir.Path("b.pt"))));
  ExpectHolds(dir.Path("b.pt"), 1000);
  EXPECT_FALSE(writer.failed());
  EXPECT_EQ(ListDirectory(dir.path())->size(), 2U);
}

TEST(TensorWriter, WithoutLinksContentsAreCopied) {
  const TestDirectory dir;
  TestWriter writer;
  writer.WaitFor(writer.Submit(Job(writer, dir.Path("a.pt"), 2 << 20)));
  const SyscallTable real = Syscalls();
  Syscalls().linkat = [](int, const char*, int, const char*, int) {
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
    ::testing::internal::CaptureStderr();
    size_t files = 0;
    {
      TestWriter writer;
      std::vector<TensorJob> jobs;
      for (int i = 0; i < 4; ++i) {
        jobs.push_back(Job(writer, dir.Path(std::to_string(i) + ".pt"), 100));
      }
      const FailingCalls faults(n, ENOSPC, /*sticky=*/true);
      uint64_t ticket = 0;
      for (TensorJob& job : jobs) ticket = writer.Submit(std::move(job));
      writer.WaitFor(ticket);
      EXPECT_TRUE(writer.failed());
      EXPECT_FALSE(writer.Acquire(10).is_valid());
      files = writer.stats().files;
      EXPECT_EQ(writer.stats().lost, 4 - files);
    }
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
    EXPECT_NE(log.find("No space left"), std::string::npos) << log;
    const auto names = ListDirectory(dir.path());
    ASSERT_TRUE(names);
    EXPECT_EQ(names->size(), files) << n;
    for (const std::string& name : *names) ExpectHolds(dir.Path(name), 100);
  }
}

TEST(TensorWriter, QuotaCountsContentsOnceAndStopsOnce) {
  SetLogLevel(LogLevel::kInfo);
  const TestDirectory dir;
  ::testing::internal::CaptureStderr();
  TestWriter writer({.max_bytes = 10'000});
  // 3 x about 2.5 kB; links and replacing count nothing; the fourth of 4 kB is too much.
  for (const char* name : {"a", "b", "c", "c", "c"}) {
    writer.Submit(Job(writer, dir.Path(name), 2000));
  }
  for (int i = 0; i < 20; ++i) {
    writer.Submit(LinkJob(dir.Path("a"), dir.Path("link" + std::to_string(i))));
  }
  writer.WaitFor(25);
  EXPECT_FALSE(writer.failed());
  uint64_t bytes = 0;
  for (const char* name : {"a", "b", "c"}) bytes += FileSize(dir.Path(name)).value_or(0);
  ASSERT_LE(bytes, 10'000U);
  ASSERT_GT(bytes + 4000, 10'000U);
  writer.Submit(Job(writer, dir.Path("d"), 4000));
  TensorJob after = LinkJob(dir.Path("a"), dir.Path("e"));
  const auto directory = after.directory;
  writer.WaitFor(writer.Submit(std::move(after)));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(writer.failed());
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_NE(log.find("max_bytes = 10000"), std::string::npos) << log;
  EXPECT_NE(writer.reason().find("max_bytes"), std::string::npos);
  EXPECT_EQ(writer.stats().lost, 2U);
  EXPECT_TRUE(directory->HasLost("e"));
  EXPECT_EQ(ListDirectory(dir.path())->size(), 23U);
}

TEST(TensorWriter, FreeSpaceIsKept) {
  SetLogLevel(LogLevel::kSilent);
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  struct Case {
    std::optional<uint64_t> min_free;
    uint64_t free_bytes;
    uint64_t total_bytes;
    bool writes;
  };
  const Case cases[] = {
      {std::nullopt, 2 * kGiB, 1000 * kGiB, true},   // more than 1 GiB
      {std::nullopt, kGiB / 2, 1000 * kGiB, false},  // 2 % would be 20 GiB: 1 GiB counts
      {std::nullopt, kGiB / 2, 10 * kGiB, true},     // 2 % are 205 MiB
      {std::nullopt, kGiB / 8, 10 * kGiB, false},    //
      {0, 0, 10 * kGiB, true},                       // switched off
      {3 * kGiB, 2 * kGiB, 10 * kGiB, false},        //
      {3 * kGiB, 4 * kGiB, 10 * kGiB, true},         //
      {3 * kGiB, 0, 0, true},                        // a file system that does not say
  };
  static Case current;
  const SyscallTable real = Syscalls();
  Syscalls().fstatvfs = [](int, struct statvfs* info) {
    *info = {};
    info->f_frsize = 4096;
    info->f_bavail = current.free_bytes / 4096;
    info->f_blocks = current.total_bytes / 4096;
    return 0;
  };
  for (const Case& one : cases) {
    current = one;
    const TestDirectory dir;
    TestWriter writer({.min_free_bytes = one.min_free});
    writer.WaitFor(writer.Submit(Job(writer, dir.Path("a"), 100)));
    EXPECT_EQ(writer.failed(), !one.writes) << one.free_bytes << " of " << one.total_bytes;
    EXPECT_EQ(ListDirectory(dir.path())->size(), one.writes ? 1U : 0U);
  }
  Syscalls() = real;
  SetLogLevel(LogLevel::kInfo);
}

// A directory that goes away is given up alone; nothing is written to what stands in its place.
TEST(TensorWriter, DirectoryRemovedOrReplacedIsGivenUpAlone) {
  SetLogLevel(LogLevel::kInfo);
  for (const bool replaced : {false, true}) {
    const TestDirectory dir;
    for (const char* name : {"one", "two", "elsewhere"}) {
      ASSERT_TRUE(MakeDirectories(dir.Path(name)));
    }
    TestWriter writer;
    const auto one = Shared(dir.Path("one"));
    TensorJob first = Job(writer, dir.Path("one/a"), 100);
    TensorJob second = Job(writer, dir.Path("one/b"), 100);
    first.directory = second.directory = one;
    std::filesystem::remove_all(dir.Path("one"));
    if (replaced) std::filesystem::create_symlink("elsewhere", dir.Path("one"));
    ::testing::internal::CaptureStderr();
    writer.Submit(std::move(first));
    writer.Submit(std::move(second));
    writer.WaitFor(writer.Submit(Job(writer, dir.Path("two/c"), 100)));
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
    EXPECT_NE(log.find("was removed"), std::string::npos) << log;
    EXPECT_TRUE(one->HasLost("a") && one->HasLost("b"));
    EXPECT_TRUE(ListDirectory(dir.Path("elsewhere"))->empty());
    EXPECT_FALSE(writer.failed());
    ExpectHolds(dir.Path("two/c"), 100);
  }
}

TEST(TensorWriter, FileRemovedUnderItIsGivenUpAlone) {
  SetLogLevel(LogLevel::kInfo);
  const TestDirectory dir;
  TestWriter writer;
  writer.WaitFor(writer.Submit(Job(writer, dir.Path("a"), 100)));
  std::filesystem::remove(dir.Path("a"));
  ::testing::internal::CaptureStderr();
  TensorJob link = LinkJob(dir.Path("a"), dir.Path("link"));
  const auto directory = link.directory;
  writer.Submit(std::move(link));
  writer.Submit(LinkJob(dir.Path("a"), dir.Path("link2")));
  writer.WaitFor(writer.Submit(Job(writer, dir.Path("b"), 100)));
  const std::string log = ::testing::internal::GetCapturedStderr();
  SetLogLevel(LogLevel::kSilent);
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_NE(log.find("a file in it was removed"), std::string::npos) << log;
  EXPECT_FALSE(writer.failed());
  EXPECT_TRUE(directory->HasLost("link"));
  EXPECT_EQ(writer.stats().lost, 2U);
  ExpectHolds(dir.Path("b"), 100);
}

TEST(TensorWriter, LinksPlantedInThePlaceOfFilesAreNotFollowed) {
  SetLogLevel(LogLevel::kSilent);
  const TestDirectory dir;
  ASSERT_TRUE(MakeDirectories(dir.Path("out")));
  ASSERT_TRUE(WriteFileAtomically(dir.Path("victim"), "mine", false));
  std::filesystem::create_symlink(dir.Path("victim"), dir.Path("out/.a.tmp"));
  std::filesystem::create_symlink(dir.Path("victim"), dir.Path("out/b"));
  TestWriter writer;
  writer.Submit(Job(writer, dir.Path("out/b"), 100));
  writer.WaitFor(writer.Submit(Job(writer, dir.Path("out/a"), 100)));
  EXPECT_EQ(ReadFile(dir.Path("victim")).value_or(""), "mine");
  ExpectHolds(dir.Path("out/b"), 100);
  SetLogLevel(LogLevel::kInfo);
}

TEST(TensorWriter, TryAcquireNeverWaits) {
  const TestDirectory dir;
  TestWriter writer({.budget_bytes = 120'000});
  const TensorBuffer held = writer.Acquire(90'000);
  EXPECT_TRUE(writer.TryAcquire(90'000).is_valid());  // nothing is under way: no use in waiting
  // While a job is under way.
  static std::atomic<bool> go;
  go = false;
  const SyscallTable real = Syscalls();
  Syscalls().renameat = [](int a, const char* b, int c, const char* d) {
    while (!go) std::this_thread::yield();
    return ::renameat(a, b, c, d);
  };
  const uint64_t ticket = writer.Submit(Job(writer, dir.Path("a"), 100));
  EXPECT_FALSE(writer.TryAcquire(90'000).is_valid());
  EXPECT_TRUE(writer.TryAcquire(100).is_valid());
  EXPECT_EQ(writer.stats().waits, 0U);
  go = true;
  writer.WaitFor(ticket);
  Syscalls() = real;
}

TEST(TensorWriter, BudgetMakesTheProducerWait) {
  const TestDirectory dir;
  constexpr size_t kSize = 1 << 20;
  TestWriter writer({.budget_bytes = 2 * kSize});
  for (int i = 0; i < 20; ++i) writer.Submit(Job(writer, dir.Path(std::to_string(i)), kSize, i));
  writer.WaitFor(20);
  EXPECT_EQ(writer.stats().files, 20U);
  for (int i = 0; i < 20; ++i) ExpectHolds(dir.Path(std::to_string(i)), kSize, i);
}

TEST(TensorWriter, OneTensorLargerThanTheBudgetIsAllowed) {
  const TestDirectory dir;
  TestWriter writer({.budget_bytes = 1000});
  writer.WaitFor(writer.Submit(Job(writer, dir.Path("a"), 100000)));
  ExpectHolds(dir.Path("a"), 100000);
}

// A caller may hold several buffers before it submits any: waiting would be for ever.
TEST(TensorWriter, BuffersInOneHandDoNotDeadlock) {
  TestWriter writer({.budget_bytes = 1000});
  const TensorBuffer first = writer.Acquire(900);
  const TensorBuffer second = writer.Acquire(900);
  EXPECT_TRUE(first.is_valid() && second.is_valid());
}

TEST(TensorWriter, BuffersAreRecycled) {
  TestWriter writer;
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
    TestWriter writer;
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
