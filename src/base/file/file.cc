#include "base/file/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/file/directory.h"
#include "base/file/lost_mapping.h"
#include "base/file/object_store.h"

namespace plumbline {

using object_store::LocalPath;

PathKind KindOf(const std::string& path) {
  struct stat info {};
  if (::stat(LocalPath(path).c_str(), &info) != 0) return PathKind::kMissing;
  if (S_ISREG(info.st_mode)) return PathKind::kFile;
  if (S_ISDIR(info.st_mode)) return PathKind::kDirectory;
  return PathKind::kOther;
}

Result<PathFacts> Inspect(const std::string& path) {
  struct stat info {};
  if (::lstat(LocalPath(path).c_str(), &info) != 0) return ErrnoError(errno, path, "inspect");
  PathFacts facts;
  facts.kind = S_ISREG(info.st_mode)   ? PathKind::kFile
               : S_ISDIR(info.st_mode) ? PathKind::kDirectory
                                       : PathKind::kOther;
  facts.is_link = S_ISLNK(info.st_mode);
  facts.is_shared_writable = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  facts.is_own = ::geteuid() == 0 || info.st_uid == ::geteuid();
  facts.size_bytes = static_cast<uint64_t>(info.st_size);
  return facts;
}

Result<std::string> RealPath(const std::string& path) {
  char* resolved = ::realpath(LocalPath(path).c_str(), nullptr);
  if (resolved == nullptr) return ErrnoError(errno, path, "resolve");
  std::string result(resolved);
  std::free(resolved);
  return result;
}

Result<std::string> AbsolutePath(const std::string& path) {
  if (LocalPath(path).is_stored()) return path.substr(0, path.find_last_not_of('/') + 1);
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return ErrnoError(error.value(), path, "make absolute");
  std::string text = absolute.lexically_normal().string();
  if (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

Result<uint64_t> FileSize(const std::string& path) {
  struct stat info {};
  if (::stat(LocalPath(path).c_str(), &info) != 0) return ErrnoError(errno, path, "inspect");
  return static_cast<uint64_t>(info.st_size);
}

Result<int64_t> ModifiedAt(const std::string& path) {
  struct stat info {};
  if (::stat(LocalPath(path).c_str(), &info) != 0) return ErrnoError(errno, path, "inspect");
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

Result<FileIdentity> IdentityOf(const std::string& path) {
  struct stat info {};
  if (::stat(LocalPath(path).c_str(), &info) != 0) return ErrnoError(errno, path, "inspect");
  return FileIdentity{static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino)};
}

Result<std::vector<std::string>> ListDirectory(const std::string& path) {
  DIR* directory = ::opendir(LocalPath(path).c_str());
  if (directory == nullptr) return ErrnoError(errno, path, "list");
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

std::string JoinPath(std::string_view directory, std::string_view name) {
  if (directory.empty()) return std::string(name);
  if (directory.back() == '/') return fmt::format("{}{}", directory, name);
  return fmt::format("{}/{}", directory, name);
}

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string_view DirectoryOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Files mapped into memory.

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

namespace {

constexpr mode_t kFileMode = 0640;

int OpenCall(int directory, const char* path, int flags, mode_t mode) {
  return ::openat(directory, path, flags, mode);
}

// What `open` gives, once the bytes of the object at `path` are there. They may be dropped again
// before it is open, to make room for others.
template <class Open>
Result<int> OpenFetched(const LocalPath& path, int flags, const Open& open) {
  constexpr int kAttempts = 8;
  if (!object_store::IsOpen() || (flags & (O_TRUNC | O_DIRECTORY)) != 0) return open();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    PL_TRY_ASSIGN(const bool is_object, object_store::Fetch(path));
    PL_TRY_ASSIGN(const int fd, open());
    if (!is_object || !object_store::LacksBytes(fd)) return fd;
    Syscalls().close(fd);
  }
  return Error(ErrorCode::kIo, fmt::format("{}: is dropped to make room each time that it is "
                                           "fetched. TMPDIR names a larger place",
                                           path.text()));
}

// `name` is looked up in `directory`; `path` is for messages.
Result<int> OpenInside(const Directory& directory, const std::string& name, int flags,
                       std::string_view action) {
  const std::string path = object_store::IsOpen() ? JoinPath(directory.path(), name) : "";
  return OpenFetched(LocalPath(path), flags, [&]() -> Result<int> {
    for (;;) {
      const int fd = Syscalls().openat(directory.fd(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC,
                                       kFileMode);
      if (fd >= 0) return fd;
      if (errno != EINTR) return ErrnoError(errno, JoinPath(directory.path(), name), action);
    }
  });
}

Result<int> OpenDescriptor(const std::string& path, int flags, std::string_view action) {
  const LocalPath local(path);
  return OpenFetched(local, flags, [&]() -> Result<int> {
    for (;;) {
      const int fd = Syscalls().openat(AT_FDCWD, local.c_str(), flags | O_CLOEXEC, kFileMode);
      if (fd >= 0) return fd;
      if (errno != EINTR) return ErrnoError(errno, path, action);
    }
  });
}

// Nothing when something stands there already, whatever it is. An error names `named`: what the
// user knows, where `path` is a temporary.
Result<std::optional<int>> OpenNew(const std::string& path, const std::string& named) {
  for (;;) {
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    const int fd = Syscalls().openat(AT_FDCWD, LocalPath(path).c_str(), flags, kFileMode);
    if (fd >= 0) return std::optional(fd);
    if (errno == EEXIST) return std::optional<int>();
    if (errno != EINTR) return ErrnoError(errno, named, "create");
  }
}

// Opening a pipe would wait for somebody to write into it.
Status RefuseOtherKinds(const std::string& path) {
  if (KindOf(path) <= PathKind::kFile) return {};  // or missing, which the caller says
  const char* const what = KindOf(path) == PathKind::kDirectory ? "is a directory, not" : "not";
  return Error(ErrorCode::kInvalidArgument, fmt::format("{}: {} a regular file", path, what));
}

std::string TemporaryName(std::string_view name) { return fmt::format(".{}.tmp", name); }

// Asked before a text is made, which would end the process where it has no place.
bool FitsInMemory(size_t bytes) {
  constexpr size_t kAlways = size_t{16} << 20;
  if (bytes <= kAlways) return true;
  void* const room =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return false;
  ::munmap(room, bytes);
  return true;
}

// A name that no living writer of this machine uses; cut where the two together are too long.
std::string OwnTemporaryName(std::string_view name) {
  constexpr size_t kLongestName = 255;
  static std::atomic<uint64_t> counter{0};
  const std::string end = fmt::format(".{}-{}.tmp", ::getpid(), counter.fetch_add(1));
  return fmt::format(".{}{}", name.substr(0, kLongestName - 1 - end.size()), end);
}

}  // namespace

SyscallTable& Syscalls() {
  static SyscallTable table = {OpenCall,   ::read,   ::write,    ::pwrite,  ::fsync,  ::close,
                               ::renameat, ::linkat, ::unlinkat, ::mkdirat, ::syncfs, ::fstatvfs};
  return table;
}

Error ErrnoError(int errno_value, std::string_view path, std::string_view action) {
  const bool missing = errno_value == ENOENT || errno_value == ENOTDIR;
  return Error(
      missing ? ErrorCode::kNotFound : ErrorCode::kIo,
      fmt::format("{}: cannot {}: {}", path, action, std::generic_category().message(errno_value)));
}

Error LinkError(int errno_value, std::string_view from, std::string_view to) {
  switch (errno_value) {
    case EPERM:
    case EOPNOTSUPP:
    case ENOSYS:
    case EMLINK:
    case EXDEV:
      return Error(ErrorCode::kUnsupported, fmt::format("{}: no hard links here", to));
    default:
      return ErrnoError(errno_value, to, fmt::format("link to {}", from));
  }
}

File::File(File&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) Syscalls().close(fd_);
    fd_ = std::exchange(other.fd_, -1);
    path_ = std::move(other.path_);
  }
  return *this;
}

File::~File() {
  if (fd_ >= 0) Syscalls().close(fd_);
}

Result<File> File::OpenRead(const std::string& path) {
  PL_TRY(RefuseOtherKinds(path));
  PL_TRY_ASSIGN(const int fd, OpenDescriptor(path, O_RDONLY, "open"));
  return File(fd, path);
}

Result<File> File::OpenRead(const Directory& directory, std::string_view name) {
  PL_TRY_ASSIGN(const int fd, OpenInside(directory, std::string(name), O_RDONLY, "open"));
  return File(fd, JoinPath(directory.path(), name));
}

Result<File> File::OpenListed(const std::string& path, size_t& size) {
  // A pipe that took the place of the file opens at once, without waiting for a writer.
  PL_TRY_ASSIGN(const int fd, OpenDescriptor(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, "open"));
  File file(fd, path);
  struct stat info {};
  if (::fstat(fd, &info) != 0) return ErrnoError(errno, path, "inspect");
  if (!S_ISREG(info.st_mode)) {
    PL_TRY(RefuseOtherKinds(path));
    return Error(ErrorCode::kIo, fmt::format("{}: changes while it is read", path));
  }
  size = static_cast<size_t>(info.st_size);
  return file;
}

Result<File> File::Create(const std::string& path) {
  PL_TRY_ASSIGN(const int fd, OpenDescriptor(path, O_WRONLY | O_CREAT | O_TRUNC, "create"));
  return File(fd, path);
}

Result<File> File::OpenAppend(const std::string& path) {
  PL_TRY_ASSIGN(const int fd, OpenDescriptor(path, O_RDWR | O_CREAT | O_APPEND, "open"));
  return File(fd, path);
}

Result<File> File::OpenAppend(const Directory& directory, std::string_view name) {
  PL_TRY_ASSIGN(const int fd,
                OpenInside(directory, std::string(name), O_RDWR | O_CREAT | O_APPEND, "open"));
  return File(fd, JoinPath(directory.path(), name));
}

Result<File> File::OpenUpdate(const std::string& path) {
  PL_TRY_ASSIGN(const int fd, OpenDescriptor(path, O_RDWR | O_CREAT, "open"));
  return File(fd, path);
}

Result<size_t> File::ReadAt(std::span<std::byte> out, size_t offset) const {
  size_t done = 0;
  while (done < out.size()) {
    const auto place = static_cast<off_t>(offset + done);
    const ssize_t n = ::pread(fd_, out.data() + done, out.size() - done, place);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, path_, "read");
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

Status File::Resize(size_t size) {
  if (::ftruncate(fd_, static_cast<off_t>(size)) == 0) return {};
  return ErrnoError(errno, path_, fmt::format("resize to {} bytes", size));
}

Status File::Write(std::span<const std::byte> bytes) {
  const size_t total = bytes.size();
  while (!bytes.empty()) {
    const ssize_t n = Syscalls().write(fd_, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoError(errno, path_, fmt::format("write {} bytes", total));
    }
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

Status File::Write(std::string_view text) { return Write(std::as_bytes(std::span(text))); }

Status File::WriteAt(std::string_view text, size_t offset) {
  const size_t total = text.size();
  while (!text.empty()) {
    const ssize_t n = Syscalls().pwrite(fd_, text.data(), text.size(), static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoError(errno, path_, fmt::format("write {} bytes", total));
    }
    text.remove_prefix(static_cast<size_t>(n));
    offset += static_cast<size_t>(n);
  }
  return {};
}

Status File::Skip(size_t bytes) {
  if (::lseek(fd_, static_cast<off_t>(bytes), SEEK_CUR) >= 0) return {};
  return ErrnoError(errno, path_, fmt::format("skip {} bytes", bytes));
}

Status File::Sync() {
  if (Syscalls().fsync(fd_) != 0) return ErrnoError(errno, path_, "sync");
  return {};
}

Status File::Touch() {
  if (::futimens(fd_, nullptr) == 0) return {};
  return ErrnoError(errno, path_, "set the time of");
}

Status File::SetModifiedAt(int64_t time) {
  constexpr int64_t kNanoseconds = 1'000'000'000;
  const timespec modified{time / kNanoseconds, time % kNanoseconds};
  const std::array<timespec, 2> times{timespec{0, UTIME_OMIT}, modified};
  if (::futimens(fd_, times.data()) == 0) return {};
  return ErrnoError(errno, path_, "set the time of");
}

Status File::Close() {
  if (fd_ < 0) return {};
  // Linux releases the descriptor even when close reports EINTR.
  const int result = Syscalls().close(std::exchange(fd_, -1));
  if (result != 0 && errno != EINTR) return ErrnoError(errno, path_, "close");
  return {};
}

Result<bool> File::TryLock() {
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  return ErrnoError(errno, path_, "lock");
}

Result<std::string> ReadFile(const std::string& path) {
  PL_TRY_ASSIGN(File file, File::OpenRead(path));
  struct stat info {};
  if (::fstat(file.fd(), &info) != 0) return ErrnoError(errno, path, "inspect");
  const auto size = static_cast<size_t>(info.st_size) + 1;
  if (!FitsInMemory(size)) {
    return Error(ErrorCode::kIo,
                 fmt::format("{}: {} bytes do not fit into memory", path, size - 1));
  }
  std::string text(size, '\0');
  size_t filled = 0;
  for (;;) {
    if (filled == text.size()) text.resize(text.size() * 2);
    const ssize_t n = Syscalls().read(file.fd(), text.data() + filled, text.size() - filled);
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoError(errno, path, "read");
    }
    if (n == 0) break;
    filled += static_cast<size_t>(n);
  }
  text.resize(filled);
  return text;
}

Result<std::string> ReadStart(const std::string& path, size_t size) {
  constexpr size_t kPiece = size_t{64} << 10;
  PL_TRY_ASSIGN(const File file, File::OpenRead(path));
  std::string text;
  for (;;) {
    const size_t filled = text.size();
    const size_t piece = std::min(std::max(kPiece, filled), size - filled);
    if (piece == 0) return text;
    text.resize(filled + piece);
    const auto rest = std::as_writable_bytes(std::span(text)).subspan(filled);
    PL_TRY_ASSIGN(const size_t count, file.ReadAt(rest, filled));
    text.resize(filled + count);
    if (count < piece) return text;
  }
}

Result<AtomicFile> AtomicFile::Create(const std::string& path) {
  if (KindOf(path) == PathKind::kOther) {  // renaming would replace a device by a file
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: exists and is no regular file. Choose another name", path));
  }
  // What a killed process of the same number left, here or on another machine, is stepped over.
  for (;;) {
    const std::string temporary = JoinPath(DirectoryOf(path), OwnTemporaryName(BaseName(path)));
    PL_TRY_ASSIGN(const std::optional<int> fd, OpenNew(temporary, path));
    if (fd) return AtomicFile(File(*fd, temporary), path, nullptr);
  }
}

Result<AtomicFile> AtomicFile::Create(const Directory& directory, std::string_view name) {
  const std::string temporary = TemporaryName(name);
  PL_TRY_ASSIGN(const int fd,
                OpenInside(directory, temporary, O_WRONLY | O_CREAT | O_TRUNC, "create"));
  return AtomicFile(File(fd, JoinPath(directory.path(), temporary)),
                    JoinPath(directory.path(), name), &directory);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : file_(std::move(other.file_)),
      path_(std::move(other.path_)),
      directory_(other.directory_),
      committed_(std::exchange(other.committed_, true)) {}

AtomicFile::~AtomicFile() {
  if (committed_) return;
  if (directory_ == nullptr) {
    Syscalls().unlinkat(AT_FDCWD, LocalPath(file_.path()).c_str(), 0);
  } else {
    (void)directory_->Remove(BaseName(file_.path()));
  }
}

Status AtomicFile::Commit(bool durable) {
  if (durable) PL_TRY(file_.Sync());
  PL_TRY(file_.Close());
  if (directory_ == nullptr) {
    PL_TRY(RenameFile(file_.path(), path_));
  } else {
    PL_TRY(directory_->Rename(BaseName(file_.path()), BaseName(path_)));
  }
  committed_ = true;
  if (!durable) return {};
  return directory_ == nullptr ? SyncDirectory(std::string(DirectoryOf(path_)))
                               : directory_->Sync();
}

Result<std::optional<NameHold>> NameHold::Make(const std::string& path) {
  PL_TRY_ASSIGN(const std::optional<int> fd, OpenNew(path, path));
  if (!fd) return std::optional<NameHold>();
  Syscalls().close(*fd);
  return std::optional(NameHold(path));
}

NameHold::~NameHold() {
  if (!path_.empty()) Syscalls().unlinkat(AT_FDCWD, LocalPath(path_).c_str(), 0);
}

Status WriteFileAtomically(const std::string& path, std::string_view text, bool durable) {
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  PL_TRY(file.Write(text));
  return file.Commit(durable);
}

Status WriteFileAtomically(const Directory& directory, std::string_view name, std::string_view text,
                           bool durable) {
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(directory, name));
  PL_TRY(file.Write(text));
  return file.Commit(durable);
}

Status MakeDirectories(const std::string& path) {
  if (path.empty()) {
    return Error(ErrorCode::kInvalidArgument, "directory name is empty");
  }
  const LocalPath local(path);
  const std::string& whole = local.text();
  for (size_t end = 1; end <= whole.size(); ++end) {
    if (end < whole.size() && whole[end] != '/') continue;
    const std::string prefix = whole.substr(0, end);
    if (Syscalls().mkdirat(AT_FDCWD, prefix.c_str(), kDirectoryMode) == 0) continue;
    const int error = errno;
    if (KindOf(prefix) == PathKind::kDirectory) continue;
    return ErrnoError(error, prefix, "create directory");
  }
  return {};
}

Status SyncDirectory(const std::string& path) {
  PL_TRY_ASSIGN(const int fd, OpenDescriptor(path, O_RDONLY | O_DIRECTORY, "open"));
  const int result = Syscalls().fsync(fd);
  const int error = errno;
  Syscalls().close(fd);
  // Some network file systems cannot sync a directory; the rename itself is still ordered.
  if (result != 0 && error != EINVAL) return ErrnoError(error, path, "sync");
  return {};
}

Status SyncFileSystem(const std::string& path) {
  PL_TRY_ASSIGN(const int fd, OpenDescriptor(path, O_RDONLY, "open"));
  const int result = Syscalls().syncfs(fd);
  const int error = errno;
  Syscalls().close(fd);
  if (result != 0) return ErrnoError(error, path, "sync the file system of");
  return {};
}

Status RemoveFile(const std::string& path) {
  if (Syscalls().unlinkat(AT_FDCWD, LocalPath(path).c_str(), 0) == 0 || errno == ENOENT) return {};
  return ErrnoError(errno, path, "remove");
}

Status RenameFile(const std::string& from, const std::string& to) {
  if (Syscalls().renameat(AT_FDCWD, LocalPath(from).c_str(), AT_FDCWD, LocalPath(to).c_str()) == 0)
    return {};
  return ErrnoError(errno, from, fmt::format("rename to {}", to));
}

Status LinkFile(const std::string& from, const std::string& to) {
  if (Syscalls().linkat(AT_FDCWD, LocalPath(from).c_str(), AT_FDCWD, LocalPath(to).c_str(), 0) == 0)
    return {};
  return LinkError(errno, from, to);
}

}  // namespace plumbline
