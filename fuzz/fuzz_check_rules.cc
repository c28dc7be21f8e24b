// The YAML files of `plumb check` and `plumb merge`: every reader on the same bytes.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "compare/check_rules.h"
#include "input_file.h"
#include "ranks/merge_results.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string& path = InputFile(data, size);
  if (const auto rules = plumbline::compare::ReadCheckRules(path)) {
    for (const auto& rule : rules->rules) {
      if (rule.metric == nullptr || !std::isfinite(rule.limit)) std::abort();
      (void)plumbline::compare::MatchesPattern(rule.pattern, "Torch.add.0.forward.output.0");
    }
  }
  if (const auto config = plumbline::ranks::ReadMergeConfig(path)) {
    if (config->apis.empty()) std::abort();
  }
  return 0;
}
