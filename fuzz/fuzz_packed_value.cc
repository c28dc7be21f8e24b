// Packed entries of the journal: any bytes are unpacked or refused.

#include <cstddef>
#include <cstdint>
#include <span>

#include "record/value.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  plumbline::LateTable late;
  (void)plumbline::UnpackLate(bytes, &late);
  const auto entry = plumbline::UnpackEntry(bytes, &late);
  return entry && entry->call.name.size() > size ? 1 : 0;
}
