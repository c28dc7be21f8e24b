// Files mapped into memory: a part of base/file.h.

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/file.h"
#include "base/lost_mapping.h"

namespace plumbline {

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  PL_TRY_ASSIGN(File file, File::OpenRead(path));
  struct stat info {};
  if (::fstat(file.fd(), &info) != 0) return ErrnoError(errno, path, "inspect");
  std::span<const std::byte> bytes;
  const auto size = static_cast<size_t>(info.st_size);
  if (size > 0) {
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd(), 0);
    if (address == MAP_FAILED) return ErrnoError(errno, path, "map");
    bytes = {static_cast<const std::byte*>(address), size};
    RememberMapping(bytes, path);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(bytes, path));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    ForgetMapping(bytes_);
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

}  // namespace plumbline
