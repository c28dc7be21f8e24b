// A Python interpreter that runs functions of the user's files.

#ifndef PLUMBLINE_PIPELINE_USER_CODE_PYTHON_WORKER_H_
#define PLUMBLINE_PIPELINE_USER_CODE_PYTHON_WORKER_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/shared_bytes.h"
#include "plumbline/result.h"

namespace plumbline::pipeline {

// Requests and answers are lists of texts, of which the driver (driver.py) knows the meaning.
// Bytes of arrays go through shared memory. Not thread-safe; movable.
class PythonWorker {
 public:
  using Texts = std::vector<std::string>;

  // Starts the interpreter with `arguments` behind the driver; the first answer. The interpreter is
  // the one named by PLUMBLINE_PYTHON, else python3 or python of PATH. kNotFound: there is none.
  // kIo: it ended.
  static Result<std::pair<PythonWorker, Texts>> Start(const Texts& arguments);

  // Puts arrays into the memory, each at a multiple of 64 bytes; their places.
  Result<std::vector<size_t>> Place(std::span<const std::span<const std::byte>> arrays);
  // One request and its answer. kIo: the interpreter ended while it ran it; the next request starts
  // another one.
  Result<Texts> Ask(const Texts& request);
  // The array that the last request left.
  [[nodiscard]] Result<std::vector<std::byte>> Array() const { return result_.Read(); }

 private:
  PythonWorker() = default;
  Result<Texts> StartChild();

  std::vector<std::string> words_;
  SharedBytes arrays_, result_;
  ChildProcess child_;
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_USER_CODE_PYTHON_WORKER_H_
