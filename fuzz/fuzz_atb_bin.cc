// Any bytes are read or refused, and every element of what was read can be reached.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/atb_bin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = plumbline::atb::BinFile::Parse(std::as_bytes(std::span(data, size)));
  if (!file) return 0;
  std::vector<std::byte> copy(file->view().size_bytes());
  plumbline::CopyContiguous(file->view(), copy);
  return 0;
}
