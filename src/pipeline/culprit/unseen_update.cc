#include "pipeline/culprit/unseen_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "pipeline/culprit/content_key.h"
#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/earlier_steps.h"
#include "pipeline/culprit/recorded_elements.h"
#include "record/recorded_number.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

constexpr double kFurthest = 3;     // a step, in the largest of golden
constexpr double kRoundings = 512;  // by which results may differ anyway

bool IsForward(const ComparedCall& call) {
  return call.paired() && KindOfCall(call.target_name) == CallKind::kForward;
}

bool HasGradients(const Comparison& comparison) {
  return std::ranges::any_of(comparison.calls, [](const ComparedCall& call) {
    const CallKind kind = KindOfCall(call.name());
    return kind == CallKind::kBackward || kind == CallKind::kParametersGrad;
  });
}

bool IsTrained(const ComparedRow& row) {
  return measure::HasTensors(row) && measure::IsInput(row) && row.golden->requires_grad == true &&
         row.target->requires_grad == true;
}

// "Module.block.1" of "Module.block.1.Block.forward.0"; empty for other calls.
std::string_view PathOfModule(std::string_view name) {
  if (!SeriesOf(std::string(name)).empty()) return {};
  const std::string_view whole = name.substr(0, name.rfind(".forward"));
  const size_t end = whole.rfind('.');
  return end == std::string_view::npos ? std::string_view() : whole.substr(0, end);
}

// The largest step of one element on each side; nothing where not all elements are recorded.
struct Furthest {
  double target = 0, golden = 0;
};
std::optional<Furthest> FurthestMoves(const Comparison& comparison, const ComparedRow& from,
                                      const ComparedRow& to) {
  Furthest furthest;
  for (const bool of_target : {false, true}) {
    const auto before = RecordedElements(comparison, *measure::SideOf(from, of_target), of_target);
    const auto after = RecordedElements(comparison, *measure::SideOf(to, of_target), of_target);
    if (!before || !after || before->size() != after->size()) return std::nullopt;
    double& largest = of_target ? furthest.target : furthest.golden;
    for (size_t i = 0; i < before->size(); ++i) {
      largest = std::max(largest, std::abs((*after)[i] - (*before)[i]));
    }
  }
  return furthest;
}

// How far the extremes of golden moved from one row to the other; or of one side from the other's.
double BetweenExtremes(const Item& a, const Item& b) {
  double largest = 0;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const std::optional<double> one = NumberOf(a.statistics[i]), other = NumberOf(b.statistics[i]);
    if (one && other) largest = std::max(largest, std::abs(*one - *other));
  }
  return largest;
}

// Whether the parameter may be that far off by a step. With statistics, by the largest that golden
// makes anywhere, in either direction.
bool MayBeAStep(const Comparison& comparison, const ComparedRow& before, const ComparedRow& row,
                double largest) {
  if (comparison.mode != CompareMode::kTensor) {
    return BetweenExtremes(*row.target, *row.golden) <= 2 * largest;
  }
  const auto moves = FurthestMoves(comparison, before, row);
  return moves && moves->target <= kFurthest * moves->golden;
}

// Follows what becomes of a value, by contents of the target.
class Effects {
 public:
  explicit Effects(const Comparison& comparison) : comparison_(comparison) {
    for (uint32_t i = 0; i < comparison.rows.size(); ++i) {
      const ComparedRow& row = comparison.rows[i];
      if (!measure::HasTensors(row) || !IsForward(comparison.calls[row.call])) continue;
      const std::optional<ContentKey> key = KeyOf(*row.target);
      if (!key) continue;
      if (measure::IsInput(row)) {
        readers_[*key].push_back(i);
      } else {
        made_.insert(*key);
      }
    }
  }

  // Whether what the call of `read` makes of it, and what is made of that, ends in results that
  // agree.
  [[nodiscard]] bool End(const ComparedRow& read) const {
    std::vector<uint32_t> open{read.call};
    std::unordered_set<uint32_t> seen{read.call};
    for (size_t next = 0; next < open.size(); ++next) {
      if (open.size() > kMostCalls) return false;
      for (const ComparedRow& row : measure::RowsOf(comparison_, comparison_.calls[open[next]])) {
        if (measure::IsInput(row)) continue;
        if (!measure::HasTensors(row) || !std::isfinite(row.error)) return false;
        if (Agrees(row)) continue;
        if (!AddReaders(row, open, seen)) return false;
      }
    }
    return true;
  }

 private:
  static constexpr size_t kMostCalls = 256;

  // A single number, such as a loss, may agree by chance.
  static bool Agrees(const ComparedRow& row) {
    if (!(measure::ElementsOf(*row.golden) > 1)) return false;
    const double roundoff = measure::RoundoffOf(*row.target, *row.golden);
    const double ceiling = measure::LargestNoise(roundoff) / measure::kNoiseFactor;
    return row.error <= std::min(kRoundings * roundoff, ceiling);
  }

  bool AddReaders(const ComparedRow& made, std::vector<uint32_t>& open,
                  std::unordered_set<uint32_t>& seen) const {
    const std::optional<ContentKey> key = KeyOf(*made.target);
    const auto found = key ? readers_.find(*key) : readers_.end();
    bool is_read = false;
    if (found != readers_.end()) {
      for (const uint32_t index : found->second) {
        const uint32_t call = comparison_.rows[index].call;
        if (call <= made.call) continue;
        is_read = true;
        if (seen.insert(call).second) open.push_back(call);
      }
    }
    return is_read || MeetsUnseen(made, open, seen);
  }

  // What nothing recorded reads is read as a view, or by calls that nobody recorded. What comes out
  // of those next is followed in turn: the call that reads it, or the module around that returns
  // it. Between modules, which leave more out, it must agree itself.
  bool MeetsUnseen(const ComparedRow& made, std::vector<uint32_t>& open,
                   std::unordered_set<uint32_t>& seen) const {
    const std::string_view path = PathOfModule(comparison_.calls[made.call].target_name);
    for (uint32_t i = made.call + 1; i < comparison_.calls.size(); ++i) {
      const ComparedCall& call = comparison_.calls[i];
      if (!IsForward(call) || path.empty() != PathOfModule(call.target_name).empty()) continue;
      for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
        if (!IsOfUnseenCall(row)) continue;
        if (!path.empty()) return std::isfinite(row.error) && Agrees(row);
        if (seen.insert(i).second) open.push_back(i);
        return true;
      }
      const std::string_view around = PathOfModule(call.target_name);
      const bool is_around = path.size() > around.size() && path.starts_with(around);
      if (!is_around || path[around.size()] != '.') continue;
      if (seen.insert(i).second) open.push_back(i);
      return true;
    }
    return false;
  }

  // Whether the row holds a value that was computed, or a view, and that no recorded call returned.
  [[nodiscard]] bool IsOfUnseenCall(const ComparedRow& row) const {
    if (!measure::HasTensors(row) || row.target->role != ItemRole::kInput) return false;
    const bool is_function = !SeriesOf(comparison_.calls[row.call].target_name).empty();
    if (is_function && (row.target->requires_grad != true || row.golden->shape.size() < 3)) {
      return false;  // parameters among them
    }
    const std::optional<ContentKey> key = KeyOf(*row.target);
    return key && !made_.contains(*key);
  }

  const Comparison& comparison_;
  std::unordered_map<ContentKey, std::vector<uint32_t>, ContentKeyHash> readers_;  // rows
  std::unordered_set<ContentKey, ContentKeyHash> made_;
};

// A vector that a call reads (what is added to all elements alike has no gradient before a norm; a
// matrix has one, and only values that are computed change by more than a step), and the row in
// which it did in the step before.
struct Reading {
  uint32_t before = 0, row = 0;
};
std::vector<Reading> ReadAgain(const Comparison& comparison) {
  std::vector<Reading> readings;
  std::unordered_map<std::string, uint32_t> read;  // the last row in each place
  for (uint32_t i = 0; i < comparison.rows.size(); ++i) {
    const ComparedRow& row = comparison.rows[i];
    const ComparedCall& call = comparison.calls[row.call];
    if (!IsForward(call) || !IsTrained(row) || row.golden->shape.size() != 1) continue;
    std::string place = NameInItsStep(call.target_name) + ' ';
    place += measure::ShortName(*row.target, call.target_name);
    const auto [at, is_first] = read.try_emplace(std::move(place), i);
    const uint32_t before = std::exchange(at->second, i);
    if (!is_first) readings.push_back({before, i});
  }
  return readings;
}

}  // namespace

void ReportUnproven(Comparison& comparison) {
  constexpr size_t kMostNamed = 5;
  size_t count = 0;
  for (const ComparedRow& row : comparison.rows) {
    if (row.reason != kUnproven) continue;
    ++comparison.counts.missing_values;
    if (++count > kMostNamed) continue;
    std::string text = fmt::format(
        "{} is not judged: it differs (relative error {:.3g}) as rounding may make it differ, and "
        "nothing comes of it; what would prove that it is rounding was not recorded",
        row.item().name.view(), row.error);
    if (std::ranges::find(comparison.warnings, text) != comparison.warnings.end()) continue;
    comparison.warnings.push_back(std::move(text));
  }
}

std::vector<uint32_t> UpdatesWithoutEffect(const Comparison& comparison) {
  if (comparison.earlier.empty() || comparison.of_saves) return {};
  // Four numbers of a gradient do not tell which of its elements are rounding.
  const bool hides = comparison.mode == CompareMode::kStatistics;
  if (!hides && (comparison.mode != CompareMode::kTensor || HasGradients(comparison))) return {};
  const std::vector<Reading> readings = ReadAgain(comparison);
  double largest = 0;
  for (const Reading& each : readings) {
    largest = std::max(largest, BetweenExtremes(*comparison.rows[each.before].golden,
                                                *comparison.rows[each.row].golden));
  }
  std::vector<uint32_t> found;
  std::optional<Effects> effects;
  for (const Reading& each : readings) {
    const ComparedRow& row = comparison.rows[each.row];
    const ComparedRow& before = comparison.rows[each.before];
    if (!measure::IsBad(row.verdict) || row.reason != "input-differs") continue;
    if (before.golden->shape != row.golden->shape) continue;
    const bool was_good = measure::IsGood(before.verdict) || before.reason == "zero-both" ||
                          std::ranges::binary_search(found, each.before);
    if (!was_good || !MayBeAStep(comparison, before, row, largest)) continue;
    if (!effects) effects.emplace(comparison);
    if (effects->End(row)) found.push_back(each.row);
  }
  return found;
}

}  // namespace plumbline::pipeline
