// Memory outside the process's allocator, for what the recorder keeps while a step runs.
//
// Small blocks that live until the end of the step, taken from the heap in between a framework's
// tensors, hinder it in reusing and returning the large blocks around them.

#ifndef PLUMBLINE_BASE_PAGE_MEMORY_H_
#define PLUMBLINE_BASE_PAGE_MEMORY_H_

#include <memory_resource>

namespace plumbline {

// Whole mappings of the operating system, a multiple of 64 KiB each; freed ones are kept for reuse,
// up to 64 MiB. Meant as upstream of a pool or a monotonic buffer. Thread-safe; lives until the
// process ends. Throws std::bad_alloc when there is no memory.
std::pmr::memory_resource& PageMemory();

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_PAGE_MEMORY_H_
