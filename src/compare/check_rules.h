// `plumb check`: the rules that a comparison has to fulfil.

#ifndef PLUMBLINE_COMPARE_CHECK_RULES_H_
#define PLUMBLINE_COMPARE_CHECK_RULES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/compare.h"
#include "report/ci_report.h"

namespace plumbline::compare {

// Rule files of `plumb check` (docs/reference/check.md).

// What a rule limits.
struct CheckMetric {
  std::string_view name;
  // Of a row; NaN where there is none. Verdicts are their number.
  double (*value)(const ComparedRow& row);
  bool is_lower_limit = false;  // cosine: the value must not fall below
  bool is_of_elements = false;  // statistics alone never tell it
};
// Null for an unknown name.
const CheckMetric* FindCheckMetric(std::string_view name);

struct CheckRule {
  std::string pattern;  // of row names; '*' stands for any text, '?' for one character
  const CheckMetric* metric = nullptr;
  double limit = 0;
  std::string limit_text;  // as the file has it
};

struct Waiver {
  std::string pattern;
  std::string metric;  // empty: every metric
  std::string reason;
  std::string expires;  // "2027-01-31", the last day that counts; empty: never
};

struct CheckRules {
  std::vector<CheckRule> rules;  // of several that match a row and a metric the last one counts
  std::vector<Waiver> waivers;
};

// kInvalidArgument for anything the format does not know, with the line.
Result<CheckRules> ReadCheckRules(const std::string& path);

// What a baseline was recorded on; texts are compared with the patterns of baselines.yaml.
struct Fingerprint {
  std::string hardware, framework, version;
};
// The recording that BASELINE stands for: itself, or, where it is a directory with a
// baselines.yaml, the `path` of the first entry whose patterns match. kNotFound if none does.
Result<std::string> ChooseBaseline(const std::string& baseline, const Fingerprint& fingerprint);

bool MatchesPattern(std::string_view pattern, std::string_view text);

// `plumb check`: a comparison held against rules.

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

}  // namespace plumbline::compare

#endif  // PLUMBLINE_COMPARE_CHECK_RULES_H_
