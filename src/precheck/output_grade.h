// Judges what one direction of a call returned on both sides: every output gets a row, the worst of
// them is the status of the direction.
//
// Values that correspond are compared: lists and tuples item by item (what the device gives beyond
// the benchmark is ignored; where it gives less, one row says so), maps by keys, tensors by the
// standard of the API, plain values for equality. Row k of `<call>.forward.output.<k>` is the k-th
// item of a list, or 0; indices of lists within lists are joined by "_" ("output.1_0"). Behind them
// stand arguments that the forward changed in place, as `<call>.forward.input.<place>`; one that is
// also what the call returned has no row of its own, one that a side alone changed is an error.

#ifndef PLUMBLINE_PRECHECK_OUTPUT_GRADE_H_
#define PLUMBLINE_PRECHECK_OUTPUT_GRADE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "precheck/call_value.h"
#include "precheck/executor_wire.h"
#include "precheck/grading/rounding_scale.h"
#include "precheck/outcome.h"

namespace plumbline::precheck {

enum class Direction : uint8_t { kForward, kBackward };
std::string_view DirectionName(Direction direction);  // "forward"

// What both sides returned, and the memory that tensors in it lie in.
struct ReturnedPair {
  const CallValue* bench = nullptr;
  std::span<const std::byte> bench_memory;
  const CallValue* device = nullptr;
  std::span<const std::byte> device_memory;
  // Arguments behind the forward, in the same memory; null: not known.
  const ArgumentsAfter* bench_arguments = nullptr;
  const ArgumentsAfter* device_arguments = nullptr;
};

struct GradeOptions {
  bool explain = true;  // fill OutputRow::facts of rows that are Warning or error
  // What the outputs were computed from: what rounding may leave of them, and the region of mixed
  // precision. Looked at only where an output would be an error.
  GivenToCall given = {};
};

// `call_name` is the whole name ("Functional.conv2d.0"), `api` without type and number ("conv2d").
// Thread-safe; large tensors are shared out as in MeasureFloats(). A value that names memory which
// is not there is SKIP, not an error of the device.
DirectionOutcome GradeDirection(std::string_view call_name, std::string_view api,
                                Direction direction, const ReturnedPair& pair,
                                const GradeOptions& options);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_OUTPUT_GRADE_H_
