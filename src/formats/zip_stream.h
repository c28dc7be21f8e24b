// A ZIP archive of compressed members whose sizes are not known before they end.

#ifndef PLUMBLINE_FORMATS_ZIP_STREAM_H_
#define PLUMBLINE_FORMATS_ZIP_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "plumbline/result.h"

namespace plumbline::zip {

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

#endif  // PLUMBLINE_FORMATS_ZIP_STREAM_H_
