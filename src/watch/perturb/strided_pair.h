// Two tensors of one shape in memory, walked together run by run.

#ifndef PLUMBLINE_WATCH_PERTURB_STRIDED_PAIR_H_
#define PLUMBLINE_WATCH_PERTURB_STRIDED_PAIR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "plumbline/tensor.h"

namespace plumbline::perturb {

// Elements next to each other in the walk; steps are in bytes. `first`: number of the first one.
struct PairRun {
  const std::byte* left = nullptr;
  const std::byte* right = nullptr;
  int64_t left_step = 0, right_step = 0;
  size_t count = 0;
  uint64_t first = 0;
};

// The share of one of `workers` workers.
PairRun ShareOf(const PairRun& run, size_t worker, size_t workers);

// Where one side lies; strides are in elements.
struct Side {
  const std::byte* data = nullptr;
  std::span<const int64_t> strides;
  size_t element_bytes = 0;
};

// Whether both lie in memory in the same order without gaps or overlaps, so that they are one run.
bool AreOneRun(std::span<const int64_t> sizes, const Side& left, const Side& right);

// Calls `visit` for runs that cover all elements: one, when AreOneRun(), else one per row.
void VisitRuns(std::span<const int64_t> sizes, const Side& left, const Side& right,
               const std::function<void(const PairRun&)>& visit);

}  // namespace plumbline::perturb

#endif  // PLUMBLINE_WATCH_PERTURB_STRIDED_PAIR_H_
