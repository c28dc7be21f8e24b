// Memory for large arrays that are filled, read a few times and dropped.
//
// Every fresh page is a fault of its own. In pages of 4 KiB these faults take as long as filling an
// array with what it is for; in pages of 2 MiB they vanish.

#ifndef PLUMBLINE_BASE_HUGE_PAGES_H_
#define PLUMBLINE_BASE_HUGE_PAGES_H_

#include <cstddef>
#include <limits>
#include <memory>
#include <new>

namespace plumbline {

constexpr size_t kHugePageBytes = size_t{2} << 20;

// At least `bytes` at a multiple of kHugePageBytes, which the operating system is asked to back by
// huge pages; it may decline. Throws std::bad_alloc when there is no memory. Thread-safe.
void* AllocateHugePages(size_t bytes);
void FreeHugePages(void* data) noexcept;

// Allocator of standard containers: huge pages for arrays of that size and more, else the heap.
template <class T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <class U>
  explicit HugePageAllocator(const HugePageAllocator<U>& /*stateless*/) noexcept {}

  T* allocate(size_t count) {
    if (!IsLarge(count)) return std::allocator<T>().allocate(count);
    if (count > std::numeric_limits<size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(AllocateHugePages(count * sizeof(T)));
  }
  void deallocate(T* data, size_t count) noexcept {
    if (!IsLarge(count)) return std::allocator<T>().deallocate(data, count);
    FreeHugePages(data);
  }
  friend bool operator==(const HugePageAllocator&, const HugePageAllocator&) { return true; }

 private:
  static bool IsLarge(size_t count) { return count >= kHugePageBytes / sizeof(T); }
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_HUGE_PAGES_H_
