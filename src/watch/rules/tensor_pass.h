// One pass over the elements of a tensor, and of its earlier value, for all rules at once.

#ifndef PLUMBLINE_WATCH_RULES_TENSOR_PASS_H_
#define PLUMBLINE_WATCH_RULES_TENSOR_PASS_H_

#include "plumbline/tensor.h"
#include "watch/rules/facts.h"

namespace plumbline::watch {

struct PassResult {
  TensorFacts now, before;
  ChangeFacts change;  // where there is an earlier value of the same shape
};

// Everything that `wishes` and the statistics ask about `now` and, unless null, about `before`,
// which may have another shape or type. Complex elements count by modulus, of their difference too.
// Exact for integers. Memory: two blocks of elements, whatever the strides are.
PassResult ScanTensors(const TensorView& now, const TensorView* before, const ScanWishes& wishes);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_RULES_TENSOR_PASS_H_
