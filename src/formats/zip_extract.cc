// zip::Extract(): contents of members, also of compressed ones.

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/digest.h"
#include "formats/zip.h"

namespace plumbline::zip {
namespace {

constexpr size_t kFirstBytes = size_t{64} << 10;

// Frees zlib's state whatever happens.
class Inflater {
 public:
  Inflater() { ready_ = inflateInit2(&stream_, -MAX_WBITS) == Z_OK; }  // raw deflate, no header
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  [[nodiscard]] bool ready() const { return ready_; }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_ = {};
  bool ready_ = false;
};

Error Damaged(const Member& member) {
  return Error(ErrorCode::kCorrupt, fmt::format("{}: its compressed data is damaged", member.name));
}

Error TooLarge(const Member& member, uint64_t max_bytes) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: larger than {} bytes", member.name, max_bytes));
}

Result<std::string> Inflate(std::span<const std::byte> packed, const Member& member,
                            uint64_t max_bytes) {
  Inflater inflater;
  if (!inflater.ready()) return Error(ErrorCode::kInternal, "zlib cannot start");
  z_stream& stream = inflater.stream();
  // zlib counts in 32 bits: members of this size are no result tables.
  if (packed.size() > std::numeric_limits<uInt>::max()) return TooLarge(member, max_bytes);
  // zlib's interface is not const; it does not write there.
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string text;
  for (size_t done = 0;; done = text.size() - stream.avail_out) {
    // Grows with what really comes out, not with what the archive promises.
    const uint64_t next = std::clamp<uint64_t>(text.size() * 2, kFirstBytes, max_bytes + 1);
    if (next <= text.size()) return TooLarge(member, max_bytes);
    text.resize(static_cast<size_t>(next));
    const size_t room = std::min<size_t>(text.size() - done, std::numeric_limits<uInt>::max());
    text.resize(done + room);
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + done);
    stream.avail_out = static_cast<uInt>(room);
    const int code = inflate(&stream, Z_NO_FLUSH);
    if (code == Z_STREAM_END) break;
    if (code != Z_OK || stream.avail_out > 0) return Damaged(member);
  }
  text.resize(text.size() - stream.avail_out);
  if (text.size() > max_bytes) return TooLarge(member, max_bytes);
  return text;
}

}  // namespace

Result<std::string> Extract(std::span<const std::byte> archive, const Member& member,
                            uint64_t max_bytes) {
  const auto data = archive.subspan(static_cast<size_t>(member.data_offset),
                                    static_cast<size_t>(member.size_bytes));
  std::string text;
  if (member.is_deflated) {
    PL_TRY_ASSIGN(text, Inflate(data, member, max_bytes));
  } else if (member.is_stored) {
    if (data.size() > max_bytes) return TooLarge(member, max_bytes);
    text.assign(reinterpret_cast<const char*>(data.data()), data.size());
  } else {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: encrypted, or packed in a way other than deflate", member.name));
  }
  if (Crc32(std::as_bytes(std::span(text))) != member.crc32) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: its checksum differs", member.name));
  }
  return text;
}

}  // namespace plumbline::zip
