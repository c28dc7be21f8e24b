// `op_generate` of upstream: one recorded call as a program that runs it on a device and in raised
// precision on the CPU, and prints how far apart the two are.

#ifndef PLUMBLINE_PRECHECK_OP_SCRIPT_H_
#define PLUMBLINE_PRECHECK_OP_SCRIPT_H_

#include <cstdint>
#include <string>

#include "plumbline/result.h"

namespace plumbline::precheck {

// What its configuration file says (upstream's config_op.json).
struct OpScriptConfig {
  std::string dump_json;     // empty: `extract_path` holds the call already
  std::string api;           // "Functional.softmax.3"
  std::string extract_path;  // where the call's record is written, or read from
  bool is_backward = false;
  bool has_real_data = false;
  uint64_t seed = 1234;
  int64_t repeats = 1;
};

// kInvalidArgument names the key, what stands there and what was expected; kNotFound, kCorrupt,
// kIo.
Result<OpScriptConfig> ReadOpScriptConfig(const std::string& path);

// Writes `<output_dir>/<call>.<direction>.py` with the tensors beside it; the path of the program.
// `python`: the interpreter; empty: FindPython(). kNotFound: the call is not in the recording.
// kInvalidArgument: the file with the record holds something else than one call. kUnsupported: it
// cannot be run again.
Result<std::string> WriteOpScript(const OpScriptConfig& config, const std::string& output_dir,
                                  const std::string& python);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_OP_SCRIPT_H_
