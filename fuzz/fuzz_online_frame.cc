// Frames of the online pre-check: any bytes are frames, or are refused; also behind checksums that
// are right.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/memory/bytes.h"
#include "online/frame.h"
#include "online/receiver.h"

namespace {

namespace online = plumbline::online;

// Whether all tensors of a record lie in it.
bool IsSound(std::span<const std::byte> body) {
  const auto record = online::ParseRecord(body);
  if (!record) return true;
  return std::all_of(record->tensors.begin(), record->tensors.end(), [&](const auto& tensor) {
    const std::byte* const begin = tensor.bytes.data();
    return tensor.bytes.empty() || (begin >= body.data() && begin + tensor.bytes.size() <=
                                                                body.data() + body.size());
  });
}

bool ReadsInPieces(std::span<const std::byte> bytes, size_t piece) {
  online::FrameReader reader;
  online::FrameReader::Frame frame;
  for (size_t at = 0; at < bytes.size();) {
    const std::span<std::byte> room = reader.Room();
    const size_t count = std::min({piece, room.size(), bytes.size() - at});
    std::memcpy(room.data(), bytes.data() + at, count);
    reader.Take(count);
    at += count;
    for (;;) {
      const auto next = reader.Next(frame);
      if (!next) return true;
      if (!*next) break;
      if (!IsSound(frame.body())) return false;
    }
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  bool is_sound = IsSound(bytes) && ReadsInPieces(bytes, 1 + size / 3);
  is_sound = is_sound && online::VisitFrames(bytes, {}) <= size;
  online::FrameHeader header;
  header.sequence = size;
  const std::string frame = online::EncodeFrame(header, plumbline::AsText(bytes));
  is_sound = is_sound && ReadsInPieces(std::as_bytes(std::span(frame)), 61);
  if (!is_sound) __builtin_trap();
  return 0;
}
