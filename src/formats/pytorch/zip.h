// ZIP archives: with members that are stored, so that they can be used in place, and with
// compressed ones.

#ifndef PLUMBLINE_FORMATS_PYTORCH_ZIP_H_
#define PLUMBLINE_FORMATS_PYTORCH_ZIP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::zip {

// One file of an archive. `name` points into the archive's bytes.
struct Member {
  std::string_view name;
  uint64_t data_offset = 0;  // from the start of the archive
  uint64_t size_bytes = 0;
  uint32_t crc32 = 0;
  bool is_stored = true;  // false: compressed or encrypted, cannot be used in place
  bool is_deflated = false;
};

// The members in the order of the central directory, sizes and ZIP64 included. kCorrupt when
// `archive` is no archive, is cut, or members lie outside it or overlap. Data is not read.
Result<std::vector<Member>> ReadDirectory(std::span<const std::byte> archive);

// The bytes of a member of that archive. kUnsupported unless stored; with `check`, kCorrupt when
// their CRC-32 is not the recorded one.
Result<std::span<const std::byte>> Data(std::span<const std::byte> archive, const Member& member,
                                        bool check);

// A copy of the contents of a member that is stored or deflated; its checksum is checked.
// kUnsupported for other methods; kCorrupt when damaged; kInvalidArgument above `max_bytes`.
Result<std::string> Extract(std::span<const std::byte> archive, const Member& member,
                            uint64_t max_bytes);

// Builds an archive front to back; the caller may supply the data of a large last member itself.
class Writer {
 public:
  // Appends a whole member to text().
  void Add(std::string_view name, std::string_view data);
  // Appends the header of the last member, padded so that its data, which the caller writes next,
  // starts at a multiple of `alignment` (a power of two up to 4096).
  void BeginLast(std::string_view name, uint64_t size_bytes, uint32_t crc32, uint64_t alignment);
  // What follows the data of the last member.
  [[nodiscard]] std::string Directory() const;
  // Everything appended so far.
  [[nodiscard]] std::string& text() { return text_; }

 private:
  void AppendHeader(const Member& member, uint64_t header_offset, uint64_t alignment);
  void AppendEntry(const Member& member, uint64_t header_offset);

  std::string text_;       // local headers and data
  std::string directory_;  // central directory entries
  uint64_t end_ = 0;       // archive offset behind the last data
  uint16_t count_ = 0;
};

// A ZIP archive of compressed members whose sizes are not known before they end.

// Deflates (fast level) while data arrives, in constant memory. The archive appears under its name
// with Close(); before, and when destroyed without it, nothing is visible. The bytes depend on the
// data and on how it is cut into Write() calls. Errors: kIo;
// kUnsupported where a member or the archive would exceed 4 GiB. Move-only, single-threaded.
class StreamWriter {
 public:
  static Result<StreamWriter> Create(const std::string& path);
  StreamWriter(StreamWriter&&) noexcept;
  StreamWriter& operator=(StreamWriter&&) noexcept;
  ~StreamWriter();

  // Ends the member before, if any.
  Status Begin(std::string_view name);
  Status Write(std::string_view data);
  Status Close();

  [[nodiscard]] uint64_t member_bytes() const;  // written to the current member, uncompressed

 private:
  struct Impl;
  explicit StreamWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace plumbline::zip

#endif  // PLUMBLINE_FORMATS_PYTORCH_ZIP_H_
