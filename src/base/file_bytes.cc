#include "base/file_bytes.h"

#include <array>
#include <cstring>
#include <utility>
#include <vector>

namespace plumbline {
namespace {

// Above it a copy costs more than pages. Of blocks that large malloc() keeps what is freed.
constexpr size_t kMostRead = size_t{120} << 10;

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
