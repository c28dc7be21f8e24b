// The user's own Python functions, run in an interpreter beside the program.

#ifndef PLUMBLINE_OPERATORS_USER_CODE_H_
#define PLUMBLINE_OPERATORS_USER_CODE_H_

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file/file_bytes.h"
#include "base/process/child_process.h"
#include "formats/acl/acl_types.h"
#include "measure/dump_algorithms.h"
#include "operators/msaccucmp_code.h"
#include "plumbline/result.h"
#include "tensor/device_layout.h"

namespace plumbline::operators {

// A Python interpreter that runs functions of the user's files.

// Requests and answers are lists of texts, of which the driver (user_code_driver.py) knows the
// meaning. Bytes of arrays go through shared memory. Not thread-safe; movable.
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

// The user's own algorithms and layout converters: functions in Python files, run by one Python
// interpreter beside this program (docs/reference/msaccucmp.md, "Own algorithms and converters").

struct UserCodeRequest {
  std::string directory;        // holds algorithm/ and format_convert/
  bool with_algorithms = true;  // else only converters are loaded
  // Of algorithms, by their names: what their third argument is to hold.
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> parameters;
};

// Thread-safe: one call after the other is run.
class UserCode {
 public:
  // kInvalidPath: no such directory, or one without algorithm/ and format_convert/. kFileTooLarge,
  // kDangerousFile: more, deeper or larger files than upstream allows. kConverterFailed: no Python
  // with NumPy; a file with the name of a function that holds none or cannot be loaded: nothing
  // built in may stand for what the user meant to run.
  static DumpResult<std::shared_ptr<UserCode>> Load(const UserCodeRequest& request);

  [[nodiscard]] const std::vector<std::string>& algorithms() const { return algorithms_; }
  // Files that were left out, one sentence each.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

  // The texts of each of `names`; an algorithm that fails has "NaN" and a message.
  std::vector<measure::AlgorithmText> Compare(const std::vector<std::string>& names,
                                              const measure::DumpPair& pair);

  [[nodiscard]] bool Converts(DeviceFormat from, DeviceFormat to) const {
    return converters_.contains({from, to});
  }
  // What a tensor is converted to, and the shape that is known of the result; empty: none is.
  struct Conversion {
    DeviceFormat from, to;
    Shape wanted;
    int64_t groups = 1;
  };
  // The result of a converter, as it gave it. kInternal: it failed; the message says how.
  // Requires: Converts().
  Result<acl::Elements> Convert(const Conversion& conversion, const acl::Elements& elements);

 private:
  explicit UserCode(PythonWorker worker) : worker_(std::move(worker)) {}
  // Takes one text of the interpreter's first answer: a kind and a name or a sentence.
  void Add(const std::string& entry);

  std::mutex mutex_;  // of the interpreter
  PythonWorker worker_;
  std::vector<std::string> algorithms_, warnings_, broken_;
  std::map<std::pair<DeviceFormat, DeviceFormat>, std::string> converters_;
};

// What a comparison runs of it; no code: nothing.
struct OwnFunctions {
  std::shared_ptr<UserCode> code;
  std::vector<std::string> algorithms;

  // The texts of these algorithms. Two tensors of bool are not for them, as upstream has it.
  [[nodiscard]] std::vector<measure::AlgorithmText> Compare(const measure::DumpPair& pair) const;
};

// Cuts padding off the ends of dimensions: `elements` has at least the sizes `wanted`, a size of 1
// more or less apart. kCorrupt: it has not.
Result<acl::Elements> CroppedTo(const Shape& wanted, acl::Elements elements);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_USER_CODE_H_
