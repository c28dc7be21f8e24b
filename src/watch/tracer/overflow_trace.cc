#include "watch/tracer/overflow_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/file/file.h"

namespace plumbline {

OverflowTrace::OverflowTrace(OverflowTraceOptions options) : options_(std::move(options)) {}

bool OverflowTrace::IsTraced(uint64_t batch) const {
  return std::count(options_.traced_batches.begin(), options_.traced_batches.end(),
                    static_cast<int64_t>(batch)) > 0;
}

bool OverflowTrace::Take(TraceFrame frame) {
  frame.batch = batch_;
  frame.begins_batch = std::exchange(begins_batch_, frame.ends_batch);
  if (frame.ends_batch) ++batch_;
  for (const TracedValue& value : frame.values) awaited_ += value.is_awaited ? 1 : 0;
  const bool is_due = awaited_ == 0 || frame.ends_batch;
  open_.push_back(std::move(frame));
  return is_due;
}

void OverflowTrace::Drop() {
  open_.clear();
  awaited_ = 0;
  if (!begins_batch_) ++batch_;
  begins_batch_ = true;
}

TraceReport OverflowTrace::Settle(std::span<const kernels::AbsExtremes> read) {
  TraceReport report;
  size_t at = 0;
  awaited_ = 0;
  for (TraceFrame& frame : std::exchange(open_, {})) {
    for (TracedValue& value : frame.values) {
      if (!value.is_awaited) continue;
      value.is_awaited = false;
      if (at < read.size()) {
        value.seen = read[at++];
      } else {
        value.kind = TracedKind::kUnreadable;
      }
    }
    Judge(std::move(frame), report);
  }
  return report;
}

void OverflowTrace::Judge(TraceFrame frame, TraceReport& report) {
  if (is_over()) return;
  const uint64_t batch = frame.batch;
  const bool ends_batch = frame.ends_batch;
  if (IsTraced(batch)) {
    frames_.clear();
    report.text += TextOf(frame) + "\n";
    report.is_written = ends_batch;
    kept_.push_back(std::move(frame));
    traced_ = kept_.size();
  } else {
    if (frames_.size() >= options_.max_frames) frames_.pop_front();
    frames_.push_back(std::move(frame));
    if (frames_.back().is_bad()) return Report(frames_.back(), report);
  }
  if (!ends_batch || !options_.abort_after || !report.error.empty()) return;
  if (static_cast<int64_t>(batch) + 1 > *options_.abort_after) {
    report.error = fmt::format(
        "OverflowTracer: {} batches are done, and abort_after_batch_num is {}: the training ends",
        batch + 1, *options_.abort_after);
  }
}

void OverflowTrace::Report(const TraceFrame& bad, TraceReport& report) {
  found_batch_ = bad.batch;
  bad_values_ = BadValuesOf(bad);
  for (const std::string& line : bad_values_) report.text += line + "\n";
  report.text +=
      fmt::format("\nDetected inf/nan during batch_number={}\nLast {} forward frames:\n"
                  "abs min  abs max  metadata\n",
                  bad.batch, frames_.size());
  for (const TraceFrame& frame : frames_) report.text += TextOf(frame) + "\n";
  report.text += "\n\n\n";
  report.error = fmt::format(
      "OverflowTracer: inf/nan detected in {} ({}) during batch_number={}, aborting. The frames "
      "printed above lead up to it",
      bad.module.empty() ? "the model itself" : bad.module, bad_values_.front(), bad.batch);
  report.is_found = report.is_written = true;
  kept_.insert(kept_.end(), frames_.begin(), frames_.end());
}

Result<std::string> OverflowTrace::Json(std::string_view model, int64_t rank) const {
  json::Document out;
  const auto add_frames = [&](size_t first, size_t end) {
    out.Open('[');
    for (size_t i = first; i < end; ++i) AddFrame(kept_[i], out);
    out.Close(']');
  };
  out.Open('{');
  out.Member("model", model);
  out.Number("rank", static_cast<uint64_t>(rank));
  out.Number("max_frames_to_save", options_.max_frames);
  out.Key("detected");
  if (found_batch_) {
    out.Open('{');
    out.Number("batch_number", *found_batch_);
    out.Member("module", kept_.back().module);
    out.Texts("values", bad_values_);
    out.Key("frames");
    add_frames(traced_, kept_.size());
    out.Close('}');
  } else {
    out.Raw("null");
  }
  out.Key("traced");
  add_frames(0, traced_);
  out.Close('}');
  return out.Finish();
}

Status WriteOverflowTrace(const OverflowTrace& trace, const std::string& directory,
                          std::string_view model, int64_t rank) {
  PL_TRY_ASSIGN(const std::string text, trace.Json(model, rank));
  PL_TRY(MakeDirectories(directory));
  return WriteFileAtomically(JoinPath(directory, fmt::format("overflow_trace_rank{}.json", rank)),
                             text, /*durable=*/true);
}

}  // namespace plumbline
