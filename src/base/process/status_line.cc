#include "base/process/status_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/text/text_parts.h"

namespace plumbline {
namespace {

// The line that is on a terminal. Never destroyed: other threads may log to the very end.
struct ShownLine {
  std::mutex mutex;
  std::FILE* stream = nullptr;  // null: there is none
  size_t length = 0;            // in bytes, at least as many as columns
};
ShownLine& TheLine() {
  static auto* line = new ShownLine;
  return *line;
}
std::atomic<bool> was_shown = false;

// The part of a text that fits into a row of the terminal, whose last column stays free.
std::string_view Fitting(std::string_view text, std::FILE* stream) {
  winsize size{};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return text;
  if (text.size() < size.ws_col) return text;
  size_t end = size.ws_col - 1U;
  while (end > 0 && IsUtf8Continuation(text[end])) --end;
  return text.substr(0, end);
}

}  // namespace

StatusLine::StatusLine(std::FILE* stream)
    : stream_(stream), is_on_(::isatty(::fileno(stream)) == 1) {}

void StatusLine::Show(std::string_view text, bool is_end) const {
  if (!is_on_) return;
  std::string line(Fitting(text, stream_));
  const size_t length = line.size();
  ShownLine& shown = TheLine();
  const std::scoped_lock lock(shown.mutex);
  was_shown = true;
  line.resize(std::max(length, shown.length), ' ');  // over what is left of a longer one
  shown.length = is_end ? 0 : length;
  shown.stream = is_end ? nullptr : stream_;
  std::fprintf(stream_, "\r%s%s", line.c_str(), is_end ? "\n" : "");
  std::fflush(stream_);
}

StatusLineAside::StatusLineAside() {
  if (!was_shown) return;
  ShownLine& shown = TheLine();
  lock_ = std::unique_lock(shown.mutex);
  if (shown.stream == nullptr) return;
  std::fprintf(shown.stream, "\r%s\r", std::string(shown.length, ' ').c_str());
  std::fflush(shown.stream);
  shown.stream = nullptr;
  shown.length = 0;
}

}  // namespace plumbline
