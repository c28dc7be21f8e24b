// Any bytes as a journal: no crash, and every byte is either read or counted as dropped.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "record/value.h"
#include "store/journal.h"

namespace {

using plumbline::JournalRecord;
using plumbline::RecordKind;
using plumbline::Status;

// Every parser sees every payload, whatever its kind: a checksum is no proof of good will.
void ParseAll(std::span<const std::byte> payload) {
  (void)plumbline::ParseJournalHeader(payload).has_value();
  (void)plumbline::ParseStack(payload).has_value();
  (void)plumbline::ParseLoss(payload).has_value();
  (void)plumbline::ParseRemove(payload).has_value();
  const bool head = plumbline::PeekEntry(payload).has_value();
  // What unpacks has a readable head.
  if (plumbline::UnpackEntry(payload).has_value() && !head) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  ParseAll(bytes);
  size_t framed = 0;
  const auto scan = plumbline::ReadJournal(bytes, [&](const JournalRecord& record) -> Status {
    framed += 9 + record.payload.size();
    ParseAll(record.payload);
    return {};
  });
  if (!scan) return 0;
  const size_t magic = scan->records == 0 && scan->bytes_dropped == size ? 0 : 8;
  if (magic + framed + scan->bytes_dropped != size) std::abort();
  return 0;
}
