// Logs of torch's DebugMode and torchtitan's dumps of numerics: text that says of every operator
// what it was called with and a number ("hash") of each tensor (docs/formats/debug_mode_log.md).

#ifndef PLUMBLINE_FORMATS_PYTORCH_DEBUG_MODE_LOG_H_
#define PLUMBLINE_FORMATS_PYTORCH_DEBUG_MODE_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json/dump_json.h"
#include "plumbline/record.h"
#include "plumbline/result.h"
#include "plumbline/run.h"

namespace plumbline::debug_mode {

enum class LogForm : uint8_t {
  kText,         // what debug_string() returns
  kJson,         // save_logs()
  kHashes,       // dump_tensor_hashes()
  kActivations,  // torchtitan: rank_0_activations.log
};

// By the beginning of the file; nothing: it is no such log, or no file.
std::optional<LogForm> FormOfLog(const std::string& path);
std::optional<LogForm> FormOfText(std::string_view beginning);

// What a log holds. Calls are forward calls: "Aten.add.Tensor.3.forward", launches of kernels
// "Triton.{kernel}.0.forward". Modules are entries without members; the parent of a call is the
// module around it.
struct LogFile {
  RunHeader header;
  std::vector<Call> calls;
  dump_json::CallTree tree;
  dump_json::StackTable stacks;
  RunLoss loss;
};

// kCorrupt with the line (of JSON: and the byte) of what is no part of such a log, and where it is
// cut; kUnsupported: a version of save_logs() that is not known; kInvalidArgument: a symbolic link;
// kNotFound, kIo. With `salvage` a cut log yields what is complete, and loss.truncated. `keep` as
// in dump_json::ReadDump(); the header is complete when all is read.
Result<LogFile> ReadLog(const std::string& path, bool salvage,
                        const dump_json::KeepEntry& keep = {});
// The same of a text in memory. Errors do not name a file.
Result<LogFile> ParseLog(std::string_view text, LogForm form, bool salvage,
                         const dump_json::KeepEntry& keep = {});

}  // namespace plumbline::debug_mode

#endif  // PLUMBLINE_FORMATS_PYTORCH_DEBUG_MODE_LOG_H_
