// The user's own algorithms and layout converters: functions in Python files, run by one Python
// interpreter beside this program (docs/reference/msaccucmp.md, "Own algorithms and converters").

#ifndef PLUMBLINE_PIPELINE_USER_CODE_USER_CODE_H_
#define PLUMBLINE_PIPELINE_USER_CODE_USER_CODE_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "formats/acl_types.h"
#include "measure/dump_algorithms.h"
#include "pipeline/device_dump/msaccucmp_code.h"
#include "pipeline/user_code/python_worker.h"
#include "tensor/device_format.h"

namespace plumbline::pipeline {

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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_USER_CODE_USER_CODE_H_
