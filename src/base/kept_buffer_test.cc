#include "base/kept_buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

namespace plumbline {
namespace {

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

}  // namespace
}  // namespace plumbline
