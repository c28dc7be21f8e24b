#include "progress.h"

#include <fmt/format.h>

#include <utility>

namespace plumbline::cli {
namespace {

constexpr double kFirstSeconds = 0.5, kBetweenSeconds = 0.2;

// "45 s", "2 min 05 s", "3 h 10 min".
std::string TimeText(double seconds) {
  const auto whole = static_cast<uint64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string RateText(const std::string& part, const ProgressStep& step, double seconds) {
  if (seconds <= 0) return {};
  if (step.bytes > 0) {
    return fmt::format(", {:.3g} MB/s", static_cast<double>(step.bytes) / 1e6 / seconds);
  }
  if (step.all > 0) {
    return fmt::format(", {:.3g} {}s/s", static_cast<double>(step.done) / seconds, part);
  }
  return fmt::format(", {:.3g} %/s", step.share * 100 / seconds);
}

}  // namespace

ProgressStep PartsDone(uint64_t done, uint64_t all) {
  return {.share = all == 0 ? 1 : static_cast<double>(done) / static_cast<double>(all),
          .done = done,
          .all = all};
}

std::string ProgressLine(const std::string& what, const std::string& part, const ProgressStep& step,
                         double seconds) {
  std::string line = fmt::format("{}: {:.0f} %", what, step.share * 100);
  if (step.all > 0) line += fmt::format(" ({} of {} {}s)", step.done, step.all, part);
  line += RateText(part, step, seconds);
  if (step.share >= 1) return line + ", in " + TimeText(seconds);
  if (step.share <= 0) return line;
  return line + fmt::format(", {} left", TimeText(seconds * (1 - step.share) / step.share));
}

Progress::Progress(std::string what, std::string part, std::FILE* stream)
    : what_(std::move(what)),
      part_(std::move(part)),
      line_(stream) {}

void Progress::Show(const ProgressStep& step) {
  if (!is_on()) return;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  ShowAt(step, passed.count());
}

void Progress::ShowAt(const ProgressStep& step, double seconds) {
  if (!is_on()) return;
  const std::lock_guard lock(mutex_);
  const bool is_end = step.share >= 1;
  if (last_ == 0 && seconds < kFirstSeconds) return;
  if (!is_end && seconds - last_ < kBetweenSeconds) return;
  last_ = seconds;
  line_.Show(ProgressLine(what_, part_, step, seconds), is_end);
}

}  // namespace plumbline::cli
