#include "kernels/deviation_sums.h"

#include <algorithm>
#include <limits>

namespace plumbline::kernels {

DeviationSums::DeviationSums() {
  std::fill_n(min_x, kLanes, std::numeric_limits<double>::infinity());
  std::fill_n(min_y, kLanes, std::numeric_limits<double>::infinity());
  std::fill_n(max_x, kLanes, -std::numeric_limits<double>::infinity());
  std::fill_n(max_y, kLanes, -std::numeric_limits<double>::infinity());
}

void AddDeviations(const PairOfRuns& runs, DeviationSums* sums) {
  ActiveTable().deviations(runs, sums);
}

void AddSpreads(const SpreadCenter& center, const PairOfRuns& runs, SpreadSums* sums) {
  ActiveTable().spreads(center, runs, sums);
}

double SumOfLanes(const double* lanes) {
  double sum = 0;
  for (size_t l = 0; l < kLanes / 2; ++l) sum += lanes[l] + lanes[l + kLanes / 2];
  return sum;
}

}  // namespace plumbline::kernels
