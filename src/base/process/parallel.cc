#include "base/process/parallel.h"

#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_invoke.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <algorithm>

namespace plumbline {

void ParallelFor(size_t count, const std::function<void(size_t)>& body) {
  if (count == 1) {
    body(0);
    return;
  }
  // simple_partitioner with grain 1: items differ in size by orders of magnitude.
  tbb::parallel_for(
      tbb::blocked_range<size_t>(0, count, 1),
      [&body](const tbb::blocked_range<size_t>& range) {
        for (size_t i = range.begin(); i != range.end(); ++i) body(i);
      },
      tbb::simple_partitioner());
}

void ParallelBlocks(size_t count, size_t block, const std::function<void(size_t, size_t)>& body) {
  const auto one = [&](size_t k) { body(k * block, std::min(count, (k + 1) * block)); };
  // A thread that waits here must not begin with something else that takes long.
  RunIsolated([&] { ParallelFor((count + block - 1) / block, one); });
}

void ParallelJobs(const std::function<std::function<void()>()>& next) {
  using Job = std::function<void()>;
  // A few for each thread: as many as are found are run soon.
  const auto waiting = static_cast<size_t>(4 * tbb::this_task_arena::max_concurrency());
  const auto find = [&next](tbb::flow_control& control) {
    Job job = next();
    if (!job) control.stop();
    return job;
  };
  RunIsolated([&] {
    tbb::parallel_pipeline(
        waiting,
        tbb::make_filter<void, Job>(tbb::filter_mode::serial_in_order, find) &
            tbb::make_filter<Job, void>(tbb::filter_mode::parallel, [](const Job& job) { job(); }));
  });
}

void RunWithThreads(int threads, const std::function<void()>& work) {
  if (threads <= 0) {
    work();
    return;
  }
  threads = std::min(threads, kMostThreads);
  // More threads than cores must be asked for: oneTBB would print a warning and start fewer.
  const int most = std::max(threads, tbb::info::default_concurrency());
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  static_cast<size_t>(most));
  tbb::task_arena arena(threads);
  arena.execute([&work] { work(); });
}

void RunIsolated(const std::function<void()>& work) {
  tbb::this_task_arena::isolate([&work] { work(); });
}

void RunBoth(const std::function<void()>& first, const std::function<void()>& second) {
  tbb::parallel_invoke([&first] { first(); }, [&second] { second(); });
}

}  // namespace plumbline
