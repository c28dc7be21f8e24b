#include "operators/output_names.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <string>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "load/name_mapping.h"

namespace plumbline::operators {
namespace {

using testing::TestDirectory;

SyscallTable& Real() {
  static SyscallTable table;
  return table;
}

// For root, too, whom a mode without permission to write does not hinder.
int OpenWhatIsWritable(int directory, const char* path, int flags, mode_t mode) {
  struct stat facts {};
  const bool is_there = ::fstatat(directory, path, &facts, 0) == 0;
  if (is_there && S_ISREG(facts.st_mode) && (flags & O_ACCMODE) != O_RDONLY &&
      (facts.st_mode & S_IWUSR) == 0) {
    errno = EACCES;
    return -1;
  }
  return Real().openat(directory, path, flags, mode);
}

// MindSpore's own table is read-only, and a row could not be added to it.
TEST(OutputDirectory, AReadOnlyMappingGetsRows) {
  const TestDirectory dir;
  const std::string table = dir.Path("mapping.csv");
  ASSERT_TRUE(WriteFileAtomically(table, "4711,a.b.1.2.3\n", /*durable=*/false));
  ASSERT_EQ(::chmod(table.c_str(), S_IRUSR), 0);
  Real() = Syscalls();
  Syscalls().openat = OpenWhatIsWritable;
  const std::string first = std::string(300, 'a') + ".npy", second = std::string(300, 'b') + ".npy";
  DumpResult<OutputDirectory> out = OutputDirectory::Open(dir.path());
  ASSERT_TRUE(out);
  const auto nothing = [](AtomicFile&) -> DumpResult<uint64_t> { return 0; };
  const DumpResult<PlacedFile> one = out->Write(first, nothing), two = out->Write(second, nothing);
  Syscalls() = Real();
  ASSERT_TRUE(one && two);
  const auto line = [](const PlacedFile& file, const std::string& name) {
    return std::string(BaseName(file.path)) + "," + name + "\n";
  };
  EXPECT_EQ(*ReadFile(table), "4711,a.b.1.2.3\n" + line(*one, first) + line(*two, second));
}

// Commas, quotes and line breaks in a name are no cells and rows of their own.
TEST(OutputDirectory, NamesAreReadAsTheyWereWritten) {
  const TestDirectory dir;
  std::map<std::string, std::string> names;
  {
    DumpResult<OutputDirectory> out = OutputDirectory::Open(dir.path());
    ASSERT_TRUE(out);
    for (const char* name : {"a,b", "\"a\"", "a\nb", "-a", "\xff", "a\r"}) {
      const std::string full = name + std::string(300, 'x') + ".npy";
      const auto placed = out->Write(full, [](AtomicFile&) -> DumpResult<uint64_t> { return 0; });
      ASSERT_TRUE(placed);
      names.emplace(BaseName(placed->path), full);
    }
  }
  const auto mapping = load::NameMapping::Read(dir.path());
  ASSERT_TRUE(mapping);
  EXPECT_EQ(mapping->rows(), names);
  EXPECT_TRUE(mapping->notes().empty());
}

}  // namespace
}  // namespace plumbline::operators
