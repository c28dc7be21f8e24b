// Mapping files of a comparison: every reader on the same bytes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "match/mapping_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string path = "/tmp/fuzz_mappings.yaml";
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!plumbline::WriteFileAtomically(path, text, /*durable=*/false)) return 0;
  // What is read, or which error: any is fine, as long as the reader returns.
  (void)plumbline::match::ReadDataMapping(path);
  (void)plumbline::match::ReadApiMapping(path);
  (void)plumbline::match::ReadCellMapping(path);
  (void)plumbline::match::ReadLayerMapping(path);
  return 0;
}
