#include "base/file/lost_mapping.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "base/file/file.h"
#include "base/file/test_directory.h"

namespace plumbline {
namespace {

using testing::TestDirectory;

// Cuts the file off and reads what was behind the cut, in several threads at once.
void ReadWhatIsLost(const std::string& path) {
  EndWithLineOnLostMapping(6);
  const auto mapped = MappedFile::Open(path);
  if (!mapped || ::truncate(path.c_str(), 10) != 0) return;
  std::vector<std::jthread> readers;
  for (size_t i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      volatile std::byte last = (*mapped)->bytes().back();
      (void)last;
    });
  }
}

TEST(LostMapping, EndsWithTheNameOfTheFile) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TestDirectory dir;
  const std::string path = dir.Path("values.npy");
  ASSERT_TRUE(WriteFileAtomically(path, std::string(100'000, 'x'), false));
  EXPECT_EXIT(ReadWhatIsLost(path), ::testing::ExitedWithCode(6),
              "plumb: /.*/values.npy: became shorter, or its disk failed, while it was read");
}

std::byte LastOf(const MappedFile& file) {
  const volatile std::byte* last = &file.bytes().back();
  return *last;
}

struct sigaction ActionNow() {
  struct sigaction now {};
  (void)::sigaction(SIGBUS, nullptr, &now);
  return now;
}

TEST(LossWatch, WhatIsLostReadsAsZerosAndIsSaid) {
  const TestDirectory dir;
  const std::string path = dir.Path("values.npy"), other = dir.Path("other.npy");
  for (const std::string& each : {path, other}) {
    ASSERT_TRUE(WriteFileAtomically(each, std::string(100'000, 'x'), false));
  }
  const auto before = ActionNow();
  {
    const LossWatch watch;
    const auto kept = MappedFile::Open(other), lost = MappedFile::Open(path);
    ASSERT_TRUE(kept && lost);
    ASSERT_EQ(::truncate(path.c_str(), 10), 0);
    EXPECT_TRUE(watch.Check());
    std::vector<std::jthread> readers;
    for (size_t i = 0; i < 4; ++i) {
      readers.emplace_back([&] { EXPECT_EQ(LastOf(**lost), std::byte{0}); });
    }
    readers.clear();
    EXPECT_EQ((*lost)->bytes()[3], std::byte{'x'});
    EXPECT_EQ(LastOf(**kept), std::byte{'x'});
    EXPECT_EQ(watch.Check().error().message(),
              path +
                  ": became shorter, or its disk failed, while it was read. Run again when no "
                  "other program writes to it");
    EXPECT_EQ(watch.Check().error().code(), ErrorCode::kIo);
    const LossWatch later;
    EXPECT_TRUE(later.Check());
  }
  EXPECT_EQ(ActionNow().sa_handler, before.sa_handler);
}

void EndWithThree(int) { ::_exit(3); }

// A mapping of somebody else, cut off while a watch lives.
void ReadWhatOthersLost(const std::string& path, void (*handler)(int)) {
  ::signal(SIGBUS, handler);
  const LossWatch watch;
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  const auto* bytes =
      static_cast<const volatile char*>(::mmap(nullptr, 100'000, PROT_READ, MAP_SHARED, fd, 0));
  if (bytes == MAP_FAILED || ::ftruncate(fd, 10) != 0) return;
  (void)bytes[99'000];
}

TEST(LossWatch, MappingsOfOthersAreLeftToTheHandlerOfTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TestDirectory dir;
  const std::string path = dir.Path("theirs");
  ASSERT_TRUE(WriteFileAtomically(path, std::string(100'000, 'x'), false));
  EXPECT_EXIT(ReadWhatOthersLost(path, EndWithThree), ::testing::ExitedWithCode(3), "");
  ASSERT_TRUE(WriteFileAtomically(path, std::string(100'000, 'x'), false));
  EXPECT_EXIT(ReadWhatOthersLost(path, SIG_DFL), ::testing::KilledBySignal(SIGBUS), "");
}

// A program that serves several files outlives one that is cut.
void ServeWhatIsCut(const std::string& path) {
  EndWithLineOnLostMapping(6);
  LiveOnWithLostMapping();
  const LossWatch watch;
  const auto file = MappedFile::Open(path);
  if (!file || ::truncate(path.c_str(), 10) != 0) ::_exit(1);
  const bool reads_zero = (*file)->bytes()[99'000] == std::byte{0};
  ::_exit(reads_zero && !watch.Check() ? 0 : 2);
}

TEST(LossWatch, AProgramThatServesLivesOn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TestDirectory dir;
  const std::string path = dir.Path("served");
  ASSERT_TRUE(WriteFileAtomically(path, std::string(100'000, 'x'), false));
  EXPECT_EXIT(ServeWhatIsCut(path), ::testing::ExitedWithCode(0), "");
}

void SendItself(void (*handler)(int)) {
  ::signal(SIGBUS, handler);
  const LossWatch watch;
  (void)::raise(SIGBUS);
  ::_exit(0);
}

TEST(LossWatch, SignalsThatSomebodySentAreLeftToTheHandlerOfTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(SendItself(SIG_IGN), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(SendItself(SIG_DFL), ::testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(SendItself(EndWithThree), ::testing::ExitedWithCode(3), "");
}

TEST(LossWatch, AHandlerThatCameLaterStays) {
  const auto before = ActionNow();
  {
    const LossWatch watch;
    ::signal(SIGBUS, EndWithThree);
  }
  EXPECT_EQ(ActionNow().sa_handler, EndWithThree);
  (void)::sigaction(SIGBUS, &before, nullptr);
}

}  // namespace
}  // namespace plumbline
