// Any bytes are read or refused, and every element of what was read can be reached.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/pytorch/torch_archive.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Larger views of few bytes (stride 0) are valid, but copying them would only cost time.
  constexpr int64_t kMaxElements = 1 << 18;
  const auto archive =
      plumbline::torch_pt::TorchArchive::Parse(std::as_bytes(std::span(data, size)));
  if (!archive) return 0;
  for (const auto& tensor : archive->tensors()) {
    if (!tensor.problem.empty() || tensor.view().element_count() > kMaxElements) continue;
    (void)plumbline::torch_pt::CheckBytes(tensor);
    std::vector<std::byte> copy(tensor.view().size_bytes());
    plumbline::CopyContiguous(tensor.view(), copy);
  }
  return 0;
}
