// One pass at a time over a directory of a static-graph dump.

#ifndef PLUMBLINE_PIPELINE_GRAPHS_PASS_LOCK_H_
#define PLUMBLINE_PIPELINE_GRAPHS_PASS_LOCK_H_

#include <string>

#include "base/directory.h"
#include "base/file.h"

namespace plumbline::pipeline {

// Held from Take() on; the file that it needs is gone when it ends. A killed process leaves the
// file, which the next pass takes over.
class PassLock {
 public:
  // kInvalidArgument while another process holds it; kIo.
  static Result<PassLock> Take(const std::string& directory);
  PassLock(PassLock&&) = default;
  PassLock& operator=(PassLock&&) = delete;
  ~PassLock();

 private:
  PassLock(Directory place, File file);

  Directory place_;
  File file_;
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_GRAPHS_PASS_LOCK_H_
