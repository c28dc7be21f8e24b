#include "base/huge_pages.h"

#include <sys/mman.h>

namespace plumbline {

void* AllocateHugePages(size_t bytes) {
  void* const data = ::operator new(bytes, std::align_val_t(kHugePageBytes));
  // Only advice: without huge pages the memory is as good, and slower to come by.
  static_cast<void>(::madvise(data, bytes, MADV_HUGEPAGE));
  return data;
}

void FreeHugePages(void* data) noexcept {
  ::operator delete(data, std::align_val_t(kHugePageBytes));
}

}  // namespace plumbline
