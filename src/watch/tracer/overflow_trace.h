// The last frames before the first NaN or Inf of a model's forward calls.
//
// Frames are judged in the order in which they were taken. Those whose magnitudes are still on a
// device wait until the model's forward is over, with all behind them: a device is asked once per
// forward, and the frames before the bad one are the same as if each had been asked at once.

#ifndef PLUMBLINE_WATCH_TRACER_OVERFLOW_TRACE_H_
#define PLUMBLINE_WATCH_TRACER_OVERFLOW_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plumbline/result.h"
#include "watch/tracer/trace_frame.h"

namespace plumbline {

struct OverflowTraceOptions {
  size_t max_frames = 21;               // kept; at least 1
  std::vector<int64_t> traced_batches = {};  // every frame is printed, and nothing searched for
  std::optional<int64_t> abort_after = std::nullopt;  // ends behind the forward with this number
};

// What a forward gave cause to say.
struct TraceReport {
  std::string text;         // to be printed, with its line breaks
  std::string error;        // why the training should end; empty: it should not
  bool is_found = false;    // NaN or Inf; the trace is over
  bool is_written = false;  // the file has something new to say
};

// Thread-compatible.
class OverflowTrace {
 public:
  explicit OverflowTrace(OverflowTraceOptions options);

  // Takes the next frame. True: Settle() is due, because nothing is awaited or a forward is over.
  bool Take(TraceFrame frame);
  // The number of values that Settle() needs.
  [[nodiscard]] size_t awaited() const { return awaited_; }
  // Judges the frames taken. `read`: what was awaited, in the order in which it was taken.
  TraceReport Settle(std::span<const kernels::AbsExtremes> read);
  // Forgets the frames that wait; the forward that they belong to is over.
  void Drop();

  [[nodiscard]] bool is_over() const { return found_batch_.has_value(); }
  // Whether there is anything to write.
  [[nodiscard]] bool has_frames() const { return !kept_.empty(); }
  // What was found, and the frames of the batches traced.
  [[nodiscard]] Result<std::string> Json(std::string_view model, int64_t rank) const;

 private:
  void Judge(TraceFrame frame, TraceReport& report);
  [[nodiscard]] bool IsTraced(uint64_t batch) const;
  void Report(const TraceFrame& bad, TraceReport& report);

  OverflowTraceOptions options_;
  uint64_t batch_ = 0;
  bool begins_batch_ = true;
  size_t awaited_ = 0;
  std::vector<TraceFrame> open_;      // taken and not judged
  std::deque<TraceFrame> frames_;     // the last ones
  std::vector<TraceFrame> kept_;      // of batches traced; behind these, of what was found
  std::optional<uint64_t> found_batch_;
  std::vector<std::string> bad_values_;
  size_t traced_ = 0;  // frames of kept_ that are of batches traced
};

// Writes overflow_trace_rank{R}.json into `directory`, which is made when missing.
Status WriteOverflowTrace(const OverflowTrace& trace, const std::string& directory,
                          std::string_view model, int64_t rank);

}  // namespace plumbline

#endif  // PLUMBLINE_WATCH_TRACER_OVERFLOW_TRACE_H_
