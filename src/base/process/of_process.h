// What must not be destroyed in a forked child.

#ifndef PLUMBLINE_BASE_PROCESS_OF_PROCESS_H_
#define PLUMBLINE_BASE_PROCESS_OF_PROCESS_H_

#include <unistd.h>

namespace plumbline {

// A T that only the process destroys that made it. A forked child has none of its parent's threads:
// there, a condition variable's destructor would wait for ever for those that wait on it, and a
// thread can be neither joined nor detached.
template <class T>
class OfProcess {
 public:
  OfProcess() : value_(new T), process_(::getpid()) {}
  ~OfProcess() {
    if (is_here()) delete value_;
  }
  OfProcess(const OfProcess&) = delete;
  OfProcess& operator=(const OfProcess&) = delete;

  // Whether this is the process that made it.
  [[nodiscard]] bool is_here() const { return ::getpid() == process_; }
  T& operator*() { return *value_; }
  T* operator->() { return value_; }

 private:
  T* value_;
  pid_t process_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_PROCESS_OF_PROCESS_H_
