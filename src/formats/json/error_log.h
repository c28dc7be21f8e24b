// dump_error_info.log: what a recording lost, beside the dump.json that lacks it. One line
// "[time] [ERROR] counter: N (sentence)" per loss.

#ifndef PLUMBLINE_FORMATS_JSON_ERROR_LOG_H_
#define PLUMBLINE_FORMATS_JSON_ERROR_LOG_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

// Something that did not make it into the files. Losses of one counter add up; the last sentence
// is kept.
struct Loss {
  std::string counter;  // "calls_dropped", "tensors_dropped", ...
  uint64_t count = 0;
  std::string sentence;
};

// Adds `loss` to the one of its counter in `losses`, or appends it. Counts end at their maximum.
void MergeLoss(std::vector<Loss>& losses, const Loss& loss);
// The loss of that counter, or null.
const Loss* FindLoss(std::span<const Loss> losses, std::string_view counter);

namespace error_log {

// Counter of tensors whose file is not there.
inline constexpr std::string_view kTensorsDropped = "tensors_dropped";
// Counter of tensors whose statistics a device has not given.
inline constexpr std::string_view kValuesDropped = "values_dropped";
// Counter of records that only the final files hold: none is missing in them.
inline constexpr std::string_view kNotJournaled = "records_not_journaled";
// Counter of records that no file holds.
inline constexpr std::string_view kRecordsDropped = "records_dropped";
// Counter of later steps of the run for which not even a directory could be made.
inline constexpr std::string_view kStepsDropped = "steps_dropped";
// Counter of calls inside regions of torch.compile, which no recorder sees.
inline constexpr std::string_view kCompiledRegions = "compiled_regions";
// Counter of recordings whose process ended before they did: what `plumb recover` made of it holds
// the calls up to there, and nothing in it tells how many should follow.
inline constexpr std::string_view kEndedEarly = "recording_ended_early";
// Counter of what the reader cannot say more of: lines of other recorders, unread text.
inline constexpr std::string_view kUnknown = "unknown";

// The text of the file, at most `most_bytes` long: sentences are cut, later losses left out.
std::string Format(std::span<const Loss> losses, size_t most_bytes);

// What a log counts, one entry per counter. Lines of other recorders count one each, and so does a
// text without any such line, or what lies beyond the first megabytes, of which nothing is read.
// kNotFound, kIo, kInvalidArgument (no regular file).
Result<std::vector<Loss>> Read(const std::string& path);

// What is missing of it all: records that the final files hold are not.
uint64_t CountMissing(std::span<const Loss> losses);

}  // namespace error_log
}  // namespace plumbline

#endif  // PLUMBLINE_FORMATS_JSON_ERROR_LOG_H_
