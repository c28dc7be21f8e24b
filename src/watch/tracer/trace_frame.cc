#include "watch/tracer/trace_frame.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/number_text.h"

namespace plumbline {
namespace {

constexpr int kTextColumns = 17;  // of the two numbers and the blank between them

std::string LineOf(const TracedValue& value) {
  switch (value.kind) {
    case TracedKind::kTensor:  // fmt aligns inf and nan to the left by itself
      return fmt::format("{:>8.2e} {:>8.2e} {}", value.seen.min, value.seen.max, value.label);
    case TracedKind::kNothing:
      return fmt::format("{:>{}} {}", "None", kTextColumns, value.label);
    case TracedKind::kUnreadable:
      return fmt::format("{:>{}} {}", "not readable", kTextColumns, value.label);
    case TracedKind::kOther:
      break;
  }
  return fmt::format("{:>{}} {}", "not a tensor", kTextColumns, value.label);
}

std::string_view KindText(TracedKind kind) {
  switch (kind) {
    case TracedKind::kTensor:
      return "tensor";
    case TracedKind::kNothing:
      return "none";
    case TracedKind::kUnreadable:
      return "unreadable";
    case TracedKind::kOther:
      break;
  }
  return "other";
}

void AddMagnitude(std::string_view key, double magnitude, json::Document& out) {
  std::string text;
  AppendJsonFloat(magnitude, text);
  out.Key(key);
  out.Raw(text);
}

bool IsShown(const TracedValue& value) { return !value.is_inside || value.is_bad(); }

}  // namespace

bool TraceFrame::is_bad() const {
  return std::any_of(values.begin(), values.end(), [](const TracedValue& v) { return v.is_bad(); });
}

std::string TextOf(const TraceFrame& frame) {
  std::string text;
  if (frame.begins_batch) {
    text = fmt::format("\n\n{:{}} *** Starting batch number={} ***\n", "", kTextColumns, frame.batch);
    text += "abs min  abs max  metadata\n";
  }
  text += fmt::format("{:{}} {} {}", "", kTextColumns, frame.module, frame.type);
  for (const TracedValue& value : frame.values) {
    if (IsShown(value)) text += "\n" + LineOf(value);
  }
  return text;
}

std::vector<std::string> BadValuesOf(const TraceFrame& frame) {
  std::vector<std::string> lines;
  for (const TracedValue& value : frame.values) {
    if (value.seen.has_nan) lines.push_back(value.label + " has nans");
    if (value.seen.has_inf) lines.push_back(value.label + " has infs");
  }
  return lines;
}

void AddFrame(const TraceFrame& frame, json::Document& out) {
  out.Open('{');
  out.Member("module", frame.module);
  out.Member("class", frame.type);
  out.Number("batch_number", frame.batch);
  out.Key("values");
  out.Open('[');
  for (const TracedValue& value : frame.values) {
    if (!IsShown(value)) continue;
    out.Open('{');
    out.Member("label", value.label);
    out.Member("kind", KindText(value.kind));
    if (value.kind == TracedKind::kTensor) {
      AddMagnitude("abs_min", value.seen.min, out);
      AddMagnitude("abs_max", value.seen.max, out);
      out.Truth("has_nans", value.seen.has_nan);
      out.Truth("has_infs", value.seen.has_inf);
    }
    out.Close('}');
  }
  out.Close(']');
  out.Close('}');
}

}  // namespace plumbline
