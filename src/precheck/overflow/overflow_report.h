// What a run over recorded calls found out about overflow, as it is told and written.

#ifndef PLUMBLINE_PRECHECK_OVERFLOW_OVERFLOW_REPORT_H_
#define PLUMBLINE_PRECHECK_OVERFLOW_OVERFLOW_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "precheck/overflow/overflow_judge.h"

namespace plumbline::precheck {

struct OverflowReplayReport {
  std::string dump_json, device, framework_version, result_path;
  bool has_recorded_data = false;  // else inputs were drawn from statistics
  std::vector<OverflowRow> rows;   // in the order of the recording
  std::vector<std::string> warnings;
  bool was_interrupted = false;
  double seconds = 0;

  [[nodiscard]] uint64_t count(OverflowResult result) const;
};

// The answer and what it rests on, for people and for programs.
std::string AnswerText(const OverflowReplayReport& report);
std::string AnswerJson(const OverflowReplayReport& report);
// The file: API Name, Input Overflow, CPU Overflow, Device Overflow, Result, Message.
std::string OverflowCsv(const std::vector<OverflowRow>& rows);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_OVERFLOW_OVERFLOW_REPORT_H_
