#include "terminal.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "base/process/log.h"

namespace plumbline::cli {
namespace {

void Write(std::string_view text, std::FILE* stream) {
  const std::string shown = ShownText(text);
  std::fwrite(shown.data(), 1, shown.size(), stream);
}

}  // namespace

void Print(std::string_view text) { Write(text, stdout); }
void PrintError(std::string_view text) { Write(text, stderr); }
void PrintNote(std::string_view command, std::string_view text) {
  PrintError(fmt::format("plumb {}: note: {}\n", command, OneLine(text)));
}

namespace {
volatile std::sig_atomic_t was_signalled = 0;

void OnSignal(int /*signal*/) { was_signalled = 1; }
}  // namespace

void AwaitInterrupts() {
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    action.sa_handler = OnSignal;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigemptyset(&action.sa_mask);
    (void)::sigaction(signal, &action, nullptr);
  }
}

bool WasInterrupted() { return was_signalled != 0; }

}  // namespace plumbline::cli
