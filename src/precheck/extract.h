// One call of a recording as a unit test: a folder with a program of pytest and PyTorch alone, the
// inputs of the call and what it should make of them.

#ifndef PLUMBLINE_PRECHECK_EXTRACT_H_
#define PLUMBLINE_PRECHECK_EXTRACT_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/file/file_bytes.h"
#include "base/text/json.h"
#include "plumbline/result.h"

namespace plumbline::precheck {

struct ExtractOptions {
  // A recording (a dump.json of any name, a rank or step directory), or the result of a comparison
  // (its .json file or its directory, of which the newest counts), which brings `golden` and
  // `call`.
  std::string run;
  std::string call;    // "Tensor.__add__.22", also with a direction behind; empty: the named one
  std::string golden;  // a recording with the same call as it should be; empty: none
  std::string output_dir = "extracted";  // the folder is made in it
  std::string device = "cpu";            // where the test runs unless DEVICE says otherwise
  bool reduce = false;
  double seconds = 60;        // most time for the reduction
  double call_seconds = 600;  // after which the call is given up, wherever it runs
  uint64_t seed = 1234;       // of inputs that are drawn from statistics
  std::string python;         // the interpreter; empty: FindPython()
  // What the user should know before this is done; one sentence.
  std::function<void(const std::string& text)> on_note = {};
};

struct ExtractedTest {
  std::string call;                // "Tensor.__add__.22"
  std::string test_path;           // of the program
  bool fails = false;              // on `device`, as it was written
  bool has_recorded_data = false;  // else inputs were drawn from statistics
  std::vector<std::string> lines;  // what was found out, one sentence each
};

// Expected results are those of the golden run's arguments (without one: of the call's own) in
// float64 on the CPU; a tensor that both runs pass at the same place is the target's. The test is
// written before it is made smaller.
// kNotFound: a path, or the call in a recording, with the nearest name. kUnsupported: no call of
// PyTorch's API, one that cannot be run again, that draws random numbers, or that no test can judge
// (the message has the reason). kInvalidArgument: no call is named. kIo: nothing is written, or
// what was there before. kCorrupt.
Result<ExtractedTest> ExtractCall(const ExtractOptions& options);

// ---- What programs that write about one call need ----

struct CallSource {
  std::string dump_json;
  std::string call;  // without direction
  uint64_t seed = 1234;
};

// A call of a recording with the memory of its inputs.
struct LoadedCall {
  std::string api;               // "softmax"
  std::string request = "null";  // the members of an executor's request, as one JSON object
  size_t bytes = 0;
  bool has_recorded_data = false;
  std::string backward_skip;  // why a recorded backward is not run; empty: it is, or none was
  SharedBytes memory;
};
// Errors of ExtractCall().
Result<LoadedCall> LoadCall(const CallSource& source);

// A module of the Python package that answers one line.
struct WriterProgram {
  std::string python;  // empty: FindPython()
  std::string module;
  std::function<void(const std::string& text)> on_note = {};
};
// Sends the line and returns the answer; hands on the notes in front of it. kUnsupported: what the
// program says is wrong. kIo: a file cannot be written, or the program ended.
Result<json::Value> AskWriter(const WriterProgram& program,
                              std::span<const SharedBytes* const> memory, const std::string& line);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_EXTRACT_H_
