#include "capture/observer.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace plumbline::capture {
namespace {

TEST(CallCounter, NumbersStartAtZeroPerName) {
  CallCounter counter;
  const uint32_t linear = counter.Register("Functional.linear");
  const uint32_t relu = counter.Register("Functional.relu");
  EXPECT_EQ(counter.Next(linear), 0u);
  EXPECT_EQ(counter.Next(linear), 1u);
  EXPECT_EQ(counter.Next(relu), 0u);
}

TEST(CallCounter, SameNameSameId) {
  CallCounter counter;
  EXPECT_EQ(counter.Register("a"), counter.Register("a"));
  EXPECT_NE(counter.Register("a"), counter.Register("b"));
  EXPECT_EQ(counter.NameOf(counter.Register("b")), "b");
}

TEST(CallCounter, ResetStartsAtZeroAgain) {
  CallCounter counter;
  const uint32_t id = counter.Register("a");
  counter.Next(id);
  counter.Reset();
  EXPECT_EQ(counter.Next(id), 0u);
}

TEST(CallCounter, ThreadsGetDistinctNumbers) {
  CallCounter counter;
  const uint32_t id = counter.Register("a");
  std::vector<std::set<uint32_t>> seen(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : seen) {
      threads.emplace_back([&counter, &mine, id] {
        for (int i = 0; i < 500; ++i) mine.insert(counter.Next(id));
      });
    }
  }
  std::set<uint32_t> all;
  for (const auto& mine : seen) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 2000u);
}

}  // namespace
}  // namespace plumbline::capture
