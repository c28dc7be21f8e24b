// Frames of the online pre-check: what a training sends to the machine that checks its calls, over
// a connection or as files of a shared directory, and what that machine keeps until they are judged.
//
//   frame  = header[64] body[body_bytes] zeros up to a multiple of 64
//   header = "PLOC" u16 version u16 kind u64 body_bytes u64 session u64 sequence i64 step i32 rank
//            u32 crc32c(body) u64 dropped u32 0 u32 crc32c(header[0..60])
//   record = u32 packed_bytes u32 tensors packed[packed_bytes] { u16 bytes, name, u8 dtype, u8
//            dimensions, i64 size each, u64 offset, u64 bytes } elements at their offsets
// Little-endian. Offsets count from the start of the body and are multiples of 64.

#ifndef PLUMBLINE_ONLINE_FRAME_H_
#define PLUMBLINE_ONLINE_FRAME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::online {

inline constexpr uint16_t kFrameVersion = 1;
inline constexpr size_t kHeaderBytes = 64, kFrameAlignment = 64;
// A header that says more is of no frame.
inline constexpr uint64_t kMostBodyBytes = uint64_t{64} << 30;

// Stored; never renumber.
enum class FrameKind : uint16_t {
  kHello = 1,    // of a training that connects; body: the framework
  kWelcome = 2,  // to it; sequence: of the last frame that is kept of its session; body: Credits
  kRecord = 3,   // an entry with its tensors
  kStepEnd = 4,  // no more records of the step
  kStop = 5,     // no more frames; body: none
  kAck = 6,      // sequence and body as of a welcome
  kRefusal = 7,  // nothing of this training is wanted; body: why
};

struct FrameHeader {
  FrameKind kind = FrameKind::kRecord;
  uint64_t body_bytes = 0;
  uint64_t session = 0;   // one training process
  uint64_t sequence = 0;  // of kRecord, kStepEnd and kStop: from 1, without gaps
  int64_t step = 0;
  int32_t rank = 0;
  uint32_t body_crc = 0;
  uint64_t dropped = 0;  // records that the training has not sent so far
};

inline std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::array<std::byte, kHeaderBytes> EncodeHeader(const FrameHeader& header);
// kCorrupt: no frame begins there, or it is damaged. kUnsupported: of another version.
// Requires: kHeaderBytes bytes.
Result<FrameHeader> ParseHeader(std::span<const std::byte> bytes);
// The next multiple of kFrameAlignment.
constexpr uint64_t Padded(uint64_t bytes) {
  return (bytes + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}
// Of a whole frame.
constexpr uint64_t FrameBytes(const FrameHeader& header) {
  return kHeaderBytes + Padded(header.body_bytes);
}
// A whole frame of a small body.
std::string EncodeFrame(FrameHeader header, std::string_view body);

// How many records may be on their way, and how many came and could not be kept.
struct Credits {
  uint64_t records = 0, lost = 0;
};
std::string EncodeCredits(const Credits& credits);
Result<Credits> ParseCredits(std::span<const std::byte> body);

// A tensor of a record; `bytes` are its contiguous elements. Borrowed.
struct FrameTensor {
  std::string_view name;  // as the entry has it under data_name
  DType dtype = DType::kFloat32;
  Shape sizes;
  std::span<const std::byte> bytes;
};
// The body of a record up to its first element, a multiple of kFrameAlignment; the elements of each
// tensor follow, each padded to such a multiple but the last. `body_bytes` becomes the length of
// all.
std::string EncodeRecordStart(std::span<const std::byte> packed,
                              std::span<const FrameTensor> tensors, uint64_t& body_bytes);

// A record read back; views into the body.
struct Record {
  std::span<const std::byte> packed;  // of UnpackEntry()
  std::vector<FrameTensor> tensors;
};
// kCorrupt: it is none; every tensor of one lies in the body and has the bytes of its shape.
Result<Record> ParseRecord(std::span<const std::byte> body);

// Frames that arrive in pieces of any size. Thread-compatible.
class FrameReader {
 public:
  // Room for the next piece, at least one byte; Take() says how much of it was filled.
  std::span<std::byte> Room();
  void Take(size_t bytes) { filled_ += bytes; }
  // Moves the next whole frame out; false: more is needed. Errors of ParseHeader(), and kCorrupt
  // where the body is not what was sent. After an error there are no more frames.
  struct Frame {
    FrameHeader header;
    std::vector<std::byte> bytes;  // the frame as it came
    [[nodiscard]] std::span<const std::byte> body() const {
      return std::span(bytes).subspan(kHeaderBytes, header.body_bytes);
    }
  };
  Result<bool> Next(Frame& out);

 private:
  std::vector<std::byte> buffer_;  // of frames that were not taken
  size_t begin_ = 0, filled_ = 0;  // they are these bytes of it
};

}  // namespace plumbline::online

#endif  // PLUMBLINE_ONLINE_FRAME_H_
