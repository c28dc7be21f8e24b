// Rule files of `plumb check` (docs/reference/check.md).

#ifndef PLUMBLINE_PIPELINE_CHECK_RULES_H_
#define PLUMBLINE_PIPELINE_CHECK_RULES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CHECK_RULES_H_
