// Memory for one large result after the other on the same thread, without giving it back between.

#ifndef PLUMBLINE_BASE_KEPT_BUFFER_H_
#define PLUMBLINE_BASE_KEPT_BUFFER_H_

#include <cstddef>
#include <memory>
#include <span>

namespace plumbline {

// Uninitialised bytes. The thread that destroys it keeps the largest one it had until it ends, so
// that the next buffer costs no page faults. Huge pages where the system gives them. Move-only.
class KeptBuffer {
 public:
  KeptBuffer() = default;
  // Throws std::bad_alloc when there is no memory, as std::vector does.
  explicit KeptBuffer(size_t bytes);
  KeptBuffer(KeptBuffer&& other) noexcept;
  KeptBuffer& operator=(KeptBuffer&& other) noexcept;
  ~KeptBuffer();

  [[nodiscard]] std::span<std::byte> bytes() const { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  using Memory = std::unique_ptr<std::byte, Free>;
  struct Kept;
  static Kept& KeptOfThread();

  Memory memory_;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_KEPT_BUFFER_H_
