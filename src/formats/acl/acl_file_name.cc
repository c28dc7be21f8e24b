#include "formats/acl/acl_file_name.h"

#include <algorithm>
#include <vector>

#include "base/text/text_parts.h"

namespace plumbline::acl {
namespace {

constexpr size_t kTimeDigits = 16;
constexpr size_t kNames = 2;        // parts in front of the numbers
constexpr size_t kThreadParts = 3;  // task type, context, thread
constexpr size_t kMostNumbers = 7;

// How many of `count` numbers are the task, the stream and the time; the rest tell the thread.
size_t PlaceNumbers(const std::vector<std::string_view>& parts, size_t count) {
  constexpr size_t kWithoutStream = 2, kWithStream = 3;
  if (count == kWithoutStream) return kWithoutStream;
  const bool second_is_time = parts[kNames + 1].size() == kTimeDigits;
  return count == kWithoutStream + kThreadParts && second_is_time ? kWithoutStream : kWithStream;
}

}  // namespace

uint64_t SortTime(std::string_view timestamp) {
  if (timestamp.size() != kTimeDigits) return 0;
  return static_cast<uint64_t>(ParseNatural(timestamp).value_or(0));
}

uint64_t DumpFileName::sort_time() const { return SortTime(timestamp); }

uint64_t ArrayFileName::sort_time() const { return SortTime(timestamp); }

std::optional<DumpFileName> ParseDumpFileName(std::string_view text) {
  const std::vector<std::string_view> parts = SplitAt(text, '.');
  if (parts.size() < kNames + 2 || parts.size() > kNames + kMostNumbers) return std::nullopt;
  if (parts[0].empty() || parts[1].empty()) return std::nullopt;
  const size_t count = parts.size() - kNames;
  const size_t place = PlaceNumbers(parts, count);
  const size_t time = kNames + place - 1;
  std::vector<uint64_t> numbers;
  for (size_t i = kNames; i < parts.size(); ++i) {
    const std::optional<int64_t> number = ParseNatural(parts[i]);
    // A time may have up to 255 digits; everything else is a number.
    if (!number && !(i == time && IsDigits(parts[i]))) return std::nullopt;
    numbers.push_back(static_cast<uint64_t>(number.value_or(0)));
  }
  DumpFileName name;
  name.op_type = parts[0];
  name.op_name = parts[1];
  name.task_id = numbers[0];
  if (place == 3) name.stream_id = numbers[1];
  name.timestamp = parts[time];
  if (count >= place + kThreadParts) {
    name.thread = DumpedThread{numbers[place], numbers[place + 1], numbers[place + 2]};
  } else if (count > place + 1) {
    return std::nullopt;
  }
  return name;
}

std::optional<ArrayFileName> ParseArrayFileName(std::string_view text) {
  constexpr size_t kBehindName = 3;  // output, time, "npy"
  const std::vector<std::string_view> parts = SplitAt(text, '.');
  if (parts.size() <= kBehindName || parts.back() != "npy") return std::nullopt;
  const size_t names = parts.size() - kBehindName;
  ArrayFileName name;
  for (size_t i = 0; i < names; ++i) {
    if (!IsOperatorName(parts[i])) return std::nullopt;
    name.op_name += (i == 0 ? "" : "_") + std::string(parts[i]);
  }
  const std::optional<int64_t> output = ParseNatural(parts[names]);
  if (!output || !IsDigits(parts[names + 1])) return std::nullopt;
  name.output = *output;
  name.timestamp = parts[names + 1];
  return name;
}

bool IsOperatorName(std::string_view text) {
  const auto is_part = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-';
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_part);
}

bool IsOverflowFileName(std::string_view name) { return name.starts_with("Opdebug.Node_OpDebug."); }

}  // namespace plumbline::acl
