// Operators that are checked while a program runs: the results of each on the device under test
// against those on the CPU, judged here; rows and arrays written as upstream's PtdbgDispatch does.
//
//   {directory}/msprobe[_{tag}]_rank{N}_{time}/accuracy_checking_{result,details}_{time}.csv
//                                              npu/{op}_{n}_input.{i}.npy, npu/{op}_{n}_output.npy
//                                              cpu/{op}_{n}_output.npy

#ifndef PLUMBLINE_PRECHECK_ONLINE_OPERATOR_CHECK_H_
#define PLUMBLINE_PRECHECK_ONLINE_OPERATOR_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::precheck {

// When arrays are written: never, of every operator, of the listed ones, of failing ones.
enum class ArrayDump : uint8_t { kOff, kAll, kListed, kFailing };
// Upstream's words: "OFF", "all", "list", "auto". kInvalidArgument.
Result<ArrayDump> ParseArrayDump(std::string_view word);

struct OperatorCheckOptions {
  std::string directory;  // there already; empty: no file is written
  std::string tag;        // letters, digits, '_' and '-'; may be empty
  int rank = 0;
  ArrayDump dump = ArrayDump::kOff;
  std::vector<std::string> listed;  // operators of kListed
  int workers = 0;  // threads that judge and write; 0: the calling thread, before Add() returns
};

// A contiguous array on the host, kept readable by its owner.
struct HeldArray {
  DType dtype = DType::kFloat32;
  Shape sizes;
  const std::byte* data = nullptr;
  std::shared_ptr<const void> owner;
};
// A value within arguments or results; monostate: nothing to compare or to write.
using OperatorValue = std::variant<std::monostate, HeldArray, bool, int64_t, double>;
struct OperatorLeaf {
  std::string path;  // behind "_input" or "_output" in file names: "", ".0", ".1.2", "_alpha"
  OperatorValue value;
};

struct OperatorCall {
  std::string op;           // "mm"
  std::string where;        // "train.py:41"; may be empty
  std::string not_checked;  // why there is no benchmark; else empty
  std::vector<OperatorLeaf> inputs;  // may be left out where WantsInputs() is false
  std::vector<OperatorLeaf> device, bench;
};

struct FailedOperator {
  std::string name;  // "mm_3"
  std::string where, message;
};
struct OperatorReport {
  uint64_t passed = 0, failed = 0, not_checked = 0;
  std::vector<FailedOperator> failures;    // the first kMostFailures, in the order of the calls
  std::vector<std::string> reasons;        // different ones for not checking, the first few
  std::vector<std::string> problems;       // of files: each a sentence
  std::string directory;                   // empty: nothing was written
  std::vector<std::string> files;          // the two csv files

  static constexpr size_t kMostFailures = 1000, kMostReasons = 20;
};
// The line that says which operator is wrong first. `left_alone`: calls that were not looked at.
std::string AnswerText(const OperatorReport& report, uint64_t left_alone);

// Thread-safe. A full disk loses rows and arrays, never verdicts: the report has it as a problem.
// A kill leaves the rows that were written, whole ones. In a forked child nothing is done: the
// threads and the files are the parent's.
class OperatorCheck {
 public:
  // Makes the directories and both files with their headers. kInvalidArgument, kNotFound, kIo.
  static Result<std::unique_ptr<OperatorCheck>> Start(const OperatorCheckOptions& options);
  ~OperatorCheck();  // as Finish()
  OperatorCheck(const OperatorCheck&) = delete;
  OperatorCheck& operator=(const OperatorCheck&) = delete;

  // Whether inputs of this operator could be written.
  [[nodiscard]] bool WantsInputs(std::string_view op) const;
  // Judges a call or gives it to a worker; waits while those hold too much memory.
  void Add(OperatorCall call);
  // Ends the workers when they are done. May be called again; Add() does nothing afterwards.
  OperatorReport Finish();

 private:
  class State;
  explicit OperatorCheck(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_ONLINE_OPERATOR_CHECK_H_
