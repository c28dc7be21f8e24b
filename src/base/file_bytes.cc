#include "base/file_bytes.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace plumbline {
namespace {

// Above it a copy costs more than pages. Of blocks that large malloc() keeps what is freed.
constexpr size_t kMostRead = size_t{120} << 10;

}  // namespace

Result<FileBytes> FileBytes::Open(const std::string& path) {
  FileBytes opened;
  {
    PL_TRY_ASSIGN(const File file, File::OpenRead(path));
    struct stat info {};
    if (::fstat(file.fd(), &info) != 0) return ErrnoError(errno, path, "inspect");
    if (!S_ISREG(info.st_mode)) {
      return Error(ErrorCode::kInvalidArgument, fmt::format("{}: not a regular file", path));
    }
    const auto size = static_cast<size_t>(info.st_size);
    if (size <= kMostRead) {
      opened.read_ = std::make_unique_for_overwrite<std::byte[]>(size);
      PL_TRY_ASSIGN(const size_t count, file.ReadAt({opened.read_.get(), size}, 0));
      opened.bytes_ = {opened.read_.get(), count};
      return opened;
    }
  }
  PL_TRY_ASSIGN(opened.mapped_, MappedFile::Open(path));
  opened.bytes_ = opened.mapped_->bytes();
  return opened;
}

}  // namespace plumbline
