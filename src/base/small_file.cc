#include "base/small_file.h"

#include <cerrno>

#include "base/file.h"

namespace plumbline {

Result<std::span<const std::byte>> ReadSmallFile(const Directory& directory, std::string_view name,
                                                 std::span<std::byte> buffer) {
  PL_TRY_ASSIGN(const File file, File::OpenRead(directory, name));
  ssize_t count = 0;
  do {
    count = Syscalls().read(file.fd(), buffer.data(), buffer.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) return ErrnoError(errno, file.path(), "read");
  const auto size = static_cast<size_t>(count);
  if (size == buffer.size()) return std::span<const std::byte>();
  return std::span<const std::byte>(buffer.data(), size);
}

}  // namespace plumbline
