#include "base/file/streamed_text.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/file/file.h"

namespace plumbline {
namespace {

// A multiple of every page size.
constexpr size_t kStep = size_t{4} << 20;
// What is set aside before anything is read.
constexpr size_t kFirstCapacity = 16 * kStep;

size_t RoundedUp(size_t bytes) { return (bytes + kStep - 1) / kStep * kStep; }

}  // namespace

StreamedText::StreamedText(StreamedText&& other) noexcept
    : file_(std::move(other.file_)),
      path_(std::move(other.path_)),
      is_whole_(other.is_whole_),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      capacity_(std::exchange(other.capacity_, 0)),
      released_(std::exchange(other.released_, 0)),
      reused_until_(std::exchange(other.reused_until_, 0)) {}

StreamedText::~StreamedText() {
  if (data_ != nullptr) ::munmap(data_, capacity_);
}

Status StreamedText::Grow(size_t capacity) {
  void* const grown =
      ::mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (grown == MAP_FAILED) return ErrnoError(errno, path_, "get memory for");
  if (data_ != nullptr) {
    // Not by mremap(): where pages were reused, this is no single mapping.
    std::memcpy(static_cast<char*>(grown) + released_, data_ + released_, size_ - released_);
    ::munmap(data_, capacity_);
  }
  data_ = static_cast<char*>(grown);
  capacity_ = capacity;
  reused_until_ = 0;
  return {};
}

Result<StreamedText> StreamedText::OpenFor(const std::string& path, size_t most) {
  PL_TRY_ASSIGN(File file, File::OpenRead(path));
  struct stat info {};
  if (::fstat(file.fd(), &info) != 0) return ErrnoError(errno, path, "inspect");
  StreamedText text(std::move(file), path);
  // One byte more than announced, so that the end is seen without growing.
  PL_TRY(text.Grow(std::min(RoundedUp(static_cast<size_t>(info.st_size) + 1), most)));
  return text;
}

Result<StreamedText> StreamedText::Open(const std::string& path) {
  return OpenFor(path, kFirstCapacity);
}

Result<StreamedText> StreamedText::Load(const std::string& path) {
  constexpr size_t kAll = std::numeric_limits<size_t>::max();
  PL_TRY_ASSIGN(StreamedText text, OpenFor(path, kAll));
  PL_TRY(text.LoadUntil(kAll));
  return text;
}

Status StreamedText::LoadUntil(size_t bytes) {
  while (!is_whole_ && size_ < bytes) {
    if (size_ == capacity_) PL_TRY(Grow(2 * capacity_));
    const size_t most = std::min(capacity_, bytes) - size_;
    const ssize_t n = Syscalls().read(file_.fd(), data_ + size_, most);
    if (n < 0 && errno != EINTR) return ErrnoError(errno, path_, "read");
    is_whole_ = n == 0;
    size_ += static_cast<size_t>(std::max(n, ssize_t{0}));
  }
  return {};
}

void StreamedText::Release(size_t bytes) {
  const size_t until = std::min(bytes, size_) / kStep * kStep;
  for (; released_ < until; released_ += kStep) {
    if (!Reuse(data_ + released_)) ::madvise(data_ + released_, kStep, MADV_DONTNEED);
  }
}

// Makes the pages of a step that is not needed any more those of the next step to be loaded: fresh
// ones would cost more than what is read into them.
bool StreamedText::Reuse(char* step) {
  const size_t next = std::max(reused_until_, RoundedUp(size_));
  if (is_whole_ || next + kStep > capacity_) return false;
  // The address stays ours all the while (zeros if anything still reads there): in a gap another
  // thread's allocator would settle, and lose what it has with this text.
  constexpr int kFlags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  if (::mremap(step, kStep, kStep, kFlags, data_ + next) == MAP_FAILED) return false;
  reused_until_ = next + kStep;
  return true;
}

}  // namespace plumbline
