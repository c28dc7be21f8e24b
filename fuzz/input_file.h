// Gives a fuzz target's bytes a path, for readers that take one.

#ifndef PLUMBLINE_FUZZ_INPUT_FILE_H_
#define PLUMBLINE_FUZZ_INPUT_FILE_H_

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

// The path of a file in memory that holds exactly these bytes until the next call. One per
// process, so that targets can run beside each other.
inline const std::string& InputFile(const uint8_t* data, size_t size) {
  static const int file = memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (file < 0 || ftruncate(file, 0) != 0) std::abort();
  if (pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  return path;
}

#endif  // PLUMBLINE_FUZZ_INPUT_FILE_H_
