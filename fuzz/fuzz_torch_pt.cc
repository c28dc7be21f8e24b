// Any bytes are read or refused, and every element of what was read can be reached.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/pytorch/torch_pt.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Larger views of few bytes (stride 0) are valid, but copying them would only cost time.
  constexpr int64_t kMaxElements = 1 << 20;
  const auto file = plumbline::torch_pt::PtFile::Parse(std::as_bytes(std::span(data, size)));
  if (!file || file->view().element_count() > kMaxElements) return 0;
  std::vector<std::byte> copy(file->view().size_bytes());
  plumbline::CopyContiguous(file->view(), copy);
  return 0;
}
