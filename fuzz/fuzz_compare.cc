// Two dump.json, one behind the other with a zero byte between, through a whole comparison of
// statistics or checksums: pairing, verdicts, cause and the texts of the answer.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/file/file.h"
#include "plumbline/compare.h"

namespace {

// The directories `target` and `golden`, in memory where there is such a place.
const std::string& Root() {
  // Never destroyed: what runs at the end of the program still needs it.
  static const std::string& root = *[] {
    const char* parent = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
    auto* path = new std::string(std::string(parent) + "/plumbline-fuzz-XXXXXX");
    if (::mkdtemp(path->data()) == nullptr) std::abort();
    std::filesystem::create_directory(*path + "/target");
    std::filesystem::create_directory(*path + "/golden");
    std::atexit([] { std::filesystem::remove_all(Root()); });
    return path;
  }();
  return root;
}

void Write(const std::string& side, std::string_view text) {
  if (!plumbline::WriteFileAtomically(Root() + side + "/dump.json", text, false)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t zero = text.find('\0');
  const bool same = zero == std::string_view::npos;  // a recording against itself
  Write("/target", text.substr(0, zero));
  Write("/golden", same ? text : text.substr(zero + 1));
  plumbline::CompareOptions options;
  options.threads = 1;
  options.salvage = true;
  const auto found = plumbline::CompareRuns(Root() + "/target", Root() + "/golden", options);
  if (!found) return 0;
  if (same && found->first_wrong_call) std::abort();
  if (plumbline::SummaryText(*found).empty() || plumbline::ResultJson(*found).empty()) std::abort();
  return 0;
}
