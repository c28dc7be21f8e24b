// The checksums of an earlier recording, held against the calls of a running one: the first call
// that makes different results of the same inputs is where two runs part.

#ifndef PLUMBLINE_CAPTURE_REFERENCE_CALLS_H_
#define PLUMBLINE_CAPTURE_REFERENCE_CALLS_H_

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plumbline/record.h"

namespace plumbline::capture {

// What a recorded call did with its tensors, as far as checksums tell.
enum class Agreement : uint8_t {
  kSame,         // every output that the reference has is the same
  kOtherInputs,  // inputs differ, are missing or are more: the difference came from before
  kDiffers,      // the same inputs, but an output of another shape or checksum: here it began
  kUnknown,      // the reference has no such call, or an output without a checksum
};

// Calls by name. Only tensors that are positional arguments or results themselves count, not those
// inside lists and keywords. Thread-safe for reading.
class ReferenceCalls {
 public:
  void Add(const Call& call);
  [[nodiscard]] Agreement Judge(const Call& seen) const;
  [[nodiscard]] size_t size() const { return calls_.size(); }

 private:
  struct Tensor {
    size_t position = 0;
    Shape shape;
    std::string digest;  // empty: none
    bool operator==(const Tensor&) const = default;
  };
  struct Sides {
    std::vector<Tensor> inputs, outputs;  // by position
  };
  static std::vector<Tensor> TensorsOf(const Value* list);
  static Sides SidesOf(const Call& call);

  std::unordered_map<std::string, Sides> calls_;
};

}  // namespace plumbline::capture

#endif  // PLUMBLINE_CAPTURE_REFERENCE_CALLS_H_
