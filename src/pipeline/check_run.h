// `plumb check`: a comparison held against rules.

#ifndef PLUMBLINE_PIPELINE_CHECK_RUN_H_
#define PLUMBLINE_PIPELINE_CHECK_RUN_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "pipeline/check_rules.h"
#include "report/ci_report.h"

namespace plumbline::pipeline {

struct CheckResult {
  report::CiReport report;  // a case per rule that holds, and one per value that fails or is waived
  uint64_t checked = 0;     // values held against a limit
  uint64_t failed = 0;      // above their limit, or without a number
  uint64_t waived = 0;
  uint64_t unchecked = 0;  // rows that no rule names
};

// `today` ("2026-11-21") decides which waivers still count. A value that is missing, NaN or not
// comparable fails, unless both sides are equal. A rule that names no row fails.
CheckResult CheckComparison(const Comparison& comparison, const CheckRules& rules,
                            std::string_view today);

// What `plumb check` prints: "check passed: ..." or "check failed: ...", then the failures.
std::string CheckText(const CheckResult& result);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CHECK_RUN_H_
