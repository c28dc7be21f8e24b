// Results for continuous integration: cases that pass or fail, as JUnit XML and as SARIF 2.1.0.

#ifndef PLUMBLINE_REPORT_CI_REPORT_H_
#define PLUMBLINE_REPORT_CI_REPORT_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::report {

enum class CiOutcome : uint8_t {
  kPass,
  kFail,     // wrong numbers
  kError,    // could not be judged although it should have been
  kSkipped,  // nothing to judge, or waived
};

struct CiCase {
  std::string name;  // of a call, a rule or a property of the whole comparison
  CiOutcome outcome = CiOutcome::kPass;
  std::string rule;                   // stable code: "exceeds-noise", "no-golden", ...
  std::string message;                // one sentence; of a passing case a remark, or empty
  std::string details;                // lines below it, where there is no frame
  std::string frame;                  // "File PATH, line N, in ..."; empty if unknown
  bool is_warning = false;            // SARIF level "warning" instead of "error"
  bool is_note = false;               // "note"
  std::optional<std::string> waiver;  // of a skipped case that fails: why that does not count
};

struct CiReport {
  std::string suite;                                            // "plumb compare"
  std::vector<std::pair<std::string, std::string>> properties;  // names and values
  std::vector<CiCase> cases;

  [[nodiscard]] bool fails() const;  // a case fails or could not be judged
};

// One case per call, then "judged" and "complete", which fail where nothing was judged and where
// something is missing. Calls that are wrong because their inputs are fail with rule "inherited".
CiReport CiReportOf(const Comparison& comparison);

// Each file appears complete or not at all.
Status WriteJunit(const CiReport& report, const std::string& path);
// Failing cases, and waived ones as suppressed results. Those with rule "inherited" are left out:
// they follow from others.
Status WriteSarif(const CiReport& report, const std::string& path);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_CI_REPORT_H_
