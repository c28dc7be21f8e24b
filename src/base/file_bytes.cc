#include "base/file_bytes.h"

#include <array>
#include <utility>

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

}  // namespace plumbline
