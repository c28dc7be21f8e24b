#include "verdict/optimizer_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "record/value.h"
#include "verdict/call_rows.h"
#include "verdict/choose_culprit.h"
#include "verdict/contents.h"
#include "verdict/judge_rows.h"
#include "verdict/missed_updates.h"

namespace plumbline::verdict {

namespace {

constexpr size_t kMostRows = 1 << 18;  // of all of them: a few hundred megabytes
// Calls are counted from zero in every step: those of earlier steps get numbers of their own.
constexpr uint64_t kNumbersOfAStep = 1'000'000'000;

std::string Renumbered(std::string_view name, uint64_t first) {
  std::optional<CallName> parts = ParseCallName(name);
  if (!parts) return std::string(name);
  parts->number = parts->number.value_or(0) + first;
  return BuildCallName(*parts);
}

// The item is called after its call.
void Rename(const std::string& before, const std::string& after, Slot<Item>& item) {
  if (!item) return;
  const std::string_view name = item->name;
  if (name.starts_with(before)) item->name = after + std::string(name.substr(before.size()));
}

// Its file is found from the dump.json of its own step.
void PlaceFile(const std::string& dump_json, Slot<Item>& item) {
  if (!item || item->data_name.empty() || item->data_name.starts_with(dump_json)) return;
  item->data_name = EarlierFile(dump_json, item->data_name);
}

void Renumber(uint64_t first, Comparison& step) {
  for (ComparedCall& call : step.calls) {
    const std::string target = Renumbered(call.target_name, first);
    const std::string golden = Renumbered(call.golden_name, first);
    for (uint32_t i = call.first_row; i < call.first_row + call.row_count; ++i) {
      Rename(call.target_name, target, step.rows[i].target);
      Rename(call.golden_name, golden, step.rows[i].golden);
      PlaceFile(step.target_path, step.rows[i].target);
      PlaceFile(step.golden_path, step.rows[i].golden);
    }
    call.target_name = target;
    call.golden_name = golden;
  }
}

// What judges later steps needs no columns of the table.
void KeepForJudging(Comparison& step) {
  for (ComparedRow& row : step.rows) {
    row.notes = {};
    row.result = {};
  }
  step.stacks = {};
  step.warnings = {};
  step.data_mapping = {};
}

// Relative errors that are known to be noise, as a third run would measure them.
double MeasuredIn(const ComparedRow& row) {
  if (!measure::IsGood(row.verdict) || !std::isfinite(row.error)) return 0;
  constexpr double kRounding = 1 + 1e-9;
  return std::max(row.expected, row.error / measure::kNoiseFactor * kRounding);
}

size_t PairsAmong(std::span<const ComparedCall> calls) {
  return static_cast<size_t>(std::ranges::count_if(calls, &ComparedCall::paired));
}

// One comparison of several steps.
class Joint {
 public:
  void Append(const Comparison& step, std::vector<ComparedCall> calls) {
    const auto first_call = static_cast<uint32_t>(whole_.calls.size());
    const auto first_row = static_cast<uint32_t>(whole_.rows.size());
    for (ComparedCall& call : calls) {
      call.first_row += first_row;
      whole_.calls.push_back(std::move(call));
    }
    whole_.rows.insert(whole_.rows.end(), step.rows.begin(), step.rows.end());
    for (size_t i = first_row; i < whole_.rows.size(); ++i) whole_.rows[i].call += first_call;
  }

  void AppendEarlier(const Comparison& step) {
    const size_t first_row = whole_.rows.size();
    Append(step, step.calls);
    whole_.earlier.push_back({step.target_path, step.golden_path, step.target_tensors,
                              step.golden_tensors, static_cast<uint32_t>(whole_.calls.size())});
    for (size_t i = first_row; i < whole_.rows.size(); ++i) {
      noise_.push_back(MeasuredIn(whole_.rows[i]));
    }
  }

  std::optional<CulpritEvent> Judge(const Run& target, const measure::PairContext& context,
                                    std::span<const double> measured_noise) {
    noise_.insert(noise_.end(), measured_noise.begin(), measured_noise.end());
    noise_.resize(whole_.rows.size());
    ForgetVerdicts(whole_.rows);
    return FindCulprit(target, context, whole_, noise_);
  }

  Comparison& whole() { return whole_; }

 private:
  Comparison whole_;
  std::vector<double> noise_;
};

}  // namespace

bool IsOneCallOfTwoSteps(std::string_view name, std::string_view other) {
  std::optional<CallName> a = ParseCallName(name), b = ParseCallName(other);
  if (!a || !b || !a->number || !b->number || a->number == b->number) return false;
  a->number = *a->number % kNumbersOfAStep;
  b->number = *b->number % kNumbersOfAStep;
  return a == b;
}

std::string NameInItsStep(std::string_view name) {
  std::optional<CallName> parts = ParseCallName(name);
  if (!parts || !parts->number) return std::string(name);
  parts->number = *parts->number % kNumbersOfAStep;
  return BuildCallName(*parts);
}

void EarlierSteps::Add(int64_t step, Comparison comparison) {
  if (last_ && *last_ + 1 != step) Clear();
  last_ = step;
  if (comparison.first_wrong_call || comparison.of_saves || comparison.of_graphs()) {
    steps_.clear();
    return;
  }
  KeepForJudging(comparison);
  steps_.push_back({step, std::move(comparison)});
  size_t rows = 0;
  for (const Step& each : steps_) rows += each.comparison.rows.size();
  while (steps_.size() > kRememberedSteps || (rows > kMostRows && steps_.size() > 1)) {
    rows -= steps_.front().comparison.rows.size();
    steps_.pop_front();
  }
}

void EarlierSteps::Clear() {
  steps_.clear();
  last_.reset();
}

JudgedBehind EarlierSteps::JudgeBehind(const Run& target, const measure::PairContext& context,
                                       Unjudged before, Comparison& comparison,
                                       std::span<const double> measured_noise) {
  Joint joint;
  for (Step& step : steps_) {
    if (step.comparison.mode != comparison.mode) return {};
    if (!std::exchange(step.is_renumbered, true)) {
      const uint64_t place = 1 + static_cast<uint64_t>(step.number) % kRememberedSteps;
      Renumber(place * kNumbersOfAStep, step.comparison);
    }
    joint.AppendEarlier(step.comparison);
  }
  Comparison& whole = joint.whole();
  const size_t earlier_calls = whole.calls.size(), earlier_rows = whole.rows.size();
  whole.mode = comparison.mode;
  whole.target_path = comparison.target_path;
  whole.golden_path = comparison.golden_path;
  whole.target_tensors = comparison.target_tensors;
  whole.golden_tensors = comparison.golden_tensors;
  const size_t pairs_before = PairsAmong(before.calls);
  joint.Append(comparison, std::move(before.calls));
  std::optional<CulpritEvent> culprit = joint.Judge(target, context, measured_noise);
  if (culprit && culprit->call < earlier_calls) return {};
  whole.calls.erase(whole.calls.begin(), whole.calls.begin() + static_cast<long>(earlier_calls));
  whole.rows.erase(whole.rows.begin(), whole.rows.begin() + static_cast<long>(earlier_rows));
  for (ComparedCall& call : whole.calls) call.first_row -= static_cast<uint32_t>(earlier_rows);
  for (ComparedRow& row : whole.rows) row.call -= static_cast<uint32_t>(earlier_calls);
  comparison.calls = std::move(whole.calls);
  comparison.rows = std::move(whole.rows);
  const size_t lost = pairs_before - PairsAmong(comparison.calls);
  comparison.counts = before.counts;
  comparison.counts.calls -= lost;
  comparison.counts.unmatched_target += lost;
  comparison.counts.unmatched_golden += lost;
  ReportUnproven(comparison);
  if (culprit) {
    culprit->call -= static_cast<uint32_t>(earlier_calls);
    culprit->row -= static_cast<uint32_t>(earlier_rows);
  }
  return {true, std::move(culprit)};
}

namespace {

using Values = std::vector<double>;
using Rows = std::vector<const ComparedRow*>;

constexpr double kFurthestShare = 0.5;  // of its size, that one step moves a parameter
constexpr double kAlike = 0.01;         // two states of one parameter, few steps apart
constexpr size_t kMostCandidates = 8;
constexpr double kMostProducts = 1 << 27;  // that are computed again for one gradient
constexpr size_t kMostRead = 4096;         // tensors of one shape that are looked at

bool IsParameterRead(const WalkState& state, const ComparedRow& row) {
  const ComparedCall& call = state.comparison.calls[row.call];
  return measure::HasTensors(row) && call.paired() && measure::IsInput(row) &&
         KindOfCall(call.target_name) == CallKind::kForward && row.golden->requires_grad == true;
}

// The name without the number of the call, which stands at the end for modules.
std::string_view WithoutNumber(std::string_view name) {
  return name.substr(0, name.find_last_not_of("0123456789") + 1);
}

// Whether both are read as the same argument of one function or module.
bool HaveOnePlace(const WalkState& state, const ComparedRow& a, const ComparedRow& b) {
  const Text& first = state.comparison.calls[a.call].target_name;
  const Text& second = state.comparison.calls[b.call].target_name;
  const bool is_one = SeriesOf(first) == SeriesOf(second) &&
                      (!SeriesOf(first).empty() || WithoutNumber(first) == WithoutNumber(second));
  return is_one && measure::ShortName(*a.target, first) == measure::ShortName(*b.target, second);
}

// Also zeros on both sides, which prove little.
bool AgreedThere(const ComparedRow& row) {
  return measure::IsGood(row.verdict) || row.reason == "zero-both";
}

// The rows in which calls before `row` read the parameter as it was before the step, the latest
// first: of those of its shape and place, on both sides and good, those of the same call in steps
// of their own, then the most alike. Others may be among them, as several new biases hold the same.
Rows ReadBefore(const WalkState& state, const ComparedRow& row) {
  const auto& calls = state.comparison.calls;
  const Text& name = calls[row.call].target_name;
  const bool has_steps = !state.comparison.earlier.empty();
  Rows of_the_call;
  std::vector<std::pair<double, const ComparedRow*>> alike;
  double least = std::numeric_limits<double>::infinity();
  const std::optional<ContentKey> own = KeyOf(*row.golden);
  const auto count = static_cast<int64_t>(measure::ElementsOf(*row.golden));
  const auto same = state.trained.find(*row.golden->shape);
  if (same == state.trained.end()) return {};
  const std::vector<uint32_t>& read = same->second;
  const size_t first = read.size() > kMostRead ? read.size() - kMostRead : 0;
  for (const uint32_t index : std::span(read).subspan(first)) {
    const ComparedRow& each = state.comparison.rows[index];
    if (each.call >= row.call || each.golden->dtype != row.golden->dtype ||
        !IsParameterRead(state, each) || !AgreedThere(each) || KeyOf(*each.golden) == own ||
        !HaveOnePlace(state, each, row)) {
      continue;
    }
    if (has_steps && IsOneCallOfTwoSteps(calls[each.call].target_name, name)) {
      of_the_call.push_back(&each);
      continue;
    }
    const double distance =
        measure::StatisticError(each.golden->statistics, row.golden->statistics, count);
    alike.emplace_back(distance, &each);
    least = std::min(least, distance);
  }
  const double most = std::max(kAlike, least);
  Rows found(of_the_call.rbegin(), of_the_call.rend());
  for (auto at = alike.rbegin(); at != alike.rend() && found.size() < kMostCandidates; ++at) {
    if (at->first <= most) found.push_back(at->second);
  }
  return found;
}

// Whether both rows hold golden's state of one parameter: not what was computed from two batches,
// and reached a function through something that nobody recorded.
bool IsOneTensor(const WalkState& state, const ComparedRow& before, const ComparedRow& row) {
  const bool is_function = !SeriesOf(state.comparison.calls[row.call].target_name).empty();
  const bool is_tensor = state.comparison.mode == CompareMode::kTensor;
  if (!is_function || !is_tensor || row.golden->shape.size() == 1) return true;
  const auto old = RecordedElements(state.comparison, *before.golden, false);
  const auto now = RecordedElements(state.comparison, *row.golden, false);
  if (!old || !now || old->size() != now->size()) return true;  // not told
  double apart = 0, size = 0;
  for (size_t i = 0; i < old->size(); ++i) {
    apart += ((*now)[i] - (*old)[i]) * ((*now)[i] - (*old)[i]);
    size += (*old)[i] * (*old)[i];
  }
  return size == 0 || apart <= kFurthestShare * kFurthestShare * size;
}

// A gradient among the results of a backward call, or the terms that add up to it.
struct Gradient {
  enum class Form : uint8_t { kWhole, kTransposed, kTerms, kProducts };
  const ComparedRow* row = nullptr;
  Form form = Form::kWhole;
  const ComparedRow* other = nullptr;  // factors of the terms
};

// What the call of `read` multiplies with a matrix [outputs, inputs]: so many rows of inputs.
const ComparedRow* FactorOf(const WalkState& state, const ComparedRow& read, double rows) {
  const Shape& shape = read.golden->shape;
  const auto& call = state.comparison.calls[read.call];
  const double most = rows * measure::ElementsOf(*read.golden);
  if (!(most <= kMostProducts)) return nullptr;
  for (const ComparedRow& row : measure::RowsOf(state.comparison, call)) {
    if (!measure::HasTensors(row) || !measure::IsInput(row) || row.golden->shape.empty()) continue;
    const bool fits = row.golden->shape->back() == shape[1] &&
                      measure::ElementsOf(*row.golden) == rows * static_cast<double>(shape[1]);
    if (&row != &read && fits && measure::IsGood(row.verdict)) return &row;
  }
  return nullptr;
}

std::vector<Gradient> GradientsOf(const WalkState& state, const ComparedRow& read) {
  std::vector<Gradient> found;
  const ComparedRow* own = state.parameter_gradients.Of(read);
  if (own != nullptr && measure::IsGood(own->verdict) && own->golden->shape == read.golden->shape) {
    found.push_back({own, Gradient::Form::kWhole});
  }
  const ComparedCall* backward = state.forward.BackwardOf(read.call);
  if (backward == nullptr) return found;
  const Shape& shape = read.golden->shape;
  const Shape turned(shape.rbegin(), shape.rend());
  const ComparedRow* incoming = nullptr;
  for (const ComparedRow& row : measure::RowsOf(state.comparison, *backward)) {
    if (!measure::HasTensors(row) || !measure::IsGood(row.verdict)) continue;
    if (measure::IsInput(row)) {
      if (incoming == nullptr) incoming = &row;
      continue;
    }
    if (row.golden->shape == shape) found.push_back({&row, Gradient::Form::kWhole});
    // The node of a product returns the gradient of the matrix as it multiplied it.
    if (shape.size() == 2 && row.golden->shape == turned) {
      found.push_back({&row, Gradient::Form::kTransposed});
    }
  }
  const bool is_sum = found.empty() && incoming != nullptr && shape.size() == 1 &&
                      incoming->golden->shape.size() > 1 &&
                      incoming->golden->shape->back() == shape[0];
  if (is_sum) found.push_back({incoming, Gradient::Form::kTerms});
  const bool is_product = found.empty() && incoming != nullptr && shape.size() == 2 &&
                          !incoming->golden->shape.empty() &&
                          incoming->golden->shape->back() == shape[0];
  if (!is_product) return found;
  const double rows = measure::ElementsOf(*incoming->golden) / static_cast<double>(shape[0]);
  const ComparedRow* factor = FactorOf(state, read, rows);
  if (factor != nullptr) found.push_back({incoming, Gradient::Form::kProducts, factor});
  return found;
}

// A gradient, and how far off each element may be as the sum of terms, in any usual order.
struct Sums {
  Values values, rounding;
};

// Rounded once per term, by as much as a partial sum is large or terms of random sign make it.
Sums SumsOf(const Values& terms, size_t columns, double roundoff) {
  Sums sums{Values(columns), Values(columns)};
  Values squares(columns), largest(columns);
  for (size_t i = 0; i < terms.size(); ++i) {
    const size_t column = i % columns;
    sums.values[column] += terms[i];
    squares[column] += terms[i] * terms[i];
    largest[column] = std::max(largest[column], std::abs(sums.values[column]));
  }
  const double roundings = std::sqrt(static_cast<double>(terms.size() / columns));
  for (size_t i = 0; i < columns; ++i) {
    sums.rounding[i] = roundoff * roundings * std::max(largest[i], std::sqrt(squares[i]));
  }
  return sums;
}

// The same of a gradient `terms` [rows, outputs] times `factors` [rows, inputs].
Sums ProductsOf(const Values& terms, size_t outputs, const Values& factors, size_t inputs,
                double roundoff) {
  Sums sums{Values(outputs * inputs), Values(outputs * inputs)};
  const size_t rows = terms.size() / outputs;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t k = 0; k < outputs; ++k) {
      const double term = terms[row * outputs + k];
      for (size_t i = 0; i < inputs; ++i) {
        const double product = term * factors[row * inputs + i];
        sums.values[k * inputs + i] += product;
        sums.rounding[k * inputs + i] += product * product;
      }
    }
  }
  const double roundings = std::sqrt(static_cast<double>(rows));
  for (size_t i = 0; i < sums.values.size(); ++i) {
    const double size = std::max(std::abs(sums.values[i]), std::sqrt(sums.rounding[i]));
    sums.rounding[i] = roundoff * roundings * size;
  }
  return sums;
}

std::optional<Sums> ElementsOf(const WalkState& state, const Gradient& gradient, bool of_target) {
  const Item& item = *measure::SideOf(*gradient.row, of_target);
  std::optional<Values> read = RecordedElements(state.comparison, item, of_target);
  if (!read) return std::nullopt;
  if (gradient.form == Gradient::Form::kWhole) return Sums{std::move(*read), {}};
  const auto columns = static_cast<size_t>(item.shape->back());
  if (gradient.form == Gradient::Form::kTerms) {
    return SumsOf(*read, columns, measure::RoundoffOf(item, item));
  }
  if (gradient.form == Gradient::Form::kProducts) {
    const Item& other = *measure::SideOf(*gradient.other, of_target);
    const auto factors = RecordedElements(state.comparison, other, of_target);
    const auto inputs = static_cast<size_t>(other.shape->back());
    if (!factors || factors->size() / inputs != read->size() / columns) return std::nullopt;
    return ProductsOf(*read, columns, *factors, inputs, measure::RoundoffOf(item, item));
  }
  const size_t rows = read->size() / columns;
  Values values(read->size());
  for (size_t i = 0; i < read->size(); ++i) values[i % columns * rows + i / columns] = (*read)[i];
  return Sums{std::move(values), {}};
}

// Raises each to the relative difference of the gradient of that element.
bool AddDifferences(const WalkState& state, const Gradient& gradient, Values& differences) {
  const std::optional<Sums> target = ElementsOf(state, gradient, true);
  const std::optional<Sums> golden = ElementsOf(state, gradient, false);
  if (!target || !golden || target->values.size() != golden->values.size()) return false;
  differences.resize(target->values.size());
  for (size_t i = 0; i < differences.size(); ++i) {
    const double size = std::max(std::abs(target->values[i]), std::abs(golden->values[i]));
    double apart = std::abs(target->values[i] - golden->values[i]);
    if (!target->rounding.empty()) apart += target->rounding[i] + golden->rounding[i];
    if (apart > 0) differences[i] = std::max(differences[i], size > 0 ? apart / size : 1);
  }
  return true;
}

// A parameter before and after a step, on both sides.
struct Moved {
  Values before[2], after[2];  // golden, target

  bool Read(const WalkState& state, const ComparedRow& from, const ComparedRow& to) {
    for (const bool of_target : {false, true}) {
      auto old = RecordedElements(state.comparison, *measure::SideOf(from, of_target), of_target);
      auto now = RecordedElements(state.comparison, *measure::SideOf(to, of_target), of_target);
      if (!old || !now || old->size() != now->size()) return false;
      before[of_target] = std::move(*old);
      after[of_target] = std::move(*now);
    }
    return before[0].size() == before[1].size();
  }
  [[nodiscard]] double By(size_t i, bool of_target) const {
    return after[of_target][i] - before[of_target][i];
  }
  [[nodiscard]] double SizeOf(size_t i) const {
    double size = 0;
    for (const Values* values : {&before[0], &before[1], &after[0], &after[1]}) {
      size = std::max(size, std::abs((*values)[i]));
    }
    return size;
  }
};

// `remembers`: earlier gradients are in the differences too. What they add up to may cancel, where
// the difference is one of the largest step and not of what is left.
bool MovesFit(const Moved& moved, const Values& differences, double roundoff, bool remembers) {
  const size_t count = moved.before[0].size();
  if (differences.size() != count) return false;
  double furthest = 0;
  for (size_t i = 0; i < count; ++i) furthest = std::max(furthest, std::abs(moved.By(i, false)));
  if (!(furthest > 0)) return false;
  for (size_t i = 0; i < count; ++i) {
    const double target = moved.By(i, true), golden = moved.By(i, false);
    const double rounding = measure::kNoiseFactor * roundoff * moved.SizeOf(i);
    const double share = std::min(1.0, measure::kNoiseFactor * (differences[i] + roundoff));
    const double size = std::abs(target) + std::abs(golden);
    const double most = rounding + share * std::max(size, remembers ? furthest : 0);
    if (!(std::abs(target - golden) <= most)) return false;  // also for NaN
    if (!(std::abs(target) <= kFurthestStep * furthest + rounding)) return false;
  }
  return true;
}

// Moments remember the gradients of the steps before: those are added.
void AddEarlier(const WalkState& state, const ComparedRow* read, Values& differences) {
  for (int i = 0; i < kRememberedSteps; ++i) {
    const Rows before = ReadBefore(state, *read);
    if (before.empty()) return;
    read = before.front();
    const std::vector<Gradient> gradients = GradientsOf(state, *read);
    if (gradients.empty() || !AddDifferences(state, gradients.front(), differences)) return;
  }
}

// The bias that multi_head_attention_forward adds to queries, keys and values at once. What is
// added to all keys changes no softmax: the gradient of that third is rounding, which no backward
// call returns. A key of its own beside them (bias_k, a zero) makes it matter.
bool IsJointBias(const WalkState& state, const ComparedRow& row) {
  const ComparedCall& call = state.comparison.calls[row.call];
  const Text& name = call.target_name;
  const Shape& shape = row.golden->shape;
  if (measure::ApiOfCall(name) != "multi_head_attention_forward" || shape.size() != 1 ||
      shape[0] % 3 != 0 || !IsArgument(row, name, 6, "in_proj_bias")) {
    return false;
  }
  const auto rows = measure::RowsOf(state.comparison, call);
  const Item* own_key = ArgumentOf(rows, name, false, 7, "bias_k");
  const Item* zero = ArgumentOf(rows, name, false, 9, "add_zero_attn");
  const bool* adds_zero = zero == nullptr ? nullptr : zero->statistics.As<bool>(0);
  return (own_key == nullptr || !own_key->is_tensor) && (adds_zero == nullptr || !*adds_zero);
}

// Whether the keys' third alone moved otherwise, and no further than a step.
bool IsOfKeysAlone(const WalkState& state, const ComparedRow& row, const Moved& moved) {
  const size_t third = moved.before[0].size() / 3;
  double furthest = 0, furthest_key = 0, apart = 0, size = 0;
  for (size_t i = 0; i < 3 * third; ++i) {
    furthest = std::max(furthest, std::abs(moved.By(i, false)));
    const double error = moved.after[1][i] - moved.after[0][i];
    const bool is_key = i / third == 1;
    if (is_key) {
      furthest_key = std::max(furthest_key, std::abs(moved.By(i, true)));
    } else {
      apart += error * error;
      size += moved.after[0][i] * moved.after[0][i];
    }
  }
  const double roundoff = state.RoundoffOf(row);
  const double explained = state.ExplainedFor(row, std::max(roundoff, state.noise.level()));
  return std::sqrt(apart) <= measure::kNoiseFactor * explained * std::sqrt(size) &&
         furthest_key <= kFurthestStep * furthest;  // both false for NaN
}

bool FollowsFromGradients(const WalkState& state, const ComparedRow& row) {
  const double roundoff = state.RoundoffOf(row);
  const bool is_joint_bias = IsJointBias(state, row);
  for (const ComparedRow* before : ReadBefore(state, row)) {
    Moved moved;
    if (!moved.Read(state, *before, row)) return false;
    if (is_joint_bias && IsOfKeysAlone(state, row, moved)) return true;
    for (const Gradient& gradient : GradientsOf(state, *before)) {
      Values differences;
      if (!AddDifferences(state, gradient, differences)) continue;
      if (MovesFit(moved, differences, roundoff, false)) return true;
      AddEarlier(state, before, differences);
      if (MovesFit(moved, differences, roundoff, true)) return true;
    }
  }
  return false;
}

// How far the extremes of golden moved: elements that are rounding may move as far, either way.
double StepOf(const ComparedRow& before, const ComparedRow& row) {
  double step = 0;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const std::optional<double> old = NumberOf(before.golden->statistics[i]);
    const std::optional<double> now = NumberOf(row.golden->statistics[i]);
    if (old && now) step = std::max(step, std::abs(*now - *old));
  }
  return step;
}

// Of a tensor that a call reads and that requires a gradient, whether no recorded call computed it.
bool IsParameter(const WalkState& state, const ComparedRow& row) {
  const bool is_function = !SeriesOf(state.comparison.calls[row.call].target_name).empty();
  if (!is_function) return row.golden->role == ItemRole::kParameter;
  return !state.forward.IsMade(*row.golden);
}

// The same of all parameters that the calls read beside it: no rule moves one element much further
// than others, however small its gradient. Values that were computed differ by more.
double StepBeside(const WalkState& state, const ComparedRow& before, const ComparedRow& row) {
  double step = StepOf(before, row);
  const auto& calls = state.comparison.calls;
  for (const ComparedRow& now : measure::RowsOf(state.comparison, calls[row.call])) {
    if (!IsParameterRead(state, now) || !IsParameter(state, now)) continue;
    for (const ComparedRow& old : measure::RowsOf(state.comparison, calls[before.call])) {
      const bool is_same = IsParameterRead(state, old) && HaveOnePlace(state, old, now);
      if (is_same) step = std::max(step, StepOf(old, now));
    }
  }
  return step;
}

// The relative error of a gradient: what was measured, all of one that is rounding. Of a sum of
// terms that nothing recorded, what adding them rounds over the least that it may be.
double ErrorOfGradient(const WalkState& state, const Gradient& gradient, double elements) {
  const ComparedRow& row = *gradient.row;
  const double error = std::isfinite(row.error) ? row.error : 0;
  if (gradient.form == Gradient::Form::kProducts) return 0;  // not told
  if (gradient.form != Gradient::Form::kTerms) return state.IsResidue(row) ? 1 : error;
  const Item& terms = *row.golden;
  const double count = measure::ElementsOf(terms) / elements;
  const double rms = measure::RmsOf(terms).value_or(0);
  const double rounding = std::sqrt(count) * (error + measure::RoundoffOf(terms, terms)) * rms;
  const double mean = count * std::abs(NumberOf(terms.statistics[2]).value_or(0));
  return mean > 0 ? measure::kNoiseFactor * rounding / mean : 1;
}

std::optional<double> HiddenInStatistics(const WalkState& state, const ComparedRow& row) {
  const std::optional<double> size = measure::RmsOf(*row.golden);
  double most = 0;
  const double of_keys = IsJointBias(state, row) ? std::sqrt(1.0 / 3) : 0;
  for (const ComparedRow* before : ReadBefore(state, row)) {
    // Of the elements that may be rounding, the root of it: that makes the norm.
    double share = of_keys;
    for (const Gradient& gradient : GradientsOf(state, *before)) {
      const double error = ErrorOfGradient(state, gradient, measure::ElementsOf(*row.golden));
      share = std::max(share, std::sqrt(std::min(error, 1.0)));
    }
    if (!(share > 0) || !size) continue;
    const double step = share < 1 ? StepOf(*before, row) : StepBeside(state, *before, row);
    const double moved = 2 * measure::kAverageWeight * share * step / *size;
    const double earlier = std::isfinite(before->error) ? before->error : 0;
    most = std::max(most, earlier + moved / measure::kNoiseFactor);
  }
  return most > 0 ? std::optional(most) : std::nullopt;
}

}  // namespace

std::optional<double> ExplainedByStep(const WalkState& state, const ComparedRow& row) {
  if (!IsParameterRead(state, row) || !state.has_gradients) return std::nullopt;
  if (state.comparison.mode == CompareMode::kStatistics) return HiddenInStatistics(state, row);
  if (state.comparison.mode != CompareMode::kTensor) return std::nullopt;
  return FollowsFromGradients(state, row) ? std::optional(row.error) : std::nullopt;
}

Rows ReadBeforeStep(const WalkState& state, const ComparedRow& row) {
  return IsParameterRead(state, row) && state.has_gradients ? ReadBefore(state, row) : Rows();
}

bool IsReadAfterStep(const WalkState& state, const ComparedRow& row) {
  if (!IsParameterRead(state, row) || !state.has_gradients) return false;
  // What an optimizer leaves is no result of a call that a gradient goes through.
  if (state.forward.IsMade(*row.golden)) return false;
  return std::ranges::any_of(ReadBefore(state, row), [&](const ComparedRow* before) {
    return !GradientsOf(state, *before).empty() && IsOneTensor(state, *before, row);
  });
}

std::optional<StepTaken> StepBefore(const WalkState& state, const ComparedRow& row) {
  if (state.comparison.mode != CompareMode::kTensor || !IsReadAfterStep(state, row)) {
    return std::nullopt;
  }
  const Rows before = ReadBefore(state, row);
  Moved moved;
  const bool is_read = moved.Read(state, *before.front(), row);
  if (!is_read || GradientsOf(state, *before.front()).empty()) return std::nullopt;
  StepTaken step;
  const ComparedRow* read = before.front();
  if (auto gradient = ElementsOf(state, GradientsOf(state, *read).front(), false)) {
    step.gradient = std::move(gradient->values);
  }
  for (int i = 0; i < kRememberedSteps && read != nullptr; ++i) {
    for (const Gradient& gradient : GradientsOf(state, *read)) {
      if (!std::isfinite(gradient.row->error)) continue;
      step.gradient_error = std::max(step.gradient_error, gradient.row->error);
    }
    const Rows earlier = ReadBefore(state, *read);
    read = earlier.empty() ? nullptr : earlier.front();
  }
  for (const size_t side : {size_t{0}, size_t{1}}) {
    step.before[side] = std::move(moved.before[side]);
    step.after[side] = std::move(moved.after[side]);
  }
  return step;
}

namespace {

constexpr size_t kFewestElements = 16;  // fewer may be alike by chance
constexpr double kMostLeft = 0.25;      // of the difference that the factor makes
constexpr double kLeastApart = 0.01;    // of a gradient and a weight, else neither is told
constexpr double kMostRounding = 2;     // of the probable one: the rounding of all together

double SumOfProducts(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<double> Moves(const StepTaken& step, size_t side) {
  std::vector<double> moves(step.after[side].size());
  for (size_t i = 0; i < moves.size(); ++i) moves[i] = step.after[side][i] - step.before[side][i];
  return moves;
}

// What of the moves follows the gradient where golden's are made of it and of the weight, which an
// optimizer decays. Nothing where golden's are something else: a moment, Adam.
struct WithoutDecay {
  std::vector<double> target, golden;
};
std::optional<WithoutDecay> TakeDecayAway(const StepTaken& step, std::span<const double> rounding) {
  const std::vector<double>& gradient = step.gradient;
  const std::vector<double>& weight = step.before[0];
  if (gradient.size() != weight.size()) return std::nullopt;
  WithoutDecay parts{Moves(step, 1), Moves(step, 0)};
  // Least squares for two numbers.
  const double gg = SumOfProducts(gradient, gradient), gw = SumOfProducts(gradient, weight),
               ww = SumOfProducts(weight, weight), gm = SumOfProducts(gradient, parts.golden),
               wm = SumOfProducts(weight, parts.golden), scale = gg * ww - gw * gw;
  if (!(scale > kLeastApart * gg * ww)) return std::nullopt;
  const double of_gradient = (gm * ww - wm * gw) / scale, decay = (wm * gg - gm * gw) / scale;
  double left = 0;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const double apart = parts.golden[i] - of_gradient * gradient[i] - decay * weight[i];
    left += apart * apart;
    parts.target[i] -= decay * step.before[1][i];
    parts.golden[i] = of_gradient * gradient[i];
  }
  const double rounded = SumOfProducts(rounding, rounding);
  if (!(left <= kMostRounding * kMostRounding * rounded)) return std::nullopt;
  return parts;
}

}  // namespace

std::optional<ScaledStep> FindFactor(std::span<const double> target, std::span<const double> golden,
                                     std::span<const double> rounding, double error) {
  const size_t count = golden.size();
  const double square = SumOfProducts(golden, golden);
  if (count < kFewestElements || !(square > 0)) return std::nullopt;
  const double factor = SumOfProducts(target, golden) / square;
  double left = 0;
  for (size_t i = 0; i < count; ++i) {
    const double apart = target[i] - factor * golden[i];
    left += apart * apart;
  }
  left = std::sqrt(left);
  const double length = std::sqrt(square), rounded = std::sqrt(SumOfProducts(rounding, rounding));
  const double difference = std::abs(factor - 1);
  if (!(left <= std::max(kMostLeft * difference * length, kMostRounding * rounded))) {
    return std::nullopt;
  }
  // Errors of no special direction add up to a share of them along golden's step.
  const double uncertain =
      std::max(left, rounded) / (length * std::sqrt(static_cast<double>(count)));
  const ScaledStep step{factor, measure::kNoiseFactor * std::max(uncertain, error)};
  return difference > step.explained ? std::optional(step) : std::nullopt;
}

std::optional<ScaledStep> FindScaledStep(const WalkState& state, const ComparedRow& row) {
  const std::optional<StepTaken> step = StepBefore(state, row);
  if (!step) return std::nullopt;
  const double roundoff = state.RoundoffOf(row);
  std::vector<double> rounding(step->after[0].size());
  for (size_t i = 0; i < rounding.size(); ++i) {
    rounding[i] = roundoff * std::max(std::abs(step->before[0][i]), std::abs(step->after[0][i]));
  }
  const double error = std::max({step->gradient_error, state.noise.AtMost(state.noise.level()),
                                 measure::kUnseenCalls * roundoff});
  const auto found = FindFactor(Moves(*step, 1), Moves(*step, 0), rounding, error);
  if (found) return found;
  const std::optional<WithoutDecay> parts = TakeDecayAway(*step, rounding);
  return parts ? FindFactor(parts->target, parts->golden, rounding, error) : std::nullopt;
}

CulpritFact FactOf(const ScaledStep& step) {
  return {
      {},
      "scale",
      fmt::format("the step of this parameter, in no recorded call, is {:.6g} times golden's in "
                  "all elements (noise explains {:.2g} of it)",
                  step.factor, step.explained),
      "high"};
}

}  // namespace plumbline::verdict
