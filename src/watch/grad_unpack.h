// `plumb grad-unpack`: packed signs of a gradient probe as .npy files, which upstream reads.

#ifndef PLUMBLINE_WATCH_GRAD_UNPACK_H_
#define PLUMBLINE_WATCH_GRAD_UNPACK_H_

#include <cstdint>
#include <string>

#include "plumbline/result.h"

namespace plumbline {

struct UnpackReport {
  uint64_t steps = 0, files = 0;
};

// Writes {parameter}.npy beside every signs.plumb in the directories step{N} of `directory`, or in
// those of its directories rank{R}; the packed files stay. kNotFound: there is none. kCorrupt, kIo.
Result<UnpackReport> UnpackSigns(const std::string& directory);

}  // namespace plumbline

#endif  // PLUMBLINE_WATCH_GRAD_UNPACK_H_
