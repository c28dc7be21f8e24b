#include "formats/json/error_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <limits>

#include "base/file/file.h"
#include "base/process/log.h"

namespace plumbline {
namespace {

uint64_t Sum(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}

}  // namespace

void MergeLoss(std::vector<Loss>& losses, const Loss& loss) {
  for (Loss& known : losses) {
    if (known.counter != loss.counter) continue;
    known.count = Sum(known.count, loss.count);
    known.sentence = loss.sentence;
    return;
  }
  losses.push_back(loss);
}

const Loss* FindLoss(std::span<const Loss> losses, std::string_view counter) {
  const auto found =
      std::ranges::find_if(losses, [&](const Loss& loss) { return loss.counter == counter; });
  return found == losses.end() ? nullptr : &*found;
}

namespace error_log {
namespace {

constexpr std::string_view kMark = "] [ERROR] ";
constexpr size_t kMostRead = size_t{16} << 20;
// More kinds of loss than any recorder has: the rest of a strange file counts as unknown.
constexpr size_t kMostCounters = 64;
constexpr size_t kLongestSentence = 512;

// "counter: N (sentence)", or a line of another recorder.
Loss ParseLine(std::string_view line) {
  Loss loss{std::string(kUnknown), 1, std::string(line.substr(0, kLongestSentence))};
  const size_t colon = line.find(": ");
  if (colon == std::string_view::npos) return loss;
  const char* const end = line.data() + line.size();
  uint64_t count = 0;
  const auto number = std::from_chars(line.data() + colon + 2, end, count);
  if (number.ec != std::errc() || count == 0) return loss;
  loss.counter = line.substr(0, colon);
  loss.count = count;
  std::string_view rest(number.ptr, static_cast<size_t>(end - number.ptr));
  if (rest.starts_with(" (") && rest.ends_with(')')) {
    rest.remove_prefix(2);
    rest.remove_suffix(1);
    loss.sentence = rest.substr(0, kLongestSentence);
  }
  return loss;
}

}  // namespace

std::string Format(std::span<const Loss> losses, size_t most_bytes) {
  std::tm local{};
  const std::time_t now = std::time(nullptr);
  ::localtime_r(&now, &local);
  std::string text;
  for (const Loss& loss : losses) {
    const std::string line =
        fmt::format("[{:%Y-%m-%d %H:%M:%S %z}{}{}: {} ({})\n", local, kMark, OneLine(loss.counter),
                    loss.count, OneLine(loss.sentence.substr(0, kLongestSentence)));
    if (text.size() + line.size() > most_bytes) break;
    text += line;
  }
  return text;
}

Result<std::vector<Loss>> Read(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadStart(path, kMostRead));
  std::vector<Loss> losses;
  for (size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at)) {
    at += kMark.size();
    const size_t end = std::min(text.find('\n', at), text.size());
    Loss loss = ParseLine(std::string_view(text).substr(at, end - at));
    const bool is_one_more = FindLoss(losses, loss.counter) == nullptr;
    if (is_one_more && losses.size() >= kMostCounters) loss.counter = kUnknown;
    MergeLoss(losses, loss);
  }
  const bool says_something = text.find_first_not_of(" \t\r\n") != std::string::npos;
  if (losses.empty() && says_something) {
    losses.push_back({std::string(kUnknown), 1, "a text that is no list of losses"});
  }
  if (text.size() == kMostRead) {
    MergeLoss(losses, {std::string(kUnknown), 1,
                       fmt::format("what follows the first {} bytes", kMostRead)});
  }
  return losses;
}

uint64_t CountMissing(std::span<const Loss> losses) {
  uint64_t missing = 0;
  for (const Loss& loss : losses) {
    // Kept in memory while the journal could not be written, and published later.
    if (loss.counter != kNotJournaled) missing = Sum(missing, loss.count);
  }
  return missing;
}

}  // namespace error_log
}  // namespace plumbline
