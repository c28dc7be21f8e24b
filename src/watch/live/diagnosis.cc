#include "watch/live/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace plumbline::watch {
namespace {

// How many steps the past holds, and how many must be known before a rule speaks.
constexpr size_t kWindow = 20;
constexpr uint64_t kKnown = 20, kFewKnown = 10;
constexpr size_t kDigestWindow = 64;
// A single gradient or output must stand this far above the largest of the window, twice in a row;
// most gradients together this far. Gradients of single steps are often several times the usual.
constexpr double kAlone = 20, kTogether = 3, kMost = 0.8;
constexpr double kLossJump = 4, kLossOfHighest = 0.25;
constexpr double kWeightJump = 3;
constexpr double kRateJump = 4, kDecayJump = 5, kBetaJump = 0.04;
// Growth without end: by this factor at each of so many steps, and by that much in all.
constexpr double kGrowth = 1.15, kGrowthInAll = 10;
constexpr uint64_t kGrowthSteps = 5;
constexpr double kDead = 0.999, kNotDead = 0.95, kSparse = 0.3;
constexpr uint64_t kMovedBefore = 15;
// A schedule ends near 0: below this part of the highest rate an update of a weight near 1 may be
// less than half a unit of its last digit.
constexpr double kLowRate = 0.01;
constexpr double kStateTolerance = 0.1;
constexpr uint64_t kMostSkipped = 10, kMostHeld = 5;
// What stays so for so many steps, and several times as long as ever before, has come to stay:
// layers that are left out of single steps, or branches that are taken now and then, do not.
constexpr uint64_t kLasting = 6, kLongerThanEver = 3;
// A norm that left its past behind more than so many steps ago has risen slowly.
constexpr uint64_t kQuickRise = 8;
// Of the largest gradient of a step: below, a gradient is what rounding left, as of a bias in front
// of a normalisation.
constexpr double kNegligible = 1e-5, kSmall = 1e-3;
// Of the norm of a parameter: steps below are lost in float32's rounding (2^-24) in parts.
constexpr double kLostStep = 1e-5;
// Parameters of fewer elements come back to earlier values by themselves; of more they do not, nor
// when their bounds do, which clamped ones have in common with earlier steps.
constexpr double kFewElements = 8, kManyElements = 10'000;
constexpr int64_t kClampedSteps = 3;
constexpr double kAtBounds = 0.9999;  // of the norm if every element were the largest

double Largest(const std::deque<double>& values) {
  return values.empty() ? 0 : *std::ranges::max_element(values);
}
double MeanOf(const std::deque<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void Push(std::deque<double>& values, double value) {
  values.push_back(value);
  if (values.size() > kWindow) values.pop_front();
}

bool IsNonFinite(const TensorValues& values) {
  return values.of(Op::kNans) > 0 || values.of(Op::kInfs) > 0;
}

std::string CountsOf(const TensorValues& values) {
  const double nans = values.of(Op::kNans);
  const double infs = values.of(Op::kInfs);
  if (nans > 0 && infs > 0) return "NaN and infinity";
  return nans > 0 ? "NaN" : "infinity";
}

// "fc1" of "fc1.weight" and of "fc1.output".
std::string PlaceOf(MonitorKind kind, const std::string& name) {
  if (kind == MonitorKind::kOther) return "";
  const size_t point = name.rfind('.');
  return point == std::string::npos ? name : name.substr(0, point);
}

double ElementsOf(const TensorValues& values) {
  double count = 1;
  for (const int64_t size : values.shape) count *= static_cast<double>(size);
  return count;
}

// Where a row stands in the flow of a step: parameters, outputs, the loss, gradients, momenta.
uint64_t PositionOf(MonitorKind kind, const Row& row) {
  const uint64_t place = kind == MonitorKind::kParameter         ? 0
                         : kind == MonitorKind::kActivation      ? 1
                         : kind == MonitorKind::kOther           ? 2
                         : kind == MonitorKind::kReducedGradient ? 3
                                                                 : 4;
  return place << 32 | row.call;
}

std::string_view WordOf(MonitorKind kind) {
  switch (kind) {
    case MonitorKind::kReducedGradient:
      return "the gradient of ";
    case MonitorKind::kActivation:
      return "";
    case MonitorKind::kOther:
      return "the ";
    default:
      return "parameter ";
  }
}

// In the order of Fault.
constexpr std::array<std::string_view, 14> kFaultNames = {
    "setting",
    "gradients-not-cleared",
    "same-batch",
    "ranks-diverged",
    "stale-weight",
    "weight-jump",
    "non-finite",
    "momentum",
    "frozen",
    "dead-gradient",
    "dead-activation",
    "activation",
    "loss",
    "gradient",
};

}  // namespace

std::string_view NameOf(Fault fault) { return kFaultNames[static_cast<size_t>(fault)]; }

std::optional<Fault> FaultNamed(std::string_view name) {
  const auto found = std::ranges::find(kFaultNames, name);
  if (found == kFaultNames.end()) return std::nullopt;
  return static_cast<Fault>(found - kFaultNames.begin());
}

bool IsEarlier(const Finding& a, const Finding& b) {
  if (a.step != b.step) return a.step < b.step;
  if (a.fault != b.fault) return a.fault < b.fault;
  return a.position < b.position;
}

Diagnosis::Past& Diagnosis::PastOf(MonitorKind kind, const Row& row) {
  const std::string name =
      row.micro_step == 0 ? row.name->text : fmt::format("{}:{}", row.name->text, row.micro_step);
  Past& past = past_[{static_cast<size_t>(kind), name}];
  ++past.seen;
  return past;
}

void Diagnosis::Run::Take(bool is_so, int64_t step) {
  if (is_so) {
    if (steps++ == 0) since = step;
    return;
  }
  longest = std::max(longest, steps);
  steps = 0;
}

bool Diagnosis::Run::is_lasting() const {
  return steps >= kLasting && steps > kLongerThanEver * longest;
}

Finding Diagnosis::FindingOf(Fault fault, int64_t step, MonitorKind kind, const Row& row,
                             std::string text) const {
  const std::string& name = row.name->text;
  return {fault, step, name, PlaceOf(kind, name), std::move(text), PositionOf(kind, row), false};
}

void Diagnosis::Report(Fault fault, int64_t step, MonitorKind kind, const Row& row,
                       std::string text) {
  if (!reported_.emplace(fault, row.name->text).second) return;
  found_.push_back(FindingOf(fault, step, kind, row, std::move(text)));
}

std::optional<double> Diagnosis::Setting(std::string_view name) const {
  const auto found = settings_.find(name);
  return found == settings_.end() ? std::nullopt : std::optional(found->second);
}

void Diagnosis::LookForNonFinite(MonitorKind kind, const Row& row) {
  if (!IsNonFinite(row.values)) return;
  std::string text =
      fmt::format("{}{} holds {}", WordOf(kind), row.name->text, CountsOf(row.values));
  // A scaler makes the loss infinite as well before it skips the step.
  const bool may_be_skipped = kind == MonitorKind::kReducedGradient ||
                              (kind == MonitorKind::kOther && !(row.values.of(Op::kNans) > 0));
  if (!may_be_skipped) return Report(Fault::kNonFinite, step_, kind, row, std::move(text));
  unconfirmed_.push_back(FindingOf(Fault::kNonFinite, step_, kind, row, std::move(text)));
}

// Masks are infinite on purpose, from the first steps on; what becomes infinite later is not.
void Diagnosis::LookForInfinity(const Row& row, Past& past) {
  constexpr MonitorKind kKind = MonitorKind::kActivation;
  if (!(row.values.of(Op::kInfs) > 0)) return;
  Finding finding = FindingOf(Fault::kNonFinite, step_, kKind, row,
                              fmt::format("{} holds infinity", row.name->text));
  finding.is_suspicion = true;
  if (past.may_be_infinite) return;
  const bool is_mask = !(row.values.of(Op::kMax) > 0 && std::isinf(row.values.of(Op::kMax)));
  if (past.seen == 1 || (is_mask && past.seen <= kFewKnown)) {
    past.may_be_infinite = true;
    if (!is_mask) tolerated_.push_back(std::move(finding));
  } else if (reported_.emplace(finding.fault, finding.name).second) {
    found_.push_back(std::move(finding));
  }
}

void Diagnosis::LookAtSetting(const Row& row) {
  const std::string& name = row.name->text;
  Past& past = PastOf(MonitorKind::kOther, row);
  const double value = row.values.of(Op::kMean);
  settings_[name] = value;
  const bool is_rate = name.starts_with("lr.");
  const bool is_decay = name.starts_with("weight_decay.");
  const bool is_known = past.seen > kFewKnown;
  const bool jumped = is_rate    ? past.highest > 0 && value > kRateJump * past.highest
                      : is_decay ? past.last > 0 && value > kDecayJump * past.last
                                 : std::abs(value - past.last) >= kBetaJump;
  if (is_known && jumped) {
    Report(Fault::kSetting, step_, MonitorKind::kOther, row,
           fmt::format("{} of the optimizer went from {:.6g} to {:.6g}",
                       is_rate ? "the learning rate" : name.substr(0, name.find('.')), past.last,
                       value));
  }
  past.last = value;
  past.highest = std::max(past.highest, value);
  if (is_rate) highest_rate_ = std::max(highest_rate_, value);
}

bool Diagnosis::HardlyLearns() const {
  double rate = 0;
  for (const auto& [name, value] : settings_) {
    if (name.starts_with("lr.")) rate = std::max(rate, value);
  }
  return rate < kLowRate * highest_rate_;
}

void Diagnosis::LookAtLoss(const Row& row) {
  LookForNonFinite(MonitorKind::kOther, row);
  Past& past = PastOf(MonitorKind::kOther, row);
  const double loss = row.values.of(Op::kMean);
  loss_ = loss;
  if (!std::isfinite(loss)) return;
  const double before = Largest(past.norms);
  if (past.seen > kKnown && before > 0 && loss > kLossJump * before &&
      loss > kLossOfHighest * past.highest) {
    Report(Fault::kLoss, step_, MonitorKind::kOther, row,
           fmt::format("the loss is {:.6g}; in the {} steps before it was at most {:.6g}", loss,
                       past.norms.size(), before));
  }
  Push(past.norms, std::abs(loss));
  past.highest = std::max(past.highest, std::abs(loss));
}

void Diagnosis::LookAtOther(const Row& row) {
  const std::string& name = row.name->text;
  if (name == kLossRow) return LookAtLoss(row);
  if (name == kUnclearedRow) {
    Past& past = PastOf(MonitorKind::kOther, row);
    const double norm = row.values.of(Op::kMean);
    past.above.Take(norm > 0, step_);
    past.alive += norm > 0 ? 1 : 0;
    const bool is_first_time = past.above.steps == past.alive;
    if (past.above.steps == 2 && past.seen > 5 && is_first_time) {
      Report(Fault::kNotCleared, past.above.since, MonitorKind::kOther, row,
             fmt::format("gradients of the step before were still there when this step's backward "
                         "began (norm {:.6g}); they are added up",
                         norm));
    }
    return;
  }
  if (name == kInputRow) {
    Past& past = PastOf(MonitorKind::kOther, row);
    const double digest = row.values.of(Op::kDigest);
    const bool is_again = past.seen > 1 && digest == past.last;
    past.unmoved = is_again ? past.unmoved + 1 : 0;
    if (past.unmoved == 2 && past.moved >= kFewKnown) {
      Report(Fault::kSameBatch, previous_, MonitorKind::kOther, row,
             "the model gets the same input at every step");
    }
    if (!is_again) ++past.moved;
    past.last = digest;
    return;
  }
  for (const std::string_view setting : kSettings) {
    if (name.starts_with(setting) && name.size() > setting.size() && name[setting.size()] == '.') {
      return LookAtSetting(row);
    }
  }
}

void Diagnosis::LookAtParameter(const Row& row) {
  LookForNonFinite(MonitorKind::kParameter, row);
  Past& past = PastOf(MonitorKind::kParameter, row);
  const std::string& name = row.name->text;
  const double norm = row.values.of(Op::kNorm);
  const double digest = row.values.of(Op::kDigest);
  weights_now_[name] = norm;
  if (past.seen > 1) {
    LookAtMovement(row, past);
    if (past.seen > kKnown && past.highest > 0 && norm > kWeightJump * past.highest) {
      Report(Fault::kWeight, previous_, MonitorKind::kParameter, row,
             fmt::format("parameter {} jumped in one step: its norm went from {:.6g} to {:.6g}",
                         name, past.last, norm));
    }
  }
  past.looks.push_back({step_, digest, norm, row.values.of(Op::kMin), row.values.of(Op::kMax)});
  if (past.looks.size() > kDigestWindow) past.looks.pop_front();
  past.last = norm;
  if (std::isfinite(norm)) past.highest = std::max(past.highest, norm);
}

// Elements that are clamped come back to their bounds, all of them together where they are few.
bool Diagnosis::MayBeClamped(const TensorValues& values, const std::deque<ParameterLook>& looks) {
  if (ElementsOf(values) < kFewElements) return true;
  if (ElementsOf(values) > kManyElements) return false;
  const auto lows = std::ranges::count(looks, values.of(Op::kMin), &ParameterLook::min);
  const auto highs = std::ranges::count(looks, values.of(Op::kMax), &ParameterLook::max);
  return std::max(lows, highs) >= kClampedSteps;
}

// Every element is at the bound that it is clamped to, and its gradient pulls it no way back.
bool Diagnosis::IsAtItsBounds(const Row& row) const {
  const double bound =
      std::max(std::abs(row.values.of(Op::kMin)), std::abs(row.values.of(Op::kMax)));
  const double most = bound * std::sqrt(ElementsOf(row.values));
  return gradients_.contains(row.name->text) && row.values.of(Op::kNorm) > kAtBounds * most;
}

bool Diagnosis::IsLostInRounding(const Row& row) const {
  const auto gradient = gradients_.find(row.name->text);
  if (gradient == gradients_.end()) return false;  // it had none: nothing was added
  const bool is_narrow =
      row.values.dtype == DType::kBFloat16 || row.values.dtype == DType::kFloat16;
  if (is_narrow) return true;
  double rate = -1;
  for (const auto& [name, value] : settings_) {
    if (name.starts_with("lr.") && (rate < 0 || value < rate)) rate = value;
  }
  if (rate < 0) return false;
  const double step =
      Setting("beta1.0") ? rate * std::sqrt(ElementsOf(row.values)) : rate * gradient->second;
  return step < kLostStep * row.values.of(Op::kNorm);
}

void Diagnosis::LookAtMovement(const Row& row, Past& past) {
  const std::string& name = row.name->text;
  const ParameterLook& last = past.looks.back();
  const ParameterLook now = {step_, row.values.of(Op::kDigest), row.values.of(Op::kNorm),
                             row.values.of(Op::kMin), row.values.of(Op::kMax)};
  const bool moved = now.digest != last.digest;
  past.has_moved |= moved;
  if (past.has_moved) ++parameters_;
  if (moved) ++moved_;
  const auto old = std::ranges::find_if(past.looks, [&](const ParameterLook& one) {
    return one.digest == now.digest && one.norm == now.norm;
  });
  const bool is_stale = moved && old != past.looks.end() && past.moved >= 2;
  if (is_stale && !MayBeClamped(row.values, past.looks) && !IsLostInRounding(row)) {
    Report(Fault::kStale, step_, MonitorKind::kParameter, row,
           fmt::format("parameter {} went back to the values it had at step {}", name, old->step));
  }
  if (moved) past.moved = past.still.steps > 0 ? 1 : past.moved + 1;
  const bool may_rest = IsLostInRounding(row) || IsAtItsBounds(row);
  if (past.still.steps == 0 && !moved && may_rest) past.moved = 0;
  past.still.Take(!moved, last.step);
  if (past.still.is_lasting() && past.moved >= kMovedBefore && !HardlyLearns()) {
    stalls_.push_back(FindingOf(
        Fault::kStalled, past.still.since, MonitorKind::kParameter, row,
        fmt::format("parameter {} moved at every step before and stays as it is since", name)));
  }
}

std::optional<std::string> Diagnosis::Jump(Past& past, double norm, double factor, int64_t* since) {
  if (!std::isfinite(norm)) return std::nullopt;
  std::optional<std::string> text;
  const double before = Largest(past.norms);
  const bool is_known = past.seen > kKnown && before > 0;
  if (past.above.steps == 0) past.above_what = before;
  past.above.Take(is_known && norm > past.above_what, step_);
  const bool is_far = is_known && norm > factor * before;
  past.jumps = is_far ? past.jumps + 1 : 0;
  if (past.jumps == 2) {
    const bool is_quick = past.above.steps > 0 && past.above.steps <= kQuickRise;
    *since = is_quick ? past.above.since : previous_;
    text = fmt::format("has a norm of {:.6g}; in the {} steps before it was at most {:.6g}", norm,
                       past.norms.size(), is_quick ? past.above_what : before);
  }
  if (is_known && norm > kGrowth * past.last_norm) {
    if (past.growing++ == 0) past.growth_start = past.last_norm;
    if (!text && past.growing >= kGrowthSteps && norm > kGrowthInAll * past.growth_start &&
        norm > 2 * past.highest) {
      *since = step_ - static_cast<int64_t>(past.growing) + 1;
      text = fmt::format("grows at every step, from {:.6g} to {:.6g} in {} steps",
                         past.growth_start, norm, past.growing);
    }
  } else {
    past.growing = 0;
    past.highest = std::max(past.highest, norm);
  }
  past.last_norm = norm;
  // What stands above the past joins it when it has done so for some steps.
  past.held = is_known && norm > kTogether * before ? past.held + 1 : 0;
  if (past.held == 0 || past.held > kMostHeld) Push(past.norms, norm);
  return text;
}

void Diagnosis::LookAtGradient(const Row& row) {
  LookForNonFinite(MonitorKind::kReducedGradient, row);
  Past& past = PastOf(MonitorKind::kReducedGradient, row);
  const std::string& name = row.name->text;
  const double norm = row.values.of(Op::kNorm);
  gradients_now_[name] = norm;
  const double before = Largest(past.norms);
  if (past.seen > kKnown && before > kNegligible * largest_gradient_ && std::isfinite(norm)) {
    ++rows_;
    if (norm > kTogether * before) ++rows_up_;
    if (norm / before > highest_ratio_) {
      highest_ratio_ = norm / before;
      highest_row_ = &row;
    }
  }
  const bool is_dead = norm == 0 && loss_ != 0;
  past.dead.Take(is_dead, step_);
  if (past.dead.is_lasting() && past.alive >= kMovedBefore && MeanOf(past.zeros) < kSparse &&
      before > kNegligible * largest_gradient_) {
    Report(Fault::kDeadGradient, past.dead.since, MonitorKind::kReducedGradient, row,
           fmt::format("the gradient of {} is exactly zero since", name));
  }
  if (!is_dead) ++past.alive;
  if (!is_dead) Push(past.zeros, row.values.of(Op::kZeros));
  int64_t since = step_;
  const auto text = Jump(past, norm, kAlone, &since);
  if (text && norm > kSmall * largest_gradient_) {
    Report(Fault::kGradient, since, MonitorKind::kReducedGradient, row,
           fmt::format("the gradient of {} {}", name, *text));
  }
}

void Diagnosis::LookAtActivation(const Row& row) {
  Past& past = PastOf(MonitorKind::kActivation, row);
  if (row.values.of(Op::kNans) > 0) LookForNonFinite(MonitorKind::kActivation, row);
  LookForInfinity(row, past);
  const double zeros = row.values.of(Op::kZeros);
  const bool is_dead = zeros >= kDead;
  past.dead.Take(is_dead, step_);
  if (past.dead.is_lasting() && past.zeros.size() >= kFewKnown && Largest(past.zeros) <= kNotDead) {
    Report(Fault::kDeadActivation, past.dead.since, MonitorKind::kActivation, row,
           fmt::format("{} is zero since; before, at most {:.0f} % of it were", row.name->text,
                       100 * Largest(past.zeros)));
  }
  if (!is_dead && !std::isnan(zeros)) Push(past.zeros, zeros);
  int64_t since = step_;
  if (const auto text = Jump(past, row.values.of(Op::kNorm), kAlone, &since)) {
    Report(Fault::kActivation, since, MonitorKind::kActivation, row,
           fmt::format("{} {}", row.name->text, *text));
  }
}

// The state m is that of the step before, m' and the gradient g of it those of now:
//   Adam   m' = b m + (1 - b) g          SGD   m' = u m + g
// so that by the triangle inequality | |m'| - b |m| | <= (1 - b) |g|. A decay that is added to the
// gradient adds its share of the weight.
void Diagnosis::LookAtMomentum(const Row& row) {
  const std::string& name = row.name->text;
  const double now = row.values.of(Op::kNorm);
  momenta_now_[name] = now;
  const auto gradient = gradients_.find(name);
  const auto before = momenta_.find(name);
  const auto weight = weights_.find(name);
  const std::optional<double> beta = Setting("beta1.0");
  const std::optional<double> momentum = Setting("momentum.0");
  const std::optional<double> keeps = beta ? beta : momentum;
  if (!keeps || gradient == gradients_.end() || before == momenta_.end()) return;
  if (step_ != previous_ + 1) return;  // gradients of the steps between are not known
  if (settings_.contains("beta1.1") || settings_.contains("momentum.1")) return;
  const double decay = Setting("weight_decay.0").value_or(0);
  const double arriving =
      gradient->second + decay * (weight == weights_.end() ? 0 : weight->second);
  const double most = beta ? (1 - *beta) * arriving : arriving;
  const double off = std::abs(now - *keeps * before->second) - most;
  const double scale = std::max(before->second, now) + most;
  if (!std::isfinite(off) || off <= kStateTolerance * scale) return;
  if (moved_ == 0) return;  // the step was skipped
  Report(Fault::kMomentum, previous_, MonitorKind::kMomentum, row,
         fmt::format("the momentum of {} went from {:.6g} to {:.6g}, which its gradient of norm "
                     "{:.6g} does not explain",
                     name, before->second, now, gradient->second));
}

void Diagnosis::ConfirmGradients() {
  // Of the steps before: a scaler that skips a step leaves every parameter as it is.
  const bool was_applied = parameters_ == 0 || moved_ > 0;
  skipped_ = was_applied ? 0 : skipped_ + 1;
  std::vector<Finding> kept;
  for (Finding& finding : unconfirmed_) {
    if (finding.step == step_) {
      kept.push_back(std::move(finding));
    } else if ((was_applied || skipped_ >= kMostSkipped) &&
               reported_.emplace(finding.fault, finding.name).second) {
      found_.push_back(std::move(finding));
    } else if (!was_applied) {
      ++scaler_skips_;
    }
  }
  unconfirmed_ = std::move(kept);
}

void Diagnosis::ConfirmStalls() {
  const bool others_move = moved_ * 2 >= parameters_ && moved_ > 0;
  for (Finding& finding : std::exchange(stalls_, {})) {
    if (others_move && reported_.emplace(finding.fault, finding.name).second) {
      found_.push_back(std::move(finding));
    }
  }
}

void Diagnosis::LookAtAllGradients() {
  const bool most_up =
      rows_ >= 2 && static_cast<double>(rows_up_) >= kMost * static_cast<double>(rows_);
  steps_up_ = most_up ? steps_up_ + 1 : 0;
  if (steps_up_ != 2 || highest_row_ == nullptr) return;
  Report(
      Fault::kGradient, previous_, MonitorKind::kReducedGradient, *highest_row_,
      fmt::format("{} of {} gradients are more than {} times what they were in the {} steps "
                  "before, most of all that of {} ({:.3g} times)",
                  rows_up_, rows_, kTogether, kWindow, highest_row_->name->text, highest_ratio_));
}

std::vector<Finding> Diagnosis::Look(const StepRows& rows) {
  step_ = rows.step;
  rows_ = rows_up_ = parameters_ = moved_ = 0;
  highest_ratio_ = largest_gradient_ = 0;
  highest_row_ = nullptr;
  loss_ = 1;
  tolerated_.clear();
  for (const Row& row : rows.of(MonitorKind::kReducedGradient)) {
    const double norm = row.values.of(Op::kNorm);
    if (std::isfinite(norm)) largest_gradient_ = std::max(largest_gradient_, norm);
  }
  for (const Row& row : rows.of(MonitorKind::kOther)) LookAtOther(row);
  for (const Row& row : rows.of(MonitorKind::kParameter)) LookAtParameter(row);
  for (const Row& row : rows.of(MonitorKind::kMomentum)) LookAtMomentum(row);
  for (const Row& row : rows.of(MonitorKind::kActivation)) LookAtActivation(row);
  for (const Row& row : rows.of(MonitorKind::kReducedGradient)) LookAtGradient(row);
  LookAtAllGradients();
  ConfirmGradients();
  ConfirmStalls();
  gradients_ = std::exchange(gradients_now_, {});
  momenta_ = std::exchange(momenta_now_, {});
  weights_ = std::exchange(weights_now_, {});
  previous_ = step_;
  std::vector<Finding> found = std::exchange(found_, {});
  const bool has_fault = std::ranges::any_of(found, [&](const Finding& finding) {
    return finding.fault == Fault::kNonFinite && finding.step == step_;
  });
  if (has_fault) std::ranges::move(tolerated_, std::back_inserter(found));
  std::ranges::stable_sort(found, IsEarlier);
  return found;
}

std::vector<Finding> Diagnosis::Finish() {
  std::vector<Finding> found;
  for (Finding& finding : std::exchange(unconfirmed_, {})) {
    // Where a scaler skips steps, the last one may be one of them.
    if (scaler_skips_ == 0 && !reported_.contains({finding.fault, finding.name})) {
      found.push_back(std::move(finding));
    }
  }
  std::ranges::stable_sort(found, IsEarlier);
  return found;
}

}  // namespace plumbline::watch
