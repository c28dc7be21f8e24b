// Logs of torch's DebugMode: any bytes are calls or an error, never a crash. The first byte chooses
// the form. What is read has a parent and a name for every call, and no name twice; with `salvage`
// no cut log is an error.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unordered_set>

#include "formats/pytorch/debug_mode_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using plumbline::debug_mode::LogForm;
  if (size == 0) return 0;
  constexpr LogForm kForms[] = {LogForm::kText, LogForm::kJson, LogForm::kHashes,
                                LogForm::kActivations};
  const LogForm form = kForms[data[0] % 4];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  (void)plumbline::debug_mode::FormOfText(text);
  const auto log = plumbline::debug_mode::ParseLog(text, form, /*salvage=*/false);
  const auto saved = plumbline::debug_mode::ParseLog(text, form, /*salvage=*/true);
  if (!log) return 0;
  if (!saved || saved->calls.size() != log->calls.size() || saved->loss.truncated) std::abort();
  if (log->tree.rows.size() != log->calls.size()) std::abort();
  std::unordered_set<std::string> names;
  for (const plumbline::Call& call : log->calls) {
    if (!names.insert(call.name).second) std::abort();
  }
  return 0;
}
