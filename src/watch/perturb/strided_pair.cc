#include "watch/perturb/strided_pair.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace plumbline::perturb {
namespace {

bool IsDense(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t k) { return strides[k]; });
  int64_t expected = 1;
  for (const size_t k : order) {
    if (sizes[k] == 1) continue;
    if (strides[k] != expected) return false;
    expected *= sizes[k];
  }
  return true;
}

int64_t CountOf(std::span<const int64_t> sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

// Adds 1 to the index of a row; false behind the last one.
bool Advance(std::span<const int64_t> sizes, std::vector<int64_t>* index) {
  for (size_t k = index->size(); k-- > 0;) {
    if (++(*index)[k] < sizes[k]) return true;
    (*index)[k] = 0;
  }
  return false;
}

int64_t OffsetOf(std::span<const int64_t> index, std::span<const int64_t> strides) {
  int64_t offset = 0;
  for (size_t k = 0; k < index.size(); ++k) offset += index[k] * strides[k];
  return offset;
}

}  // namespace

PairRun ShareOf(const PairRun& run, size_t worker, size_t workers) {
  const size_t begin = run.count * worker / workers;
  PairRun share = run;
  share.count = run.count * (worker + 1) / workers - begin;
  share.left += static_cast<int64_t>(begin) * run.left_step;
  share.right += static_cast<int64_t>(begin) * run.right_step;
  share.first += begin;
  return share;
}

bool AreOneRun(std::span<const int64_t> sizes, const Side& left, const Side& right) {
  for (size_t k = 0; k < sizes.size(); ++k) {
    if (sizes[k] != 1 && left.strides[k] != right.strides[k]) return false;
  }
  return IsDense(sizes, left.strides);
}

void VisitRuns(std::span<const int64_t> sizes, const Side& left, const Side& right,
               const std::function<void(const PairRun&)>& visit) {
  const int64_t count = CountOf(sizes);
  if (count == 0) return;
  const auto left_bytes = static_cast<int64_t>(left.element_bytes);
  const auto right_bytes = static_cast<int64_t>(right.element_bytes);
  if (sizes.empty() || AreOneRun(sizes, left, right)) {
    visit({left.data, right.data, left_bytes, right_bytes, static_cast<size_t>(count), 0});
    return;
  }
  const size_t last = sizes.size() - 1;
  PairRun run;
  run.left_step = left.strides[last] * left_bytes;
  run.right_step = right.strides[last] * right_bytes;
  run.count = static_cast<size_t>(sizes[last]);
  std::vector<int64_t> index(last, 0);
  do {
    run.left = left.data + OffsetOf(index, left.strides) * left_bytes;
    run.right = right.data + OffsetOf(index, right.strides) * right_bytes;
    visit(run);
    run.first += run.count;
  } while (Advance(sizes, &index));
}

}  // namespace plumbline::perturb
