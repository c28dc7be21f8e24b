// The first byte says what the rest is: the statistic.csv of MindSpore or of ATB, or the name of a
// kernel's file. It is read or refused.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "load/atb_dump.h"
#include "load/graph_dump.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string directory = "/tmp/fuzz_graph_dump";
  static const bool made = plumbline::MakeDirectories(directory).has_value();
  if (!made || size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 3 == 2) {
    (void)plumbline::load::ParseKernelFile(text);
    return 0;
  }
  const std::string path = plumbline::JoinPath(directory, "statistic.csv");
  if (!plumbline::WriteFileAtomically(path, text, /*durable=*/false)) return 0;
  if (data[0] % 3 == 0) {
    (void)plumbline::load::ReadGraphDump({directory});
  } else {
    (void)plumbline::load::ReadAtbDump(directory);
  }
  return 0;
}
