#include "terminal.h"

#include <fmt/format.h>

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

}  // namespace plumbline::cli
