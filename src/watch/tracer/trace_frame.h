// What one call of a module showed, and its lines in the form of DebugUnderflowOverflow of
// transformers.

#ifndef PLUMBLINE_WATCH_TRACER_TRACE_FRAME_H_
#define PLUMBLINE_WATCH_TRACER_TRACE_FRAME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "formats/json/json_feed.h"
#include "kernels/finite_scan.h"

namespace plumbline {

enum class TracedKind : uint8_t {
  kTensor,
  kNothing,     // None
  kOther,       // no tensor
  kUnreadable,  // a tensor without values that can be read
};

// One line of a frame.
struct TracedValue {
  std::string label;  // "weight", "input[0]", "output[1][0]"
  TracedKind kind = TracedKind::kOther;
  kernels::AbsExtremes seen = {};
  bool is_awaited = false;  // `seen` is still on a device
  // Of a container that the frame shows as no tensor: has a line only if it is bad.
  bool is_inside = false;

  [[nodiscard]] bool is_bad() const { return seen.has_nan || seen.has_inf; }
};

// One forward call of one module.
struct TraceFrame {
  std::string module;  // full name; empty: the model itself
  std::string type;    // "Linear"
  bool ends_batch = false;
  std::vector<TracedValue> values;
  // Set by OverflowTrace.
  uint64_t batch = 0;  // from 0
  bool begins_batch = false;

  [[nodiscard]] bool is_bad() const;
};

// The frame's lines, without a line break at the end; behind the heading of its batch if it is the
// first one of that.
std::string TextOf(const TraceFrame& frame);
// "output has nans" and the like, a line each, in order.
std::vector<std::string> BadValuesOf(const TraceFrame& frame);
// The frame as an object.
void AddFrame(const TraceFrame& frame, json::Document& out);

}  // namespace plumbline

#endif  // PLUMBLINE_WATCH_TRACER_TRACE_FRAME_H_
