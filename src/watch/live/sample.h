// A look at a tensor that costs the same however large it is.

#ifndef PLUMBLINE_WATCH_LIVE_SAMPLE_H_
#define PLUMBLINE_WATCH_LIVE_SAMPLE_H_

#include <cstdint>

#include "plumbline/tensor.h"
#include "watch/live/tensor_values.h"

namespace plumbline::watch {

// Values of eight runs of 512 elements spread over the tensor, the same at every call, or of the
// whole tensor where it is no larger. Another run, whose place moves with `turn`, is searched for
// NaN and infinite elements alone.
//   norm    of the sample, scaled to the whole tensor
//   zeros   share of elements that are zero
//   digest  29 bits of the sample's XXH3: another one means that elements changed
// Everything else as ValuesOf() of the sample.
TensorValues MeasureSample(const TensorView& view, uint64_t turn);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_LIVE_SAMPLE_H_
