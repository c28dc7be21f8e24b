#include "base/huge_pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace plumbline {
namespace {

using Numbers = std::vector<double, HugePageAllocator<double>>;

constexpr size_t kLarge = kHugePageBytes / sizeof(double);

// The line VmFlags of the mapping that holds `data`.
std::string FlagsOfMapping(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  std::ifstream maps("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    char dash = 0;
    std::istringstream words(line);
    if (words >> std::hex >> begin >> dash >> end && dash == '-') {
      is_here = begin <= address && address < end;
    } else if (is_here && line.starts_with("VmFlags:")) {
      return line + " ";
    }
  }
  return "";
}

TEST(HugePages, ALargeArrayAsksForThem) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) {
    GTEST_SKIP() << "this kernel has no transparent huge pages";
  }
  const Numbers numbers(3 * kLarge, 1.5);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(numbers.data()) % kHugePageBytes, 0U);
  EXPECT_NE(FlagsOfMapping(numbers.data()).find(" hg "), std::string::npos);
}

TEST(HugePages, ValuesStayWhileAnArrayGrows) {
  Numbers numbers;
  for (size_t i = 0; i < 2 * kLarge + 5; ++i) numbers.push_back(static_cast<double>(i));
  const Numbers copy = numbers;
  for (size_t i = 0; i < copy.size(); ++i) ASSERT_EQ(copy[i], static_cast<double>(i));
}

TEST(HugePages, TooManyElementsAreRefused) {
  HugePageAllocator<double> allocator;
  EXPECT_THROW(static_cast<void>(allocator.allocate(std::numeric_limits<size_t>::max() / 4)),
               std::bad_alloc);
}

}  // namespace
}  // namespace plumbline
