#include "watch/perturb/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/process/log.h"
#include "base/text/number_text.h"
#include "config/perturbation_options.h"
#include "watch/perturb/noise.h"

namespace plumbline::perturb {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::string NumberText(double value) {
  std::string text;
  AppendGeneral(value, 6, text);
  return text;
}

std::string TextOf(const std::optional<Difference>& difference) {
  if (!difference) return "";
  if (!difference->word.empty()) return std::string(difference->word);
  return NumberText(difference->max_rel);
}

std::string ExpectedText(const Expected& expected) {
  if (!expected) return "";
  const bool is_finite = expected->word.empty() || expected->word == "symbol_flipping";
  return is_finite ? NumberText(expected->change) : std::string(expected->word);
}

// "mindspore.mint.div" of "Mint.div".
std::string MindSporeName(std::string_view api) {
  constexpr std::pair<std::string_view, std::string_view> kPrefixes[] = {
      {"Functional", "mindspore.ops."},
      {"Tensor", "mindspore.Tensor."},
      {"Mint", "mindspore.mint."},
      {"MintFunctional", "mindspore.mint.nn.functional."}};
  const std::string_view prefix = api.substr(0, api.find('.'));
  for (const auto& [own, theirs] : kPrefixes) {
    if (own == prefix) return std::string(theirs) + std::string(api.substr(prefix.size() + 1));
  }
  return {};
}

}  // namespace

Check::Check(Config config, bool is_mindspore)
    : config_(std::move(config)),
      is_mindspore_(is_mindspore),
      files_(config_.dump_path),
      preheat_(config_.perturbation.preheat_step, config_.perturbation.max_sample) {}

Result<std::unique_ptr<Check>> Check::Create(Config config, std::string_view framework) {
  const bool is_mindspore = framework == "mindspore";
  config.warnings.clear();
  if (is_mindspore) PL_TRY(settings::AllOf(settings::WrongOnMindSpore(config)));
  std::unique_ptr<Check> check(new Check(std::move(config), is_mindspore));
  const PerturbationConfig& asked = check->config();
  for (const std::string& entry : asked.scope.empty() ? asked.list : asked.scope) {
    PL_TRY_ASSIGN(NamePattern pattern,
                  NamePattern::Create(asked.scope.empty() ? "free_benchmark.list"
                                                          : "free_benchmark.scope",
                                      entry));
    check->listed_.push_back({std::move(pattern), 0});
  }
  const std::string& path = asked.threshold_file;
  if (path.empty()) return check;
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  if (Status loaded = check->preheat_.Load(text); !loaded) return loaded.error().In(path);
  check->has_thresholds_ = true;
  return check;
}

void Check::Begin(int64_t step, std::optional<int> rank) {
  has_begun_ = true;
  step_ = step;
  rank_ = rank;
  files_.BeginStep(step, rank);
  if (config().has_preheat) preheat_.BeginStep(step);
}

bool Check::Selects(const CheckedCall& call) {
  const PerturbationConfig& asked = config();
  if (asked.list.empty() && asked.scope.empty()) return true;
  std::string name = call.name;
  constexpr std::string_view kForward = ".forward";
  if (asked.is_backward && name.ends_with(kForward)) {
    name.replace(name.size() - kForward.size(), kForward.size(), ".backward");
  }
  bool selected = false;
  for (auto& [pattern, calls] : listed_) {
    bool hits = asked.scope.empty() ? pattern.Selects(name) : pattern.Names(name);
    if (!hits && is_mindspore_ && asked.scope.empty()) {
      hits = pattern.Names(MindSporeName(call.api));
    }
    calls += hits ? 1 : 0;
    selected |= hits;
  }
  return selected;
}

Preheat::Call Check::CountForPreheat(const std::string& api) {
  if (config().has_preheat) return preheat_.CountCall(api);
  return {.is_compared = true, .is_sampled = false, .number = 0, .calls = 0};
}

double Check::Threshold(const CheckedCall& call, std::optional<DType> dtype,
                        const std::string& dtype_text, Perturbation mode) const {
  const double fixed = ThresholdOf(dtype, mode);
  if (!config().has_preheat && !has_thresholds_) return fixed;
  if (!config().has_preheat && !preheat_.Knows(call.api, dtype_text)) return fixed;
  return preheat_.ThresholdOf(call.api, dtype_text, fixed);
}

RatioRule Check::Rule(DType second) const {
  constexpr double kBackward = 1e-3;
  const bool is_fixed = config().is_backward && !is_mindspore_;
  return {.tolerance = is_fixed ? kBackward : ToleranceOf(second),
          .sees_non_finite = config().sees_non_finite,
          .is_mindspore = is_mindspore_};
}

bool Check::WantsExpected(const Comparison& comparison) {
  constexpr uint64_t kAlways = 2;
  constexpr uint64_t kShare = 64;
  Tally& tally = tallies_[{comparison.call.api, comparison.mode}];
  double change = 0;
  for (const OutputRow& row : comparison.rows) {
    if (row.difference) change = std::max(change, row.difference->change);
  }
  const bool is_new = tally.estimates < kAlways || change > 2 * tally.estimated_change;
  const bool is_cheap =
      estimated_elements_ + comparison.elements <= compared_elements_ / kShare;
  if (!is_new && !is_cheap) return false;
  if (!is_new) estimated_elements_ += comparison.elements;
  ++tally.estimates;
  tally.estimated_change = std::max(tally.estimated_change, change);
  return true;
}

void Check::AddSample(const Comparison& comparison, bool agrees_with_cpu) {
  preheat_.AddSample(comparison.call.api, comparison.dtype,
                     {comparison.ratio, agrees_with_cpu, comparison.default_threshold});
}

std::string Check::RankText() const {
  if (!rank_) return is_mindspore_ ? "" : "0";
  return std::to_string(*rank_);
}

std::string_view Check::StageText() const {
  return config().is_backward ? "backward" : "forward";
}

// Up to 4 times what the operator itself makes of the change, and what the threshold forgives, is
// explained: the change of a right implementation also holds its rounding.
double Check::ExcessOf(const Comparison& comparison, const OutputRow& row,
                       const Expected& expected) {
  constexpr double kSlack = 4;
  if (!row.difference || !expected) return kInfinite;
  const std::string_view word = row.difference->word;
  if (word == "nan_mismatch" || word == "inf_mismatch") {
    return word == expected->word ? 0 : kInfinite;
  }
  if (!word.empty() && word != "symbol_flipping") return kInfinite;
  const double forgiven = std::max(comparison.default_threshold - 1, 1e-7);
  return row.difference->change / (kSlack * expected->change + forgiven);
}

void Check::AddRow(const OutputRow& row, const Expected& expected, double excess, Tally* tally) {
  const bool is_word = row.difference && !row.difference->word.empty();
  const double size = !row.difference ? 0 : is_word ? kInfinite : row.difference->max_rel;
  if (tally->worst.empty() || size > tally->max_rel) {
    tally->max_rel = size;
    tally->worst = TextOf(row.difference);
  }
  if (tally->expected.empty() || excess > tally->excess) {
    tally->excess = excess;
    tally->expected = ExpectedText(expected);
  }
}

void Check::Report(const Comparison& comparison, const Expected& expected) {
  has_news_ = true;
  compared_elements_ += comparison.elements;
  Tally& tally = tallies_[{comparison.call.api, comparison.mode}];
  ++tally.calls;
  if (comparison.rows.empty()) return;
  ++tally.inconsistent;
  if (tally.first_step < 0) {
    tally.first_step = step_;
    tally.first_number = comparison.call.number;
  }
  bool is_explained = expected.has_value();
  for (const OutputRow& row : comparison.rows) {
    const double excess = ExcessOf(comparison, row, expected);
    is_explained &= excess <= 1;
    // Without an estimate nothing is known, which is no reason to come first.
    AddRow(row, expected, expected || !row.difference ? excess : 0, &tally);
    const std::string index = row.index ? std::to_string(*row.index) : "";
    const bool has_number = row.difference && (comparison.fills_max_rel || row.dtype.size() > 0);
    const std::string cells[] = {RankText(),
                                 std::string(PerturbationName(comparison.mode)),
                                 std::string(StageText()),
                                 std::to_string(step_),
                                 comparison.call.name,
                                 has_number ? TextOf(row.difference) : "",
                                 row.dtype,
                                 row.shape,
                                 index,
                                 ExpectedText(expected)};
    files_.Append(kRowsName, RowColumns(), CsvLine(std::span<const std::string>(cells)));
  }
  if (!expected) ++tally.unknown;
  if (expected && !is_explained) ++tally.unexplained;
}

void Check::Skip(const CheckedCall& call, Perturbation mode, std::string_view reason) {
  has_news_ = true;
  Tally& tally = tallies_[{call.api, mode}];
  ++tally.skipped;
  const auto known = tally.reasons.find(reason);
  if (known != tally.reasons.end()) {
    ++known->second;
  } else if (tally.reasons.size() < 16) {  // texts may hold numbers
    tally.reasons.emplace(std::string(reason), 1);
  }
}

void Check::Fixed(const CheckedCall& call, const Replacement& replacement) {
  has_news_ = true;
  Tally& tally = tallies_[{call.api, config().modes.front()}];
  ++tally.calls;
  ++tally.fixed;
  const double share = replacement.elements == 0
                           ? 0
                           : static_cast<double>(replacement.changed) /
                                 static_cast<double>(replacement.elements);
  const std::string cells[] = {RankText(), std::to_string(step_), call.name,
                               NumberText(replacement.max_abs), NumberText(share)};
  files_.Append(kFixName, FixColumns(), CsvLine(std::span<const std::string>(cells)));
}

void Check::EndStep() {
  if (!has_begun_) return;
  if (std::exchange(has_news_, false)) WriteSummary();
  if (config().has_preheat && preheat_.is_over() && !std::exchange(wrote_thresholds_, true)) {
    files_.Replace(kThresholdName, preheat_.Text());
    LogInfo(fmt::format("perturbation check: the preheat is over, thresholds are in {}",
                        JoinPath(files_.run_directory(), kThresholdName)));
  }
}

// What the condition of the operator does not explain comes first, what was not compared last.
void Check::WriteSummary() {
  std::vector<std::pair<const Key*, const Tally*>> order;
  for (const auto& [key, tally] : tallies_) order.emplace_back(&key, &tally);
  const auto rank = [](const Tally& tally) {
    const int group = tally.unexplained > 0 ? 0 : tally.inconsistent > 0 ? 1 : tally.calls > 0 ? 2 : 3;
    return std::tuple(group, -tally.excess, -tally.max_rel);
  };
  std::ranges::stable_sort(order, [&](const auto& a, const auto& b) {
    return rank(*a.second) < rank(*b.second);
  });
  std::string text = CsvLine(SummaryColumns());
  for (const auto& [key, tally] : order) {
    const auto most = std::ranges::max_element(tally->reasons, {}, [](const auto& one) {
      return one.second;
    });
    const bool any = tally->inconsistent > 0;
    const bool has_excess = any && !tally->expected.empty();
    const std::string cells[] = {
        std::get<0>(*key),
        std::string(PerturbationName(std::get<1>(*key))),
        std::string(StageText()),
        std::to_string(tally->calls),
        std::to_string(tally->inconsistent),
        tally->worst,
        any ? std::to_string(tally->first_step) : "",
        any ? std::to_string(tally->first_number) : "",
        std::to_string(tally->unexplained),
        tally->expected,
        has_excess ? NumberText(tally->excess) : "",
        std::to_string(tally->skipped),
        most == tally->reasons.end() ? "" : most->first};
    text += CsvLine(std::span<const std::string>(cells));
  }
  files_.Replace(kSummaryName, text);
}

void Check::LogAnswer() const {
  uint64_t calls = 0, inconsistent = 0, unexplained = 0, unknown = 0, skipped = 0, fixed = 0;
  for (const auto& [key, tally] : tallies_) {
    calls += tally.calls;
    inconsistent += tally.inconsistent;
    unexplained += tally.unexplained;
    unknown += tally.unknown;
    skipped += tally.skipped;
    fixed += tally.fixed;
  }
  const std::string where = JoinPath(files_.run_directory(), kSummaryName);
  const std::string left = skipped == 0 ? "" : fmt::format(", {} not examined", skipped);
  if (config().fixes) {
    LogInfo(fmt::format("perturbation check: the outputs of {} were replaced{}. See {}",
                        CountText(fixed, "call"), left, where));
  } else if (calls == 0) {
    LogWarning(fmt::format("perturbation check: no call was compared{}. See {}", left, where));
  } else if (inconsistent == 0) {
    LogInfo(fmt::format("perturbation check: {} compared, no output moved too far{}. See {}",
                        CountText(calls, "call"), left, where));
  } else {
    const std::string guess =
        unknown == 0 ? "" : fmt::format(", {} without an estimate of that", unknown);
    LogWarning(fmt::format("perturbation check: {} of {} moved too far, {} more than the "
                           "operator's own condition explains{}{}. See {}",
                           inconsistent, CountText(calls, "compared call"), unexplained, guess,
                           left, where));
  }
  for (const auto& [pattern, hits] : listed_) {
    if (hits > 0) continue;
    LogWarning(fmt::format("perturbation check: list: no call is named {}", pattern.text()));
  }
  if (files_.lost_lines() > 0) {
    LogLoss(fmt::format("perturbation check: {} could not be written",
                        CountText(files_.lost_lines(), "row")));
  }
}

void Check::Close() {
  if (!has_begun_) return;
  EndStep();
  LogAnswer();
  has_begun_ = false;
}

}  // namespace plumbline::perturb
