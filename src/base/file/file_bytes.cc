#include "base/file/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/file/object_store.h"

namespace plumbline {

namespace {

Error MemoryError(std::string_view action) { return ErrnoError(errno, "shared memory", action); }

}  // namespace

SharedBytes::SharedBytes(SharedBytes&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      mapped_(std::exchange(other.mapped_, {})),
      backed_(std::exchange(other.backed_, 0)) {}

SharedBytes& SharedBytes::operator=(SharedBytes&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(mapped_, other.mapped_);
  std::swap(backed_, other.backed_);
  return *this;
}

SharedBytes::~SharedBytes() {
  if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<SharedBytes> SharedBytes::Create() {
  SharedBytes memory;
  memory.descriptor_ = ::memfd_create("plumbline", MFD_CLOEXEC);
  if (memory.descriptor_ < 0) return MemoryError("create");
  return memory;
}

Result<SharedBytes> SharedBytes::CreateGrowing() {
  SharedBytes memory;
  memory.descriptor_ = ::memfd_create("plumbline", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory.descriptor_ < 0) return MemoryError("create");
  // A process that made it smaller would end the other one where it touches what is gone.
  if (::fcntl(memory.descriptor_, F_ADD_SEALS, F_SEAL_SHRINK) != 0) return MemoryError("seal");
  return memory;
}

Status SharedBytes::Grow(size_t size) {
  if (size <= backed_) return {};
  // The kernel would go on until it has to end a process.
  struct sysinfo machine {};
  if (::sysinfo(&machine) == 0 && size / machine.mem_unit > machine.totalram) {
    return Error(ErrorCode::kIo, fmt::format("shared memory: cannot make {} bytes: the machine has "
                                             "{}",
                                             size, uint64_t{machine.totalram} * machine.mem_unit));
  }
  // Without the pages, the first touch of one that does not exist any more would be a signal.
  while (::fallocate(descriptor_, 0, 0, static_cast<off_t>(size)) != 0) {
    if (errno != EINTR) return MemoryError(fmt::format("make {} bytes", size));
  }
  backed_ = size;
  return {};
}

Result<std::span<std::byte>> SharedBytes::Map() {
  struct stat facts {};
  if (::fstat(descriptor_, &facts) != 0) return MemoryError("look at");
  const auto size = static_cast<size_t>(facts.st_size);
  if (size <= mapped_.size()) return mapped_;
  void* const memory =
      mapped_.empty() ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0)
                      : ::mremap(mapped_.data(), mapped_.size(), size, MREMAP_MAYMOVE);
  if (memory == MAP_FAILED) return MemoryError(fmt::format("map {} bytes", size));
  mapped_ = {static_cast<std::byte*>(memory), size};
  return mapped_;
}

Status SharedBytes::Clear() {
  backed_ = 0;
  struct stat facts {};
  if (::fstat(descriptor_, &facts) != 0) return MemoryError("look at");
  if (facts.st_size == 0) return {};
  if (::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, facts.st_size) != 0) {
    return MemoryError("clear");
  }
  return {};
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

namespace {

// Above it a copy costs more than pages. Of blocks that large malloc() keeps what is freed.
constexpr size_t kMostRead = size_t{120} << 10;

// A pipe opens at once and reads as empty, instead of waiting for somebody to write into it.
constexpr int kSmallFileFlags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;

}  // namespace

// A target and its golden side are open at a time, and the parts of a few operators.
struct FileBytes::KeptOfThread {
  std::array<std::unique_ptr<std::byte[]>, 4> memory;
  size_t count = 0;
};

FileBytes::KeptOfThread& FileBytes::Kept() {
  static thread_local KeptOfThread kept;
  return kept;
}

void FileBytes::Keep::operator()(std::byte* memory) const {
  std::unique_ptr<std::byte[]> owned(memory);
  KeptOfThread& kept = Kept();
  if (kept.count < kept.memory.size()) kept.memory[kept.count++] = std::move(owned);
}

FileBytes::Memory FileBytes::TakeMemory() {
  KeptOfThread& kept = Kept();
  if (kept.count > 0) return Memory(kept.memory[--kept.count].release());
  return Memory(std::make_unique_for_overwrite<std::byte[]>(kMostRead).release());
}

Result<FileBytes> FileBytes::Open(const std::string& path) {
  FileBytes opened;
  {
    size_t size = 0;
    PL_TRY_ASSIGN(const File file, File::OpenListed(path, size));
    if (size <= kMostRead) {
      opened.read_ = TakeMemory();
      PL_TRY_ASSIGN(const size_t count, file.ReadAt({opened.read_.get(), size}, 0));
      opened.bytes_ = {opened.read_.get(), count};
      return opened;
    }
  }
  PL_TRY_ASSIGN(opened.mapped_, MappedFile::Open(path));
  opened.bytes_ = opened.mapped_->bytes();
  return opened;
}

Result<std::span<const std::byte>> ReadSmallFile(const Directory& directory, std::string_view name,
                                                 std::span<std::byte> buffer) {
  PL_TRY(object_store::FetchInside(directory, name));
  const auto fail = [&](int error, std::string_view action) {
    return ErrnoError(error, JoinPath(directory.path(), name), action);
  };
  std::array<char, NAME_MAX + 1> text;  // ends in 0
  if (name.size() >= text.size()) return fail(ENAMETOOLONG, "open");
  *std::ranges::copy(name, text.begin()).out = '\0';
  int fd = -1;
  do {
    fd = Syscalls().openat(directory.fd(), text.data(), kSmallFileFlags, 0);
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

bool HaveSameBytes(const std::string& a, const std::string& b) {
  constexpr size_t kPiece = size_t{1} << 20;
  const Result<File> first = File::OpenRead(a);
  const Result<File> second = File::OpenRead(b);
  if (!first || !second) return false;
  std::vector<std::byte> left(kPiece), right(kPiece);
  for (size_t at = 0;; at += kPiece) {
    const Result<size_t> here = first->ReadAt(left, at);
    const Result<size_t> there = second->ReadAt(right, at);
    if (!here || !there || *here != *there) return false;
    if (std::memcmp(left.data(), right.data(), *here) != 0) return false;
    if (*here < kPiece) return true;
  }
}

}  // namespace plumbline
