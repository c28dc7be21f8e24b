// What the recorder needs of the program that it observes, whatever language that is written in.

#ifndef PLUMBLINE_CAPTURE_RECORDED_PROGRAM_H_
#define PLUMBLINE_CAPTURE_RECORDED_PROGRAM_H_

#include <functional>
#include <utility>

#include "kernels/tensor_scan.h"

namespace plumbline::capture {

// A reference to an object of the program, a tensor say. What the object is and what it takes to
// let go of it, only the one who made the reference knows. Move-only.
class ObjectRef {
 public:
  using Release = void (*)(void* object);

  ObjectRef() = default;
  // Takes over one reference to `object`, which `release` gives back.
  ObjectRef(void* object, Release release) : object_(object), release_(release) {}
  ObjectRef(ObjectRef&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)), release_(other.release_) {}
  ObjectRef& operator=(ObjectRef&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~ObjectRef() {
    if (object_ != nullptr) release_(object_);
  }

  // Null: nothing is referred to.
  [[nodiscard]] void* get() const { return object_; }

 private:
  void* object_ = nullptr;
  Release release_ = nullptr;
};

// The program's threads. Both functions are called on a thread that holds the program's lock,
// Python's interpreter lock.
struct ProgramThreads {
  // Runs `work` without the lock, so that the other threads of the program go on.
  void (*run_unlocked)(const std::function<void()>& work) = nullptr;
  // Threads that are idle now and may share in reading a large tensor.
  kernels::Team (*team)() = nullptr;
};

}  // namespace plumbline::capture

#endif  // PLUMBLINE_CAPTURE_RECORDED_PROGRAM_H_
