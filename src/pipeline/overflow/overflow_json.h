// JSON texts of an overflow report.

#ifndef PLUMBLINE_PIPELINE_OVERFLOW_OVERFLOW_JSON_H_
#define PLUMBLINE_PIPELINE_OVERFLOW_OVERFLOW_JSON_H_

#include <string>

#include "pipeline/overflow/overflow_check.h"

namespace plumbline {

// anomaly_analyze_{time}.json: upstream's structure, plumbline's keys behind upstream's.
Result<std::string> FormatAnomalies(const OverflowReport& report);
// overflow_trace_{time}.json: every origin, and every communication that carried bad values.
Result<std::string> FormatOverflowTrace(const OverflowReport& report);
// The answer for other programs: what `plumb overflow --json` prints.
Result<std::string> FormatOverflowResult(const OverflowReport& report);

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_OVERFLOW_OVERFLOW_JSON_H_
