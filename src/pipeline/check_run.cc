#include "pipeline/check_run.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/number_text.h"

namespace plumbline::pipeline {
namespace {

// Whether nothing distinguishes the two sides, as far as they are recorded. Empty and zero tensors
// and masks of infinities prove nothing, so their verdict is not `same`; NaN is never equal.
bool AreEqual(const ComparedRow& row) {
  if (row.verdict == Verdict::kSame) return true;
  if (!row.target || !row.golden) return false;
  if (row.reason == "empty" || row.reason == "zero-both") {
    return row.target->shape == row.golden->shape;
  }
  return row.reason == "nonfinite-both" && row.target->shape == row.golden->shape &&
         row.tensor->mismatch_count == 0 &&
         row.target->statistics == row.golden->statistics;  // never of NaN
}

// Whether equal statistics are all there is: elements in another order have them too. Those of
// zeros and of no elements leave nothing else.
bool HidesElements(const CheckRule& rule, CompareMode mode, const ComparedRow& row) {
  return rule.metric->is_of_elements && mode == CompareMode::kStatistics && row.item().is_tensor &&
         row.reason != "empty" && row.reason != "zero-both";
}

using report::CiCase;
using report::CiOutcome;

constexpr size_t kListedFailures = 20;

const Waiver* FindWaiver(const CheckRules& rules, const CheckRule& rule, std::string_view name,
                         std::string_view today) {
  for (const Waiver& waiver : rules.waivers) {
    const bool counts = waiver.expires.empty() || std::string_view(waiver.expires) >= today;
    const bool fits = waiver.metric.empty() || waiver.metric == rule.metric->name;
    if (counts && fits && MatchesPattern(waiver.pattern, name)) return &waiver;
  }
  return nullptr;
}

// Not-a-number is never within a limit.
bool IsWithin(const CheckRule& rule, double value) {
  return rule.metric->is_lower_limit ? value >= rule.limit : value <= rule.limit;
}

std::string ValueText(const CheckRule& rule, double value) {
  if (std::isnan(value)) return "no number";
  if (rule.metric->name == "verdict") {
    return std::string(VerdictName(static_cast<Verdict>(static_cast<int>(value))));
  }
  return PythonFloat(value);
}

CiCase FailureOf(const CheckRule& rule, const ComparedRow& row, double value) {
  CiCase failure;
  failure.name = fmt::format("{} {}", row.item().name, rule.metric->name);
  failure.outcome = std::isnan(value) ? CiOutcome::kError : CiOutcome::kFail;
  failure.rule = std::isnan(value) ? "no-value" : std::string(rule.metric->name);
  const std::string why =
      std::isnan(value) && !row.reason.empty() ? fmt::format(" ({})", row.reason) : "";
  failure.message =
      fmt::format("{} is {}{}, {} {}", rule.metric->name, ValueText(rule, value), why,
                  rule.metric->is_lower_limit ? "below the limit" : "limit", rule.limit_text);
  return failure;
}

class Checker {
 public:
  Checker(const CheckRules& rules, CompareMode mode, std::string_view today)
      : rules_(rules), mode_(mode), today_(today) {
    rows_of_rule_.resize(rules.rules.size());
    failures_of_rule_.resize(rules.rules.size());
  }

  void Check(const ComparedRow& row) {
    const std::string& name = row.item().name;
    bool named = false;
    for (size_t i = 0; i < rules_.rules.size(); ++i) {
      const CheckRule& rule = rules_.rules[i];
      if (!MatchesPattern(rule.pattern, name)) continue;
      ++rows_of_rule_[i];
      named = true;
      if (!IsOverridden(i, name)) CheckRow(i, row);
    }
    if (!named) ++result_.unchecked;
  }

  CheckResult Finish() {
    for (size_t i = 0; i < rules_.rules.size(); ++i) {
      const CheckRule& rule = rules_.rules[i];
      if (failures_of_rule_[i] > 0) continue;
      CiCase item;
      item.name = fmt::format("rule {} {} {}", rule.pattern, rule.metric->name, rule.limit_text);
      if (rows_of_rule_[i] == 0) {
        item.outcome = CiOutcome::kError;
        item.rule = "rule-names-nothing";
        item.message = "no value of the recordings has such a name";
        ++result_.failed;
      }
      result_.report.cases.push_back(std::move(item));
    }
    return std::move(result_);
  }

 private:
  // Of several rules for one metric the last one counts.
  bool IsOverridden(size_t index, std::string_view name) const {
    for (size_t i = index + 1; i < rules_.rules.size(); ++i) {
      const CheckRule& later = rules_.rules[i];
      if (later.metric == rules_.rules[index].metric && MatchesPattern(later.pattern, name)) {
        return true;
      }
    }
    return false;
  }

  void CheckRow(size_t index, const ComparedRow& row) {
    const CheckRule& rule = rules_.rules[index];
    ++result_.checked;
    const double value = rule.metric->value(row);
    if (IsWithin(rule, value)) return;
    // Equal sides need no number: a cosine of scalars, a digest, a mask of -inf.
    const bool is_equal = std::isnan(value) && AreEqual(row);
    const bool is_hidden = HidesElements(rule, mode_, row);
    if (is_equal && !is_hidden) return;
    CiCase item = FailureOf(rule, row, value);
    if (is_hidden) item.message += ": record tensors to measure it";
    if (const Waiver* waiver = FindWaiver(rules_, rule, row.item().name, today_)) {
      item.outcome = CiOutcome::kSkipped;
      item.message += fmt::format("; waived: {}", waiver->reason);
      item.waiver = waiver->reason;
      ++result_.waived;
    } else {
      ++failures_of_rule_[index];
      ++result_.failed;
    }
    result_.report.cases.push_back(std::move(item));
  }

  const CheckRules& rules_;
  const CompareMode mode_;
  std::string_view today_;
  CheckResult result_;
  std::vector<uint64_t> rows_of_rule_, failures_of_rule_;
};

}  // namespace

CheckResult CheckComparison(const Comparison& comparison, const CheckRules& rules,
                            std::string_view today) {
  Checker checker(rules, comparison.mode, today);
  for (const ComparedRow& row : comparison.rows) checker.Check(row);
  CheckResult result = checker.Finish();
  result.report.suite = "plumb check";
  result.report.properties = {{"target", comparison.target_path},
                              {"baseline", comparison.golden_path}};
  return result;
}

std::string CheckText(const CheckResult& result) {
  std::string text =
      fmt::format("check {}: {} values checked, {} failed, {} waived, {} rows without rule\n",
                  result.failed == 0 ? "passed" : "failed", result.checked, result.failed,
                  result.waived, result.unchecked);
  size_t listed = 0;
  for (const CiCase& item : result.report.cases) {
    if (item.outcome == CiOutcome::kPass) continue;
    const bool waived = item.outcome == CiOutcome::kSkipped;
    if (++listed > kListedFailures) {
      return text + "  ...\n";
    }
    text += fmt::format("  {}: {}: {}\n", waived ? "waived" : "failed", OneLine(item.name),
                        OneLine(item.message));
  }
  return text;
}

}  // namespace plumbline::pipeline
