// Memory that this process and a program beside it see.

#ifndef PLUMBLINE_BASE_SHARED_BYTES_H_
#define PLUMBLINE_BASE_SHARED_BYTES_H_

#include <cstddef>
#include <span>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

// Bytes that two processes see; nothing of it is left when both have ended. Move-only.
class SharedBytes {
 public:
  SharedBytes() = default;
  SharedBytes(SharedBytes&& other) noexcept;
  SharedBytes& operator=(SharedBytes&& other) noexcept;
  ~SharedBytes();

  static Result<SharedBytes> Create();
  // Makes it `size` bytes of zeros.
  Status Reset(size_t size);
  Status WriteAt(std::span<const std::byte> bytes, size_t offset);
  // All of it, as the other process left it.
  [[nodiscard]] Result<std::vector<std::byte>> Read() const;
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_SHARED_BYTES_H_
