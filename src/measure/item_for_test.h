// Items for tests of what their statistics tell.

#ifndef PLUMBLINE_MEASURE_ITEM_FOR_TEST_H_
#define PLUMBLINE_MEASURE_ITEM_FOR_TEST_H_

#include <cmath>
#include <utility>

#include "plumbline/compare.h"

namespace plumbline::measure {

// A float32 tensor with a mean of zero and the root mean square `rms`.
inline Item TensorForTest(Shape shape, double max, double min, double rms) {
  Item item;
  item.is_tensor = true;
  item.dtype = "torch.float32";
  double count = 1;
  for (const int64_t size : shape) count *= static_cast<double>(size);
  item.shape = std::move(shape);
  item.statistics = {max, min, 0.0, rms * std::sqrt(count)};
  return item;
}

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_ITEM_FOR_TEST_H_
