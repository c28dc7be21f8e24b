// Tensor files of ATB: any bytes are read or refused, and every element of
// what was read can be reached.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/acl/atb_bin.h"

namespace {

void Reach(const plumbline::TensorView& view) {
  std::vector<std::byte> copy(view.size_bytes());
  plumbline::CopyContiguous(view, copy);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto file = plumbline::atb::BinFile::Parse(bytes)) Reach(file->view());
  return 0;
}
