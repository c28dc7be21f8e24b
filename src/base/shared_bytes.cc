#include "base/shared_bytes.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "base/file.h"

namespace plumbline {
namespace {

Error MemoryError(std::string_view action) { return ErrnoError(errno, "shared memory", action); }

}  // namespace

SharedBytes::SharedBytes(SharedBytes&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

SharedBytes& SharedBytes::operator=(SharedBytes&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

SharedBytes::~SharedBytes() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<SharedBytes> SharedBytes::Create() {
  SharedBytes memory;
  memory.descriptor_ = ::memfd_create("plumbline", MFD_CLOEXEC);
  if (memory.descriptor_ < 0) return MemoryError("create");
  return memory;
}

Status SharedBytes::Reset(size_t size) {
  const bool done =
      ::ftruncate(descriptor_, 0) == 0 && ::ftruncate(descriptor_, static_cast<off_t>(size)) == 0;
  if (!done) return MemoryError(fmt::format("set to {} bytes", size));
  return {};
}

Status SharedBytes::WriteAt(std::span<const std::byte> bytes, size_t offset) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return MemoryError(fmt::format("write {} bytes", bytes.size()));
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<size_t>(written);
  }
  return {};
}

Result<std::vector<std::byte>> SharedBytes::Read() const {
  struct stat facts {};
  if (::fstat(descriptor_, &facts) != 0) return MemoryError("read");
  std::vector<std::byte> bytes(static_cast<size_t>(facts.st_size));
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got =
        ::pread(descriptor_, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return MemoryError("read");
    if (got == 0) break;
    at += static_cast<size_t>(got);
  }
  bytes.resize(at);
  return bytes;
}

}  // namespace plumbline
