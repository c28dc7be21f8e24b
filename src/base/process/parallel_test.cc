#include "base/process/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace plumbline {
namespace {

TEST(Parallel, BlocksCoverEveryIndexOnce) {
  for (const int threads : {1, 2, 8}) {
    RunWithThreads(threads, [] {
      for (const size_t count : {0U, 1U, 7U, 8U, 9U, 1000U}) {
        std::vector<std::atomic<int>> seen(count);
        ParallelBlocks(count, 8, [&](size_t begin, size_t end) {
          EXPECT_EQ(begin % 8, 0U);
          EXPECT_LE(end - begin, 8U);
          for (size_t i = begin; i < end; ++i) ++seen[i];
        });
        for (const std::atomic<int>& times : seen) EXPECT_EQ(times, 1);
      }
    });
  }
}

TEST(Parallel, BlocksNest) {
  std::atomic<size_t> sum{0};
  ParallelFor(4, [&](size_t) {
    ParallelBlocks(100, 9, [&](size_t begin, size_t end) { sum += end - begin; });
  });
  EXPECT_EQ(sum, 400U);
}

TEST(Parallel, JobsRunOnceEach) {
  for (const int threads : {1, 2, 8}) {
    RunWithThreads(threads, [] {
      for (const size_t count : {0U, 1U, 100U}) {
        std::vector<std::atomic<int>> seen(count);
        size_t found = 0;  // not guarded: one thread at a time
        ParallelJobs([&]() -> std::function<void()> {
          if (found == count) return {};
          return [&seen, i = found++] { ++seen[i]; };
        });
        for (const std::atomic<int>& times : seen) EXPECT_EQ(times, 1);
      }
    });
  }
}

}  // namespace
}  // namespace plumbline
