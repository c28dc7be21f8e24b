// Parallel loops over oneTBB. Work is partitioned by index, so results never depend on timing.

#ifndef PLUMBLINE_BASE_PROCESS_PARALLEL_H_
#define PLUMBLINE_BASE_PROCESS_PARALLEL_H_

#include <cstddef>
#include <functional>

namespace plumbline {

// Calls body(i) once for every i < count, in any order, on the threads of the surrounding
// RunWithThreads() (or all cores). Returns when all are done. Nests. `body` must not throw.
void ParallelFor(size_t count, const std::function<void(size_t)>& body);

// Calls body(begin, end) for consecutive ranges of at most `block` that cover 0 to count: for work
// on many small things. Otherwise as ParallelFor.
void ParallelBlocks(size_t count, size_t block, const std::function<void(size_t, size_t)>& body);

// Runs jobs while later ones are still being found: calls next() until it gives none, by one thread
// at a time, and each job once, on any thread, in any order. Otherwise as ParallelFor.
void ParallelJobs(const std::function<std::function<void()>()>& next);

// More are of no use to anybody, and a system may not give them.
inline constexpr int kMostThreads = 4096;

// Runs `work` with at most `threads` threads for the ParallelFor calls in it; 0: one per core, more
// than kMostThreads: as many as these.
void RunWithThreads(int threads, const std::function<void()>& work);

// Runs `work`; a thread that waits for a loop in it does not begin with anything outside of it.
void RunIsolated(const std::function<void()>& work);

// Runs both, the second one possibly on another thread.
void RunBoth(const std::function<void()>& first, const std::function<void()>& second);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_PROCESS_PARALLEL_H_
