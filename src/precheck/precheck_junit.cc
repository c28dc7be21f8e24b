// The pre-check for continuous integration: a test case for each direction of a call.

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "precheck/precheck_files.h"
#include "precheck/result_rows.h"
#include "report/ci_report.h"

namespace plumbline::precheck {
namespace {

using report::CiCase;
using report::CiOutcome;
using report::CiReport;

// Outputs of one direction that are no pass.
struct Failures {
  double severity = -1;
  std::string reason;  // of the worst one
  std::string lines;   // of all
};
// By the name of a direction: "Functional.softmax.3.backward".
using FailuresByCase = std::unordered_map<std::string, Failures>;

Result<FailuresByCase> ReadFailures(const PrecheckReport& report) {
  FailuresByCase failures;
  const auto add = [&](DetailsRow& read) -> plumbline::Status {
    const OutputRow& row = read.output;
    if (row.status == Status::kPass || row.status == Status::kNone) return {};
    const size_t end = row.name.rfind(".output.");
    Failures& of_case = failures[row.name.substr(0, end)];
    if (SeverityOf(row) > of_case.severity) {
      of_case.severity = SeverityOf(row);
      of_case.reason = fmt::format("{}: {}", OutputText(row.name), ReasonText(row));
    }
    of_case.lines += fmt::format("{}: {}\n{}\n", row.name, StatusWord(row.status), row.message);
    return {};
  };
  PL_TRY(VisitDetails(report.details_path, DetailsHeader(FormOf(report)), add));
  return failures;
}

class Cases {
 public:
  Cases(const PrecheckReport& report, const FailuresByCase& failures, CiReport& out)
      : report_(report), failures_(failures), out_(out) {}

  // Nothing to judge is no case, unless the call has nothing at all.
  void Add(const ResultRow& row, std::string_view direction, Status status) {
    if (status == Status::kNone) return;
    CiCase item;
    item.name = fmt::format("{}.{}", row.call, direction);
    const auto at = failures_.find(item.name);
    const Failures* const failures = at == failures_.end() ? nullptr : &at->second;
    switch (status) {
      case Status::kError:
        item.outcome = CiOutcome::kFail;
        item.rule = "error";
        break;
      case Status::kSkip:
        item.outcome = CiOutcome::kSkipped;
        item.message = row.message;
        break;
      case Status::kPass:
      case Status::kWarning:
      case Status::kNone:
        break;
    }
    if (failures != nullptr) {
      if (status != Status::kSkip || item.message.empty()) item.message = failures->reason;
      if (status == Status::kError) item.details = failures->lines + Command(row.call);
    }
    if (status == Status::kWarning) item.message = "Warning: " + item.message;
    // A pass has nothing to remark on but warnings.
    if (status == Status::kPass) item.message.clear();
    out_.cases.push_back(std::move(item));
  }

 private:
  [[nodiscard]] std::string Command(const std::string& call) const {
    const std::string command = ExtractCommand(report_, call);
    return command.empty() ? command : "as a test: " + command + "\n";
  }

  const PrecheckReport& report_;
  const FailuresByCase& failures_;
  CiReport& out_;
};

// Of the run as a whole; green files without a judged call would be read as a pass.
void AddWhole(const PrecheckReport& report, CiReport& out) {
  const uint64_t judged = report.count(Status::kPass) + report.count(Status::kWarning) +
                          report.count(Status::kError);
  const auto add = [&](std::string_view name, std::string_view rule) {
    CiCase& item = out.cases.emplace_back();
    item.name = fmt::format("pre-check {}", name);
    item.outcome = CiOutcome::kError;
    item.rule = rule;
    item.message = FirstLine(report);
  };
  if (judged == 0) add("judged", "not-judged");
  if (report.was_interrupted) add("complete", "interrupted");
}

}  // namespace

plumbline::Status WriteJunit(const PrecheckReport& report, const std::string& path) {
  CiReport out;
  out.suite = "plumb precheck";
  out.properties = {{"recording", report.dump_json},
                    {"device", report.device},
                    {"framework", fmt::format("{} {}", report.framework, report.framework_version)},
                    {"answer", FirstLine(report)}};
  PL_TRY_ASSIGN(const FailuresByCase failures, ReadFailures(report));
  Cases cases(report, failures, out);
  PL_TRY(VisitResults(report.result_path, [&](const ResultRow& row) -> plumbline::Status {
    cases.Add(row, "forward", row.forward);
    cases.Add(row, "backward", row.backward);
    return {};
  }));
  AddWhole(report, out);
  return report::WriteJunit(out, path);
}

}  // namespace plumbline::precheck
