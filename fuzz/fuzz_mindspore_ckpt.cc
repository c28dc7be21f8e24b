// Any bytes are read or refused, and every byte of what was read can be reached.

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/array/mindspore_ckpt.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = plumbline::mindspore_ckpt::CkptFile::Parse(bytes);
  if (!file) return 0;
  unsigned sum = 0;
  for (const auto& tensor : file->tensors()) {
    for (const auto run : tensor.runs) {
      for (const std::byte byte : run) sum += std::to_integer<unsigned>(byte);
    }
  }
  return sum == 1 ? -1 : 0;  // uses the sum
}
