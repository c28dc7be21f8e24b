#include "base/directory_names.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace plumbline {
namespace {

// Of some hundred names: what two threads share has this grain.
constexpr size_t kBlockBytes = size_t{32} << 10;
constexpr size_t kUsualEntry = 64;

// Entries as the kernel writes them; libraries copy them once more, and older ones lack the call.
Result<size_t> ReadEntries(const Directory& directory, std::byte* memory) {
  for (;;) {
    const auto count = ::syscall(SYS_getdents64, directory.fd(), memory, kBlockBytes);
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR) return ErrnoError(errno, directory.path(), "list");
  }
}

// A field of an entry, as dirent64 has it.
template <class T>
T Field(const std::byte* entry, size_t offset) {
  T value;
  std::memcpy(&value, entry + offset, sizeof(value));
  return value;
}

}  // namespace

Result<DirectoryNames> DirectoryNames::Open(const std::string& path) {
  PL_TRY_ASSIGN(Directory directory, Directory::Open(path));
  return DirectoryNames(std::move(directory));
}

Result<NameBlock> DirectoryNames::Next() {
  NameBlock block;
  block.memory_ = std::make_unique_for_overwrite<std::byte[]>(kBlockBytes);
  block.names_.reserve(kBlockBytes / kUsualEntry);
  while (block.names_.empty()) {  // "." and ".." may come alone
    PL_TRY_ASSIGN(const size_t size, ReadEntries(directory_, block.memory_.get()));
    if (size == 0) break;
    for (size_t at = 0; at < size;) {
      const std::byte* const entry = block.memory_.get() + at;
      ListedName listed;
      listed.name = reinterpret_cast<const char*>(entry + offsetof(dirent64, d_name));
      listed.is_regular = Field<uint8_t>(entry, offsetof(dirent64, d_type)) == DT_REG;
      if (listed.name != "." && listed.name != "..") block.names_.push_back(listed);
      at += Field<uint16_t>(entry, offsetof(dirent64, d_reclen));
    }
  }
  return block;
}

}  // namespace plumbline
