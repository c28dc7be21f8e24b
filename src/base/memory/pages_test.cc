#include "base/memory/pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory_resource>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
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

TEST(KeptBuffer, TheNextOneHasTheSameMemory) {
  constexpr size_t kBytes = size_t{3} << 20;
  std::byte* first = nullptr;
  {
    const KeptBuffer buffer(kBytes);
    first = buffer.bytes().data();
    std::memset(first, 1, buffer.bytes().size());
    EXPECT_EQ(buffer.bytes().size(), kBytes);
  }
  const KeptBuffer smaller(100);
  EXPECT_EQ(smaller.bytes().data(), first);
  EXPECT_EQ(smaller.bytes().size(), 100U);
  const KeptBuffer beside(kBytes);  // the kept one is in use
  EXPECT_NE(beside.bytes().data(), first);
}

TEST(KeptBuffer, MovesAndIsEmptyThen) {
  KeptBuffer buffer(10);
  buffer.bytes()[9] = std::byte{7};
  KeptBuffer moved = std::move(buffer);
  EXPECT_EQ(moved.bytes()[9], std::byte{7});
  EXPECT_TRUE(buffer.bytes().empty());  // NOLINT(bugprone-use-after-move)
  buffer = std::move(moved);
  EXPECT_EQ(buffer.bytes()[9], std::byte{7});
  EXPECT_TRUE(KeptBuffer().bytes().empty());
}

TEST(PageMemory, BlocksAreWritableAndUsedAgain) {
  std::pmr::memory_resource& pages = PageMemory();
  void* first = pages.allocate(100000);
  std::memset(first, 7, 100000);
  pages.deallocate(first, 100000);
  // 100,000 and 120,000 bytes are both two units of 64 KiB.
  void* second = pages.allocate(120000);
  EXPECT_EQ(second, first);
  void* third = pages.allocate(120000);
  EXPECT_NE(third, second);
  pages.deallocate(second, 120000);
  pages.deallocate(third, 120000);
}

TEST(PageMemory, CarriesAPool) {
  std::pmr::unsynchronized_pool_resource pool(&PageMemory());
  std::pmr::unordered_map<int, std::pmr::string> map(&pool);
  for (int i = 0; i < 5000; ++i) map.emplace(i, std::to_string(i) + std::string(100, 'x'));
  for (int i = 0; i < 5000; i += 2) map.erase(i);
  EXPECT_EQ(map.size(), 2500u);
  EXPECT_EQ(map.at(4999).substr(0, 4), "4999");
}

}  // namespace

}  // namespace plumbline
