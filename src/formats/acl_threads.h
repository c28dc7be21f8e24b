// Operators that FFTS+ cut into tasks: what the attribute of their dump files says.

#ifndef PLUMBLINE_FORMATS_ACL_THREADS_H_
#define PLUMBLINE_FORMATS_ACL_THREADS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/acl_dump.h"

namespace plumbline::acl {

struct ThreadSlices {
  bool is_automatic = false;       // threads, not slices named by hand
  int64_t instance_count = 0;      // files of the whole operator
  std::vector<Shape> output_cuts;  // of each output, in how many parts each dimension is cut
  // [thread][tensor]: sizes of its part.
  std::vector<std::vector<Shape>> inputs, outputs;
  // [thread][tensor]: where its part begins in the whole.
  std::vector<std::vector<Shape>> input_starts, output_starts;

  // Sizes of one tensor's part; nothing if the attribute does not say.
  [[nodiscard]] std::optional<Shape> InputOf(uint64_t thread, size_t index) const;
  [[nodiscard]] std::optional<Shape> OutputOf(uint64_t thread, size_t index) const;
};

// Nothing where no attribute is the JSON text of FFTS+. kCorrupt for one that is damaged.
Result<std::optional<ThreadSlices>> ReadThreadSlices(const Message& message);

}  // namespace plumbline::acl

#endif  // PLUMBLINE_FORMATS_ACL_THREADS_H_
