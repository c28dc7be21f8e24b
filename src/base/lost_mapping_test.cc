#include "base/lost_mapping.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "base/file.h"
#include "base/test_directory.h"

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

}  // namespace
}  // namespace plumbline
