#include "base/page_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory_resource>
#include <string>
#include <unordered_map>

namespace plumbline {
namespace {

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
