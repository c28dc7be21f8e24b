// Dump files of devices, overflow records and their names: any bytes are read or refused, and every
// element of what was read can be reached.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/acl/acl_dump.h"
#include "formats/acl/acl_file_name.h"
#include "formats/acl/acl_overflow.h"

namespace {

namespace acl = plumbline::acl;

void Reach(const acl::DumpedTensor& tensor) {
  auto elements = acl::ElementsOf(tensor);
  if (elements) {
    elements->Align();
    std::vector<std::byte> copy(elements->view().size_bytes());
    plumbline::CopyContiguous(elements->view(), copy);
  }
  if (const auto record = acl::ReadOverflow(tensor.data)) (void)acl::OverflowJson(*record);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  (void)acl::ParseDumpFileName({reinterpret_cast<const char*>(data), size});
  const auto file = acl::DumpFile::Parse(bytes);
  if (!file) return 0;
  for (const auto* side : {&file->message().inputs, &file->message().outputs}) {
    for (const acl::DumpedTensor& tensor : *side) Reach(tensor);
  }
  (void)acl::ReadThreadSlices(file->message());
  (void)acl::MakeHeader(file->message());
  (void)file->FirstCutPart();
  return 0;
}
