// What a pre-check found, as it is told: counts, the calls that are wrong, why others were not
// judged.

#ifndef PLUMBLINE_PRECHECK_PRECHECK_REPORT_H_
#define PLUMBLINE_PRECHECK_PRECHECK_REPORT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "precheck/outcome.h"
#include "precheck/result_rows.h"

namespace plumbline::precheck {

inline constexpr size_t kStatuses = 5;
using StatusCounts = std::array<uint64_t, kStatuses>;  // by CheckStatus

// A call that has a direction with an error, a warning or a skip.
struct NotPassed {
  size_t place = 0;  // in the recording
  CallOutcome outcome;
  // What is worse is larger: above 2 with an error, above 1 with a warning, else 0; the fraction
  // grows with the share of elements that are off.
  double severity = 0;
};

struct CauseCount {
  SkipCause cause = SkipCause::kUnsupportedType;
  uint64_t calls = 0;
  uint64_t not_judged = 0;  // of these the calls that count as skipped: nothing worse is known
  std::string example_call, example_detail;  // of the first one in the recording
  size_t example_place = 0;
};

// A call that an earlier run judged, of which the files say no more than this.
struct EarlierCall {
  size_t place = 0;  // in the recording
  std::string name;
  CheckStatus forward = CheckStatus::kNone, backward = CheckStatus::kNone;
  uint64_t outputs = 0;  // that were judged
  std::optional<Skip> skip;
};

// Thread-compatible.
class PrecheckReport {
 public:
  // Most calls of not_passed(): the worst ones stay.
  explicit PrecheckReport(size_t most_kept = 10000) : most_kept_(most_kept) {}

  void Add(size_t place, CallOutcome outcome);
  void AddEarlier(const EarlierCall& call);
  // Sorts not_passed(), the worst first, then as recorded. To be called after the last Add().
  void Finish();

  // Of calls: the worse one of the directions, an error before a warning before a skip.
  [[nodiscard]] const StatusCounts& calls() const { return calls_; }
  [[nodiscard]] const StatusCounts& forward() const { return forward_; }
  [[nodiscard]] const StatusCounts& backward() const { return backward_; }
  [[nodiscard]] uint64_t count(CheckStatus status) const {
    return calls_[static_cast<size_t>(status)];
  }
  [[nodiscard]] uint64_t all_calls() const;
  [[nodiscard]] uint64_t outputs_judged() const { return outputs_; }
  // Of these, those of which every element is zero on both sides; and the first one recorded.
  [[nodiscard]] uint64_t all_zero() const { return all_zero_; }
  [[nodiscard]] const std::string& all_zero_example() const { return all_zero_example_; }
  [[nodiscard]] uint64_t judged_calls() const;  // with a verdict; a skip is none
  // Calls that failed on the device and not on the CPU (IsDeviceFailure()), and the first of them.
  [[nodiscard]] uint64_t device_failures() const { return device_failures_; }
  [[nodiscard]] const std::string& device_failure() const { return device_failure_; }
  [[nodiscard]] uint64_t earlier() const { return earlier_; }
  // The first call of the recording that an earlier run found wrong; empty: none.
  [[nodiscard]] const std::string& earlier_error() const { return earlier_error_; }
  [[nodiscard]] uint64_t merged() const { return merged_; }
  // The most frequent first.
  [[nodiscard]] const std::vector<CauseCount>& causes() const { return causes_; }
  [[nodiscard]] const std::vector<NotPassed>& not_passed() const { return not_passed_; }
  [[nodiscard]] uint64_t left_out() const { return left_out_; }  // of not_passed()

  // Facts of the run, set by whoever runs it.
  std::string dump_json, framework, framework_version, device;
  std::string result_path, details_path;
  std::string error_data;          // directory; empty: none was written
  std::vector<std::string> files;  // beside the two csv files
  std::vector<std::string> warnings;
  std::string resume_options;  // what ResumeCommand() needs beside the files
  uint64_t planned_calls = 0;  // of the recording; 0: not known
  double seconds = 0;
  bool was_interrupted = false;

 private:
  void Count(CheckStatus forward, CheckStatus backward);
  void AddRow(size_t place, const OutputRow& row);
  void AddSkip(size_t place, const std::string& call, const Skip& skip, bool is_judged);
  void Trim();

  size_t most_kept_;
  StatusCounts calls_{}, forward_{}, backward_{};
  uint64_t outputs_ = 0, all_zero_ = 0, earlier_ = 0, merged_ = 0, left_out_ = 0;
  std::string all_zero_example_;  // name of the row
  size_t all_zero_place_ = 0;
  std::string earlier_error_;
  size_t earlier_error_place_ = 0;
  uint64_t device_failures_ = 0;
  std::string device_failure_;
  size_t device_failure_place_ = 0;
  std::vector<CauseCount> causes_;
  std::vector<NotPassed> not_passed_;
};

// The status that a call counts with.
CheckStatus CallStatus(CheckStatus forward, CheckStatus backward);
// Whether the report meets one of the conditions of --fail-on: "error" (or the device fails where
// the CPU does not: as bad as what it computes wrong), "warning" (or an error), "skip". Where
// nothing was judged, nothing shows that the device is right: each is met.
bool FailsOn(const PrecheckReport& report, std::span<const std::string> conditions);
// Whose columns the files have.
ResultForm FormOf(const PrecheckReport& report);
// Of one output, as NotPassed::severity.
double SeverityOf(const OutputRow& row);

// The row of a call that says the most about why it is no pass; null: no output was judged so.
const OutputRow* WorstRow(const CallOutcome& outcome);
// "12.5 % of elements off by more than 1 %, worst 0.31 against 0.29", or the row's message.
std::string ReasonText(const OutputRow& row);
// "Functional.softmax.3 backward output.0" of a row's name.
std::string OutputText(const std::string& row_name);

// "2 outputs are all zero on both sides, ...", what passes and proves little; empty: there is none.
std::string AllZeroText(const PrecheckReport& report);

// The command that makes a unit test of a call; empty: there is none for recordings of this kind,
// or the name of the call cannot be typed.
std::string ExtractCommand(const PrecheckReport& report, std::string_view call);
// The command that goes on with an interrupted run.
std::string ResumeCommand(const PrecheckReport& report);

// "wrong: Functional.softmax.3 ...", how an answer begins: the worst output, what failed on the
// device alone, or how many calls of the recording were judged and found right.
std::string FirstLine(const PrecheckReport& report);
// The lines of an answer; the first one is the answer: the worst API and why, or that there is
// none.
std::string AnswerText(const PrecheckReport& report);
// The same as one JSON object on one line.
std::string AnswerJson(const PrecheckReport& report);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_PRECHECK_REPORT_H_
