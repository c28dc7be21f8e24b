// The answer of `plumb watch` in lines of text, and the rules that it recommends.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/text/number_text.h"
#include "watch/points/watch_run.h"

namespace plumbline::watch {
namespace {

// What is to be recorded, or done, so that it can be judged.
std::string AdviceFor(Reason reason, const WatchReport& report) {
  switch (reason) {
    case kNan:
    case kInf:
      return "nonfinite: ignore in a rules file judges by the finite elements";
    case kNoPrev:
      return report.has_against
                 ? "no tensor of that rank, step and name in --against"
                 : "record at least two steps, or name an earlier run with --against";
    case kPrevNan:
    case kPrevInf:
      return "the earlier value is not finite";
    case kPrevShape:
      return "the earlier value has another shape";
    case kEmpty:
      return "tensors without elements";
    case kMissing:
      return "not recorded; " + report.tensors_advice;
    case kDType:
      return "elements of a type without numbers";
    case kStatisticsOnly:
      return "the recorded statistics do not decide it; " + report.tensors_advice;
    case kUnreadable:
      return "damaged or missing files; copy them again or run plumb recover";
    case kNanOrNone:
      return "every statistic is NaN from the first row on: no tensor was there, or it was NaN; "
             "the monitor's op nans tells";
  }
  return "";
}

std::string_view WordOf(TensorKinds kinds) {
  return (kinds & kWeight) != 0     ? "weight"
         : (kinds & kGradient) != 0 ? "gradient"
                                    : "output of an activation function";
}

// Why a rule had nothing to look at.
std::string Nothing(const Rule& rule, const WatchReport& report) {
  const bool has_kind = (rule.kinds & (report.seen_kinds | kAnyTensor)) != 0;
  std::string hint;
  if (rule.asks_operators) {
    hint = "needs a dump of static graphs with op_debug_mode";
  } else if (!has_kind) {
    hint = fmt::format("no {} was recorded", WordOf(rule.kinds));
    const bool is_of_calls = report.kind == "recorded calls";
    if (report.is_narrowed) {
      hint = fmt::format("no {} is among the tensors of --nodes, --steps and --ranks",
                         WordOf(rule.kinds));
    } else if (is_of_calls && (rule.kinds & kWeight) != 0) {
      hint += " (level L0 or mix has them)";
    } else if (is_of_calls && (rule.kinds & kGradient) != 0) {
      hint += " (data_mode backward)";
    }
  } else if (rule.on.only_trained && !report.has_trained) {
    hint = "needs weights of which a gradient or a moment was recorded";
  } else if (rule.at_first_step && !report.has_first_step) {
    hint = "looks at the first recorded step alone";
  } else {
    hint = fmt::format("nothing that was recorded is what its \"on\", --io{} name",
                       report.is_narrowed ? ", --nodes and --code" : " and --code");
  }
  return "selected nothing; " + hint;
}

}  // namespace

std::string FirstHitText(const WatchReport& report) {
  const WatchRow* hit = report.first_hit();
  if (hit == nullptr) {
    const RuleCounts total = report.Total();
    const std::string damage =
        report.unreadable_parts == 0
            ? ""
            : fmt::format(" in what could be read ({} damaged or missing)",
                          CountText(report.unreadable_parts, "part"));
    if (total.selected == 0) {
      return fmt::format("nothing watched{}: the rules selected nothing", damage);
    }
    const std::string_view unsure = damage.empty() ? "" : "not certain: ";
    const uint64_t unclear = total.reasons[std::countr_zero<uint16_t>(kNanOrNone)];
    const std::string maybe =
        unclear == 0 ? "" : fmt::format(" ({} all NaN, or without a tensor)", unclear);
    if (total.unjudged == total.selected) {
      return fmt::format("not certain: nothing could be evaluated{}{}", damage, maybe);
    }
    if (total.unjudged == 0) return fmt::format("{}no hit{}", unsure, damage);
    return fmt::format("{}no hit{}; {} of {} not evaluated{}", unsure, damage, total.unjudged,
                       total.selected, maybe);
  }
  return "first hit: " + HitText(report.rules[hit->rule], *hit);
}

std::string WatchText(const WatchReport& report) {
  std::string text = FirstHitText(report) + "\n";
  const WatchRow* hit = report.first_hit();
  if (hit != nullptr && !hit->source_line.empty()) {
    text += fmt::format("  called from: {}\n", hit->source_line);
  }
  text += fmt::format("  watched: {} of {}, {}, {}\n", CountText(report.tensors, "tensor"),
                      report.kind, CountText(report.steps, "step"),
                      CountText(report.ranks, "rank"));
  const RuleCounts total = report.Total();
  text += fmt::format("  all rules: {}\n", CountsText(total));
  for (size_t i = 0; i < report.rules.size(); ++i) {
    const RuleCounts& counts = report.counts[i];
    text += fmt::format("  {}: {}\n", report.rules[i].name,
                        counts.selected == 0 ? Nothing(report.rules[i], report)
                                             : CountsText(counts));
  }
  for (int i = 0; i < kReasonCount; ++i) {
    if (total.reasons[static_cast<size_t>(i)] == 0) continue;
    text += fmt::format("  {}: {}\n", ReasonWord(i),
                        AdviceFor(static_cast<Reason>(1 << i), report));
  }
  if (report.orders_by_record) {
    text += "  earlier values: by the order of recorded steps, as no table says which steps ran\n";
  }
  if (report.stopped) text += "  stopped behind the first step with a hit (--first)\n";
  return text;
}

const WatchRow* WatchReport::first_hit() const {
  // Of the most severe rules that hit.
  const WatchRow* first = nullptr;
  for (const WatchRow& row : rows) {
    if (row.verdict != Truth::kTrue) continue;
    const bool is_worse =
        first == nullptr || rules[row.rule].severity < rules[first->rule].severity;
    if (is_worse) first = &row;
    if (rules[first->rule].severity == Severity::kError) break;
  }
  return first;
}

RuleCounts WatchReport::Total() const {
  RuleCounts total;
  for (const RuleCounts& one : counts) total += one;
  return total;
}

bool WatchReport::has_unchecked() const {
  const bool has_empty_rule = std::ranges::any_of(
      counts, [](const RuleCounts& one) { return one.selected == 0 || one.unjudged > 0; });
  return has_empty_rule || unreadable_parts > 0;
}

std::vector<Rule> RecommendedRules() {
  // The ends are those of Tanh at 8.8 and of the logistic function at 16.2.
  const double tanh_end = std::tanh(8.8), sigmoid_end = 1 / (1 + std::exp(-16.2));
  struct Wanted {
    std::string name, text;
    std::vector<std::string> ops = {};
    std::vector<std::string> nodes = {};
    Severity severity = Severity::kError;
    bool only_trained = false;
  };
  const auto range = [](double start, double end, std::string_view check) {
    return fmt::format(
        "activation_range(range_start_inclusive={}, range_end_inclusive={}, {})",
        PythonFloat(start), PythonFloat(end), check);
  };
  const std::vector<Wanted> wanted = {
      // A bias that starts at 0 is usual.
      {"weight_initialization",
       "weight_initialization(zero_percentage_ge=100)",
       {},
       {"weight"},
       Severity::kWarning},
      {"weight_change_too_large", "weight_change_too_large(abs_mean_update_ratio_gt=1)"},
      {"weight_change_too_small",
       "weight_change_too_small(abs_mean_update_ratio_lt=1e-4)",
       {},
       {},
       Severity::kWarning,
       true},
      {"weight_not_changed",
       "weight_not_changed(rtol=1e-5, atol=1e-8)",
       {},
       {},
       Severity::kWarning,
       true},
      {"gradient_vanishing", "gradient_vanishing(abs_mean_lt=1e-9)"},
      {"tensor_overflow", "tensor_overflow"},
      {"tensor_all_zero",
       "tensor_all_zero(zero_percentage_ge=100)",
       {},
       {},
       Severity::kWarning},
      {"tanh_saturated", range(-tanh_end, tanh_end, "range_percentage_lt=0.1"), {"tanh"}},
      {"sigmoid_saturated", range(1 - sigmoid_end, sigmoid_end, "range_percentage_lt=0.1"),
       {"sigmoid"}},
      {"relu_dead", range(-1, 0, "range_percentage_gt=99.9"), {"relu", "reluv2"}}};
  std::vector<Rule> rules;
  for (const Wanted& one : wanted) {
    Result<Rule> rule = Rules::ParseRule(one.text);
    if (!rule) continue;
    rule->name = one.name;
    rule->on.ops = one.ops;
    rule->on.nodes = one.nodes;
    rule->severity = one.severity;
    rule->on.only_trained = one.only_trained;
    rules.push_back(*std::move(rule));
  }
  return rules;
}

}  // namespace plumbline::watch
