#include "base/file/commit_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/file/directory.h"
#include "base/memory/bytes.h"
#include "base/memory/digest.h"

namespace plumbline {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr std::string_view kMagic = "PLCHANGE";
// How often to start over when other processes remove the file of changes at the same time.
constexpr int kLockAttempts = 16;

// A file of changes: the magic, inode and least size of the file they belong to, the number of
// pages, of each its number, length and contents; then the CRC-32C of all that.

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

struct Changes {
  uint64_t inode = 0, size = 0;
  std::map<uint64_t, std::string> pages;
};

// kCorrupt where the file was not written to its end: then no change was carried out either.
Result<Changes> DecodeChanges(std::string_view text) {
  Changes changes;
  ByteReader reader(BytesOf(text));
  PL_TRY_ASSIGN(const std::string_view magic, reader.ReadText(kMagic.size()));
  if (magic != kMagic) return Error(ErrorCode::kCorrupt, "not a file of changes");
  PL_TRY_ASSIGN(changes.inode, reader.ReadU64());
  PL_TRY_ASSIGN(changes.size, reader.ReadU64());
  PL_TRY_ASSIGN(const uint64_t count, reader.ReadU64());
  for (uint64_t i = 0; i < count; ++i) {
    PL_TRY_ASSIGN(const uint64_t page, reader.ReadU64());
    PL_TRY_ASSIGN(const uint64_t bytes, reader.ReadU64());
    PL_TRY_ASSIGN(const std::string_view contents, reader.ReadText(bytes));
    changes.pages.emplace(page, contents);
  }
  const size_t covered = reader.offset();
  PL_TRY_ASSIGN(const uint32_t crc, reader.ReadU32());
  if (crc != Crc32c(BytesOf(text.substr(0, covered)))) {
    return Error(ErrorCode::kCorrupt, "the checksum of the changes differs");
  }
  return changes;
}

// Whether its path leads to the file that is open, which another process may have removed.
bool IsInPlace(const File& file) {
  const Result<Directory> directory = Directory::Open(std::string(DirectoryOf(file.path())));
  return directory && directory->Holds(BaseName(file.path()), file);
}

}  // namespace

std::string CommitFile::ChangesPath(const std::string& path) {
  return JoinPath(DirectoryOf(path), fmt::format(".{}.commit", BaseName(path)));
}

CommitFile::CommitFile(std::string path) : path_(std::move(path)), process_(::getpid()) {}

Status CommitFile::LockForWriting() {
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    PL_TRY_ASSIGN(File file, File::OpenUpdate(ChangesPath(path_)));
    PL_TRY_ASSIGN(const bool locked, file.TryLock());
    if (!locked) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: another process is writing it. Choose another name, or wait", path_));
    }
    // Between open and lock the writer before may have removed the file.
    if (!IsInPlace(file)) continue;
    PL_TRY_ASSIGN(const uint64_t size, FileSize(file.path()));
    in_doubt_ = size > 0;
    changes_ = std::move(file);
    return {};
  }
  return Error(ErrorCode::kIo,
               fmt::format("{}: other processes keep replacing it", ChangesPath(path_)));
}

Result<CommitFile> CommitFile::Create(const std::string& path) {
  CommitFile file(path);
  PL_TRY(file.LockForWriting());
  // Changes of an earlier file of this name are carried out before it could be needed again.
  if (KindOf(path) == PathKind::kFile) {
    PL_TRY_ASSIGN(file.file_, File::OpenUpdate(path));
    PL_TRY(file.LoadChanges());
    PL_TRY(file.CarryOut());
  }
  PL_TRY(file.changes_.Resize(0));
  file.in_doubt_ = false;
  file.temporary_ = JoinPath(DirectoryOf(path), fmt::format(".{}.tmp", BaseName(path)));
  PL_TRY(RemoveFile(file.temporary_));
  PL_TRY_ASSIGN(file.file_, File::OpenUpdate(file.temporary_));
  file.size_ = 0;
  file.committed_ = 0;
  return file;
}

Result<CommitFile> CommitFile::OpenUpdate(const std::string& path) {
  if (KindOf(path) != PathKind::kFile) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: there is no such file", path));
  }
  CommitFile file(path);
  PL_TRY(file.LockForWriting());
  PL_TRY_ASSIGN(file.file_, File::OpenUpdate(path));
  PL_TRY(file.LoadChanges());
  PL_TRY(file.CarryOut());
  return file;
}

Result<CommitFile> CommitFile::OpenRead(const std::string& path) {
  CommitFile file(path);
  PL_TRY_ASSIGN(file.file_, File::OpenRead(path));
  PL_TRY(file.LoadChanges());
  return file;
}

CommitFile::~CommitFile() {
  if (!changes_.is_open() || process_ != ::getpid()) return;
  if (!temporary_.empty()) static_cast<void>(RemoveFile(temporary_));
  if (in_doubt_) return;  // the next one to open the file needs the changes
  if (temporary_.empty() && size_ > committed_) static_cast<void>(file_.Resize(committed_));
  if (IsInPlace(changes_)) static_cast<void>(RemoveFile(changes_.path()));
}

Status CommitFile::LoadChanges() {
  PL_TRY_ASSIGN(size_, FileSize(path_));
  committed_ = size_;
  const Result<std::string> text = ReadFile(ChangesPath(path_));
  if (!text) {
    if (text.error().code() == ErrorCode::kNotFound) return {};
    return text.error();
  }
  Result<Changes> changes = DecodeChanges(*text);
  PL_TRY_ASSIGN(const FileIdentity identity, IdentityOf(path_));
  if (changes && changes->inode == identity.inode && changes->size <= size_) {
    pages_ = std::move(changes->pages);
  }
  return {};
}

Status CommitFile::Read(uint64_t offset, std::span<std::byte> out) const {
  PL_TRY_ASSIGN(const size_t read, file_.ReadAt(out, offset));
  std::ranges::fill(out.subspan(read), std::byte{0});
  const uint64_t end = offset + out.size();
  for (auto page = pages_.lower_bound(offset / kPageBytes);
       page != pages_.end() && page->first * kPageBytes < end; ++page) {
    const uint64_t start = page->first * kPageBytes;
    const uint64_t from = std::max(start, offset);
    const uint64_t to = std::min(start + page->second.size(), end);
    if (from < to) {
      std::memcpy(out.data() + (from - offset), page->second.data() + (from - start), to - from);
    }
  }
  return {};
}

Status CommitFile::ChangePage(uint64_t page, uint64_t begin, std::span<const std::byte> bytes) {
  const uint64_t start = page * kPageBytes;
  const auto [found, is_new] = pages_.try_emplace(page);
  if (is_new) {
    found->second.resize(std::min(kPageBytes, committed_ - start));
    const auto contents = std::as_writable_bytes(std::span(found->second));
    PL_TRY(file_.ReadAt(contents, start));
  }
  std::memcpy(found->second.data() + (begin - start), bytes.data(), bytes.size());
  return {};
}

Status CommitFile::Write(uint64_t offset, std::span<const std::byte> bytes) {
  if (process_ != ::getpid()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: was opened by the process that forked this one", path_));
  }
  size_ = std::max(size_, offset + bytes.size());
  while (!bytes.empty() && offset < committed_) {
    const uint64_t page_end = (offset / kPageBytes + 1) * kPageBytes;
    const uint64_t count = std::min({page_end, committed_, offset + bytes.size()}) - offset;
    PL_TRY(ChangePage(offset / kPageBytes, offset, bytes.first(count)));
    bytes = bytes.subspan(count);
    offset += count;
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  return file_.WriteAt(std::string_view(text, bytes.size()), offset);
}

Status CommitFile::Extend(uint64_t size) {
  if (size <= size_) return {};
  size_ = size;
  return file_.Resize(size);
}

Result<std::string> CommitFile::EncodeChanges() const {
  PL_TRY_ASSIGN(const FileIdentity identity, IdentityOf(path_));
  std::string text(kMagic);
  AppendU64(identity.inode, text);
  AppendU64(size_, text);
  AppendU64(pages_.size(), text);
  for (const auto& [page, contents] : pages_) {
    AppendU64(page, text);
    AppendU64(contents.size(), text);
    text += contents;
  }
  AppendU32(Crc32c(BytesOf(text)), text);
  return text;
}

Status CommitFile::CarryOut() {
  in_doubt_ = !pages_.empty();
  for (const auto& [page, contents] : pages_) {
    PL_TRY(file_.WriteAt(contents, page * kPageBytes));
  }
  PL_TRY(changes_.Resize(0));
  pages_.clear();
  in_doubt_ = false;
  return {};
}

Status CommitFile::Commit() {
  if (!pages_.empty()) {
    PL_TRY_ASSIGN(const std::string text, EncodeChanges());
    PL_TRY(changes_.WriteAt(text, 0));
    PL_TRY(CarryOut());
  }
  if (!temporary_.empty()) {
    PL_TRY(RenameFile(temporary_, path_));
    temporary_.clear();
  }
  committed_ = size_;
  return {};
}

}  // namespace plumbline
