// What a comparison says it could not have told.

#ifndef PLUMBLINE_DETECTION_LIMIT_H_
#define PLUMBLINE_DETECTION_LIMIT_H_

#include <cstdint>

namespace plumbline {

// What a wrong run could have done without being told.
struct DetectionLimit {
  // The largest relative error that any result of forward calls, and any gradient, was allowed to
  // have as noise (docs/design/verdict.md); 0: none at all.
  double result = 0, gradient = 0;
  uint64_t roundings = 0;          // values that were allowed to differ by their own size
  bool lacks_last_update = false;  // gradients were recorded, but nothing that an optimizer made of
                                   // the last of them
};

}  // namespace plumbline

#endif  // PLUMBLINE_DETECTION_LIMIT_H_
