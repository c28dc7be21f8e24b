#include "compare/check_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/process/log.h"
#include "base/text/number_text.h"
#include "base/text/yaml_file.h"

namespace plumbline::compare {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double ValueOf(const Metric& metric) {
  const double* value = std::get_if<double>(&metric);
  return value == nullptr ? kNone : *value;
}

template <Metric TensorMetrics::*member>
double OfTensors(const ComparedRow& row) {
  return ValueOf((*row.tensor).*member);
}
template <size_t index>
double Difference(const ComparedRow& row) {
  return std::fabs(ValueOf(row.statistics().difference[index]));
}
template <size_t index>
double Percent(const ComparedRow& row) {
  return ValueOf(row.statistics().relative_percent[index]);
}
// What cannot be compared has no error, not one of zero.
double ErrorOf(const ComparedRow& row) {
  return row.verdict == Verdict::kNotComparable ? kNone : row.error;
}
double ErrorRatio(const ComparedRow& row) {
  if (ErrorOf(row) == 0) return 0;
  return row.expected > 0 ? ErrorOf(row) / row.expected : kNone;
}

constexpr std::array kMetrics = {
    CheckMetric{"error", ErrorOf},
    CheckMetric{"error_ratio", ErrorRatio},
    CheckMetric{"verdict",
                [](const ComparedRow& row) {
                  return row.verdict == Verdict::kNotComparable
                             ? kNone
                             : static_cast<double>(static_cast<int>(row.verdict));
                }},
    CheckMetric{"cosine", OfTensors<&TensorMetrics::cosine>, true, true},
    CheckMetric{"max_abs_error", OfTensors<&TensorMetrics::max_abs_error>, false, true},
    CheckMetric{"max_relative_error", OfTensors<&TensorMetrics::max_relative_error>, false, true},
    CheckMetric{"relative_l2", OfTensors<&TensorMetrics::relative_l2>, false, true},
    CheckMetric{"max_ulp", OfTensors<&TensorMetrics::max_ulp>, false, true},
    CheckMetric{"max_diff", Difference<0>},
    CheckMetric{"min_diff", Difference<1>},
    CheckMetric{"mean_diff", Difference<2>},
    CheckMetric{"norm_diff", Difference<3>},
    CheckMetric{"max_percent", Percent<0>},
    CheckMetric{"min_percent", Percent<1>},
    CheckMetric{"mean_percent", Percent<2>},
    CheckMetric{"norm_percent", Percent<3>},
};

// One YAML document with the place of what is wrong in it.
class Document {
 public:
  static Result<Document> Read(const std::string& path) {
    PL_TRY_ASSIGN(YamlFile file, YamlFile::Read(path, ErrorCode::kInvalidArgument));
    Document document(std::move(file));
    if (!document.root().IsMap()) {
      return document.Bad(document.root(), "expected a mapping at the top");
    }
    return document;
  }

  [[nodiscard]] Error Bad(const YAML::Node& node, std::string_view problem) const {
    return file_.Bad(node, problem);
  }

  // Every key of a mapping must be one of `known`.
  Status CheckKeys(const YAML::Node& map, std::initializer_list<std::string_view> known) const {
    if (!map.IsMap()) return Bad(map, "expected a mapping");
    for (const auto& entry : map) {
      const std::string key = entry.first.Scalar();
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      std::string expected;
      for (const std::string_view name : known) {
        expected += (expected.empty() ? "" : ", ") + std::string(name);
      }
      return Bad(entry.first, fmt::format("unknown key \"{}\" (expected {})", key, expected));
    }
    return {};
  }

  // A text; empty if the key is missing and not `required`.
  Result<std::string> Text(const YAML::Node& map, const char* key, bool required) const {
    const YAML::Node node = map[key];
    if (!node) {
      if (required) return Bad(map, fmt::format("{} is missing", key));
      return std::string();
    }
    if (!node.IsScalar() || node.Scalar().empty()) {
      return Bad(node, fmt::format("{} is no text", key));
    }
    return node.Scalar();
  }

  // The elements under a key of the top; none if it is missing.
  Result<std::vector<YAML::Node>> List(const char* key) const {
    std::vector<YAML::Node> elements;
    const YAML::Node list = root()[key];
    if (!list) return elements;
    if (!list.IsSequence()) return Bad(list, fmt::format("{} is no list", key));
    for (const YAML::Node& element : list) elements.push_back(element);
    return elements;
  }

  [[nodiscard]] const YAML::Node& root() const { return file_.root(); }

 private:
  explicit Document(YamlFile file) : file_(std::move(file)) {}
  YamlFile file_;
};

// Number of a limit; for the metric "verdict" the name of a verdict. NaN: neither.
double ParseLimit(const CheckMetric& metric, const std::string& text) {
  if (metric.name == "verdict") {
    for (const Verdict verdict : {Verdict::kSame, Verdict::kWithinNoise, Verdict::kSuspicious}) {
      if (text == VerdictName(verdict)) return static_cast<double>(static_cast<int>(verdict));
    }
    return kNone;
  }
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size() && std::isfinite(value) ? value : kNone;
}

Result<CheckRule> ParseRule(const Document& document, const YAML::Node& node) {
  PL_TRY(document.CheckKeys(node, {"name", "metric", "limit"}));
  CheckRule rule;
  PL_TRY_ASSIGN(rule.pattern, document.Text(node, "name", true));
  PL_TRY_ASSIGN(const std::string metric, document.Text(node, "metric", true));
  PL_TRY_ASSIGN(rule.limit_text, document.Text(node, "limit", true));
  rule.metric = FindCheckMetric(metric);
  if (rule.metric == nullptr) {
    std::string known;
    for (const CheckMetric& one : kMetrics)
      known += (known.empty() ? "" : ", ") + std::string(one.name);
    return document.Bad(node["metric"],
                        fmt::format("unknown metric \"{}\" (expected {})", metric, known));
  }
  rule.limit = ParseLimit(*rule.metric, rule.limit_text);
  if (std::isnan(rule.limit)) {
    return document.Bad(
        node["limit"],
        fmt::format("limit \"{}\" of {} is no limit (expected {})", rule.limit_text, metric,
                    metric == "verdict" ? "same, within noise or suspicious" : "a finite number"));
  }
  return rule;
}

// A day of the calendar as YYYY-MM-DD.
bool IsDate(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-dd";
  if (text.size() != kForm.size()) return false;
  std::array<unsigned, 3> numbers{};
  size_t at = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == 'd' ? !digit : text[i] != '-') return false;
    if (digit) {
      numbers[at] = numbers[at] * 10 + static_cast<unsigned>(text[i] - '0');
    } else {
      ++at;
    }
  }
  return std::chrono::year_month_day(std::chrono::year(static_cast<int>(numbers[0])),
                                     std::chrono::month(numbers[1]), std::chrono::day(numbers[2]))
      .ok();
}

Result<Waiver> ParseWaiver(const Document& document, const YAML::Node& node) {
  PL_TRY(document.CheckKeys(node, {"name", "metric", "reason", "expires"}));
  Waiver waiver;
  PL_TRY_ASSIGN(waiver.pattern, document.Text(node, "name", true));
  PL_TRY_ASSIGN(waiver.metric, document.Text(node, "metric", false));
  PL_TRY_ASSIGN(waiver.reason, document.Text(node, "reason", true));
  PL_TRY_ASSIGN(waiver.expires, document.Text(node, "expires", false));
  if (!waiver.metric.empty() && FindCheckMetric(waiver.metric) == nullptr) {
    return document.Bad(node["metric"], fmt::format("unknown metric \"{}\"", waiver.metric));
  }
  if (!waiver.expires.empty() && !IsDate(waiver.expires)) {
    return document.Bad(node["expires"], fmt::format("expires \"{}\" is no date (expected "
                                                     "YYYY-MM-DD)",
                                                     waiver.expires));
  }
  return waiver;
}

}  // namespace

const CheckMetric* FindCheckMetric(std::string_view name) {
  const auto* found = std::find_if(kMetrics.begin(), kMetrics.end(),
                                   [&](const CheckMetric& metric) { return metric.name == name; });
  return found == kMetrics.end() ? nullptr : found;
}

bool MatchesPattern(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, after_star = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;  // the star takes one character more
      t = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

Result<CheckRules> ReadCheckRules(const std::string& path) {
  PL_TRY_ASSIGN(const Document document, Document::Read(path));
  PL_TRY(document.CheckKeys(document.root(), {"rules", "waivers"}));
  CheckRules result;
  PL_TRY_ASSIGN(const std::vector<YAML::Node> rules, document.List("rules"));
  for (const YAML::Node& node : rules) {
    PL_TRY_ASSIGN(CheckRule rule, ParseRule(document, node));
    result.rules.push_back(std::move(rule));
  }
  if (result.rules.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: holds no rule (expected a list under \"rules\")", path));
  }
  PL_TRY_ASSIGN(const std::vector<YAML::Node> waivers, document.List("waivers"));
  for (const YAML::Node& node : waivers) {
    PL_TRY_ASSIGN(Waiver waiver, ParseWaiver(document, node));
    result.waivers.push_back(std::move(waiver));
  }
  return result;
}

Result<std::string> ChooseBaseline(const std::string& baseline, const Fingerprint& fingerprint) {
  const std::string list = JoinPath(baseline, "baselines.yaml");
  if (KindOf(list) == PathKind::kMissing) return baseline;
  PL_TRY_ASSIGN(const Document document, Document::Read(list));
  PL_TRY(document.CheckKeys(document.root(), {"baselines"}));
  PL_TRY_ASSIGN(const std::vector<YAML::Node> entries, document.List("baselines"));
  for (const YAML::Node& node : entries) {
    PL_TRY(document.CheckKeys(node, {"hardware", "framework", "version", "path"}));
    PL_TRY_ASSIGN(const std::string path, document.Text(node, "path", true));
    bool fits = true;
    for (const auto& [key, own] : {std::pair("hardware", &fingerprint.hardware),
                                   std::pair("framework", &fingerprint.framework),
                                   std::pair("version", &fingerprint.version)}) {
      PL_TRY_ASSIGN(const std::string pattern, document.Text(node, key, false));
      fits = fits && (pattern.empty() || MatchesPattern(pattern, *own));
    }
    if (fits) return path.starts_with("/") ? path : JoinPath(baseline, path);
  }
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: no baseline for hardware \"{}\", framework \"{}\", version \"{}\". "
                           "Record one and add it to the list.",
                           list, fingerprint.hardware, fingerprint.framework, fingerprint.version));
}

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

}  // namespace plumbline::compare
