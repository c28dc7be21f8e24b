// A mapped file that another program cuts off, or whose disk fails, while it is read: the process
// gets SIGBUS where it touches what is gone.

#ifndef PLUMBLINE_BASE_FILE_LOST_MAPPING_H_
#define PLUMBLINE_BASE_FILE_LOST_MAPPING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "plumbline/result.h"

namespace plumbline {

// From now on the whole process ends with `exit_status` and one line on stderr that names the file,
// instead of being killed. What it was writing stays under temporary names, as after a kill. For
// programs: a library uses LossWatch. Call once, before threads are started.
void EndWithLineOnLostMapping(int exit_status);
// Takes that back, for a program that goes on to serve several files: from here on LossWatch works.
// Call before threads are started.
void LiveOnWithLostMapping();

// Makes the mapped file `path` known to LossWatch, until the second, which comes before it is
// unmapped. Thread-safe.
void RememberMapping(std::span<const std::byte> bytes, const std::string& path);
void ForgetMapping(std::span<const std::byte> bytes);

// For a library in a process of somebody else: while one lives, what a mapped file of plumbline has
// lost reads as zeros, and Check() says so before anything made of them is used. Every other SIGBUS
// goes to the handler that the process had, which is back when the last one ends. Does nothing
// after EndWithLineOnLostMapping(). Thread-safe.
class LossWatch {
 public:
  LossWatch();
  LossWatch(const LossWatch&) = delete;
  LossWatch& operator=(const LossWatch&) = delete;
  ~LossWatch();

  // kIo, naming the file that was lost last, if one was since this began.
  [[nodiscard]] Status Check() const;

 private:
  uint64_t losses_before_ = 0;
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_FILE_LOST_MAPPING_H_
