#include "base/small_file.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "base/file.h"

namespace plumbline {
namespace {

// A pipe opens at once and reads as empty, instead of waiting for somebody to write into it.
constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;

}  // namespace

Result<std::span<const std::byte>> ReadSmallFile(const Directory& directory, std::string_view name,
                                                 std::span<std::byte> buffer) {
  const auto fail = [&](int error, std::string_view action) {
    return ErrnoError(error, JoinPath(directory.path(), name), action);
  };
  std::array<char, NAME_MAX + 1> text;  // ends in 0
  if (name.size() >= text.size()) return fail(ENAMETOOLONG, "open");
  *std::ranges::copy(name, text.begin()).out = '\0';
  int fd = -1;
  do {
    fd = Syscalls().openat(directory.fd(), text.data(), kFlags, 0);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return fail(errno, "open");
  ssize_t count = 0;
  do {
    count = Syscalls().read(fd, buffer.data(), buffer.size());
  } while (count < 0 && errno == EINTR);
  const int read_error = errno;
  Syscalls().close(fd);
  if (count < 0) return fail(read_error, "read");
  const auto size = static_cast<size_t>(count);
  if (size == buffer.size()) return std::span<const std::byte>();
  return std::span<const std::byte>(buffer.data(), size);
}

}  // namespace plumbline
