// For tests only: a disk that is full.

#ifndef PLUMBLINE_STORE_FULL_DISK_FOR_TEST_H_
#define PLUMBLINE_STORE_FULL_DISK_FOR_TEST_H_

#include <cerrno>

#include "base/file/file.h"

namespace plumbline::testing {

// While it lives, no byte can be appended to any file: what is there may be written over and
// renamed. Not thread-safe.
class FullDisk {
 public:
  FullDisk() : real_(Syscalls()) {
    Syscalls().write = [](int, const void*, size_t) {
      errno = ENOSPC;
      return ssize_t{-1};
    };
  }
  ~FullDisk() { Syscalls() = real_; }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  const SyscallTable real_;
};

}  // namespace plumbline::testing

#endif  // PLUMBLINE_STORE_FULL_DISK_FOR_TEST_H_
