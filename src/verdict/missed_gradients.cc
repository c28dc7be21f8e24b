#include "verdict/missed_gradients.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "load/run_reader.h"
#include "measure/cause_class.h"
#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"
#include "record/value.h"
#include "verdict/choose_culprit.h"
#include "verdict/contents.h"

namespace plumbline::verdict {

namespace {

struct Total {
  double mean = 0, size = 0;  // size: root mean squares added up
  double roundoff = 0;        // the largest of any term
};

using Totals = std::unordered_map<ContentKey, Total, ContentKeyHash>;

// The forward and backward calls of one side.
class GradientSide {
 public:
  GradientSide(const Comparison& comparison, bool of_target)
      : comparison_(comparison), of_target_(of_target) {
    for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
      const Text& name = measure::NameOn(comparison.calls[i], of_target);
      if (!name.empty()) calls_.emplace(name, i);
    }
    for (const ComparedRow& row : comparison.rows) {
      const Slot<Item>& item = measure::SideOf(row, of_target_);
      const bool is_forward =
          KindOfCall(measure::NameOn(comparison.calls[row.call], of_target)) == CallKind::kForward;
      const auto key = item && is_forward ? KeyOf(*item) : std::nullopt;
      if (!key) continue;
      if (measure::IsInput(row)) {
        read_.insert(*key);
      } else if (!Reads(comparison.calls[row.call], *key) && made_.insert(*key).second) {
        made_by_size_[key->element_count].push_back(&*item);
      }
    }
  }

  [[nodiscard]] bool Reads(const ContentKey& contents) const { return read_.contains(contents); }

  // Nothing where a gradient has no mean.
  [[nodiscard]] std::optional<Totals> Add() const {
    Totals totals;
    for (const ComparedCall& call : comparison_.calls) {
      const auto forward = calls_.find(ForwardNameOf(measure::NameOn(call, of_target_)));
      if (forward == calls_.end()) continue;
      for (const auto& [leaf, gradient] : Assigned(comparison_.calls[forward->second], call)) {
        if (!AddTo(totals[*KeyOf(*leaf)], *gradient, call)) return std::nullopt;
      }
    }
    return totals;
  }

 private:
  // Whether a call reads, or returns, these contents: one that does both is a view or a copy, and
  // makes nothing.
  [[nodiscard]] bool Reads(const ComparedCall& call, const ContentKey& contents) const {
    return Holds(call, contents, /*as_input=*/true);
  }
  [[nodiscard]] bool Returns(const ComparedCall& call, const ContentKey& contents) const {
    return Holds(call, contents, /*as_input=*/false);
  }
  [[nodiscard]] bool Holds(const ComparedCall& call, const ContentKey& contents,
                           bool as_input) const {
    return std::ranges::any_of(measure::RowsOf(comparison_, call), [&](const ComparedRow& row) {
      const Slot<Item>& item = measure::SideOf(row, of_target_);
      return item && measure::IsInput(*item) == as_input && KeyOf(*item) == contents;
    });
  }

  // Where a sum cancels, what is left carries the rounding of its terms.
  [[nodiscard]] bool AddTo(Total& total, const Item& gradient, const ComparedCall& call) const {
    const std::optional<double> mean = NumberOf(gradient.statistics[2]);
    if (!mean || !std::isfinite(*mean)) return false;
    std::vector<measure::InputError> incoming;
    for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
      const Slot<Item>& item = measure::SideOf(row, of_target_);
      if (item && measure::IsInput(row) && item->is_tensor) incoming.push_back({&*item, 0});
    }
    const double terms =
        measure::PropagationTo(gradient, measure::NameOn(call, of_target_), incoming).cancellation;
    total.mean += *mean;
    total.roundoff = std::max(total.roundoff, measure::RoundoffOf(gradient, gradient));
    total.size += measure::RmsOf(gradient).value_or(0) * terms;
    return true;
  }

  // What a forward call reads and may be derived for, in its order.
  [[nodiscard]] std::vector<const Item*> Operands(const ComparedCall& call) const {
    std::vector<const Item*> operands;
    for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
      const Slot<Item>& item = measure::SideOf(row, of_target_);
      const bool is_operand = item && measure::IsInput(*item) && item->is_tensor;
      if (is_operand && item->requires_grad != false) operands.push_back(&*item);
    }
    return operands;
  }
  [[nodiscard]] std::vector<const Item*> Gradients(const ComparedCall& backward) const {
    std::vector<const Item*> gradients;
    for (const ComparedRow& row : measure::RowsOf(comparison_, backward)) {
      const Slot<Item>& item = measure::SideOf(row, of_target_);
      if (item && !measure::IsInput(*item) && item->is_tensor) gradients.push_back(&*item);
    }
    return gradients;
  }

  // Whether no recorded call made an operand of `call`.
  [[nodiscard]] bool IsLeaf(const ComparedCall& call, const Item& operand) const {
    if (!IsTelling(operand)) return false;  // zeros of one layer are those of another
    const std::optional<ContentKey> key = KeyOf(operand);
    // What a view returns is counted where that is read.
    return key && !Returns(call, *key) && !made_.contains(*key) &&
           !IsLessThanNumber(operand, key->element_count);
  }

  // The leaves that a forward call reads, each with the gradient that its backward call returns
  // for it: by place where every operand has one, else by shape or size.
  [[nodiscard]] std::vector<std::pair<const Item*, const Item*>> Assigned(
      const ComparedCall& forward, const ComparedCall& backward) const {
    std::vector<const Item*> operands = Operands(forward);
    const std::vector<const Item*> gradients = Gradients(backward);
    // What passes through unchanged in another shape is that of a view of the result, which may
    // have as many elements as an operand.
    const auto passes = [&](const Item& gradient) {
      const std::optional<ContentKey> key = KeyOf(gradient);
      return key && Holds(backward, *key, /*as_input=*/true);
    };
    const auto is_of = [&](const Item* operand, const Item* gradient) {
      if (operand->shape == gradient->shape) return true;
      return measure::ElementsOf(*operand) == measure::ElementsOf(*gradient) && !passes(*gradient);
    };
    std::vector<std::pair<const Item*, const Item*>> assigned;
    if (std::ranges::equal(operands, gradients, is_of)) {
      for (size_t i = 0; i < operands.size(); ++i) {
        if (IsLeaf(forward, *operands[i])) assigned.emplace_back(operands[i], gradients[i]);
      }
      return assigned;
    }
    // Each is that of an operand of its shape, or else of its size; those of values on the way too.
    for (const Item* gradient : gradients) {
      auto operand = std::ranges::find_if(
          operands, [&](const Item* each) { return each->shape == gradient->shape; });
      if (operand == operands.end()) {
        operand =
            std::ranges::find_if(operands, [&](const Item* each) { return is_of(each, gradient); });
      }
      if (operand == operands.end()) continue;
      if (IsLeaf(forward, **operand)) assigned.emplace_back(*operand, gradient);
      operands.erase(operand);
    }
    return assigned;
  }

  // `s - x` is not recorded.
  [[nodiscard]] bool IsLessThanNumber(const Item& item, int64_t element_count) const {
    const auto made = made_by_size_.find(element_count);
    return made != made_by_size_.end() && std::ranges::any_of(made->second, [&](const Item* each) {
             return IsNumberLess(item, *each);
           });
  }

  const Comparison& comparison_;
  const bool of_target_;
  std::unordered_map<std::string_view, uint32_t> calls_;
  std::unordered_set<ContentKey, ContentKeyHash> made_, read_;
  std::unordered_map<int64_t, std::vector<const Item*>> made_by_size_;
};

}  // namespace

bool CutsAPath(const Comparison& comparison, bool of_target) {
  std::unordered_set<std::string_view> own;
  std::unordered_map<std::string_view, std::string_view> own_of_other;  // of paired calls
  for (const ComparedCall& call : comparison.calls) {
    const Text& name = measure::NameOn(call, of_target);
    if (call.paired()) own_of_other.emplace(measure::NameOn(call, !of_target), name);
    if (!name.empty()) own.insert(name);
  }
  const auto is_backward = [](std::string_view name) {
    return KindOfCall(name) == CallKind::kBackward;
  };
  if (std::ranges::none_of(own, is_backward)) return false;  // an inference
  return std::ranges::any_of(comparison.calls, [&](const ComparedCall& call) {
    if (!measure::NameOn(call, of_target).empty()) return false;
    const auto forward = own_of_other.find(ForwardNameOf(measure::NameOn(call, !of_target)));
    return forward != own_of_other.end() && !own.contains(BackwardNameOf(forward->second));
  });
}

namespace {

using Agrees = bool(const Total& one, const Total& other, double noise);

bool AgreeWithinNoise(const Total& one, const Total& other, double noise) {
  return std::abs(one.mean - other.mean) <= noise * (one.size + other.size);
}

// As closely as the rounding of the terms explains. Before a normalization means vanish: one that
// does not stand out by half of the digits tells nothing.
bool AgreeWithinRounding(const Total& one, const Total& other, double /*noise*/) {
  const double roundoff = std::max(one.roundoff, other.roundoff);
  const bool tells = std::abs(other.mean) >= std::sqrt(roundoff) * other.size;
  return tells && AgreeWithinNoise(one, other, measure::kNoiseFactor * roundoff);
}

// How many tensors get a gradient on both sides; nothing where one does not get the same.
std::optional<size_t> CountAgreeing(const Comparison& comparison, double noise, Agrees& agree) {
  const GradientSide target(comparison, true), golden(comparison, false);
  const std::optional<Totals> ours = target.Add(), theirs = golden.Add();
  if (!ours || !theirs) return std::nullopt;
  const auto agrees = [&](const Totals& some, const GradientSide& other_side,
                          const Totals& others) {
    return std::ranges::all_of(some, [&](const auto& leaf) {
      if (!other_side.Reads(leaf.first)) return true;
      const auto found = others.find(leaf.first);
      return agree(leaf.second, found == others.end() ? Total() : found->second, noise);
    });
  };
  if (!agrees(*ours, golden, *theirs) || !agrees(*theirs, target, *ours)) return std::nullopt;
  return static_cast<size_t>(
      std::ranges::count_if(*ours, [&](const auto& leaf) { return theirs->contains(leaf.first); }));
}

}  // namespace

bool GiveTheSameToLeaves(const Comparison& comparison, double noise) {
  return CountAgreeing(comparison, noise, AgreeWithinNoise).has_value();
}

bool LeavesAgree(const Comparison& comparison) {
  return CountAgreeing(comparison, 0, AgreeWithinRounding).value_or(0) > 0;
}

namespace {

// What the target's forward calls make, and from what.
class Ancestry {
 public:
  explicit Ancestry(const Comparison& comparison) : comparison_(comparison) {
    for (uint32_t i = 0; i < comparison.rows.size(); ++i) {
      const ComparedRow& row = comparison.rows[i];
      if (!row.target || measure::IsInput(row)) continue;
      if (const auto key = KeyOf(*row.target)) makers_[*key].push_back(row.call);
    }
  }

  // Whether nothing that leads to a value which `reader` reads requires a gradient, while some call
  // on the way has no counterpart.
  [[nodiscard]] bool AsksForNone(const Item& value, uint32_t reader) const {
    struct Read {
      const Item* item;
      uint32_t call;
    };
    std::vector<Read> open{{&value, reader}};
    std::unordered_set<uint32_t> met;
    bool any_alone = false;
    while (!open.empty()) {
      const Read at = open.back();
      open.pop_back();
      if (at.item->requires_grad != false) return false;
      const std::optional<uint32_t> maker = MakerOf(*at.item, at.call);
      if (!maker || !met.insert(*maker).second) continue;
      any_alone = any_alone || !comparison_.calls[*maker].paired();
      for (const ComparedRow& row : measure::RowsOf(comparison_, comparison_.calls[*maker])) {
        if (!row.target || !row.target->is_tensor || !measure::IsInput(row)) continue;
        const bool is_made = MakerOf(*row.target, *maker).has_value();
        if (!is_made && row.golden && row.golden->requires_grad == true) return false;
        open.push_back({&*row.target, *maker});
      }
    }
    return any_alone;
  }

 private:
  [[nodiscard]] std::optional<uint32_t> MakerOf(const Item& item, uint32_t reader) const {
    const std::optional<ContentKey> key = KeyOf(item);
    const auto found = key ? makers_.find(*key) : makers_.end();
    if (found == makers_.end()) return std::nullopt;
    std::optional<uint32_t> maker;
    for (const uint32_t call : found->second) {
      if (call < reader) maker = call;
    }
    return maker;
  }

  const Comparison& comparison_;
  std::unordered_map<ContentKey, std::vector<uint32_t>, ContentKeyHash> makers_;
};

std::vector<const Item*> ResultsOf(const Comparison& comparison, const ComparedCall& call) {
  std::vector<const Item*> results;
  for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
    if (!measure::IsInput(row)) results.push_back(&row.item());
  }
  return results;
}

bool Agree(const Item& target, const Item& golden, double noise) {
  const Result<int64_t> count = ElementCount(golden.shape);
  if (!count || *count < 1 || target.shape != golden.shape) return false;
  if (!NumberOf(target.statistics[0]) || !NumberOf(golden.statistics[0])) {
    return false;
  }
  return measure::StatisticError(target.statistics, golden.statistics, *count) <= noise;
}

// The gradients that the target lacks; empty if anything else differs.
std::vector<const Item*> LackedGradients(const Comparison& comparison, const ComparedCall& call,
                                         double noise) {
  const auto twin = std::ranges::find_if(comparison.calls, [&](const ComparedCall& each) {
    return each.target_name.empty() && each.golden_name == call.target_name;
  });
  if (twin == comparison.calls.end()) return {};
  const std::vector<const Item*> target = ResultsOf(comparison, call);
  const std::vector<const Item*> golden = ResultsOf(comparison, *twin);
  if (target.size() != golden.size()) return {};
  std::vector<const Item*> lacked;
  for (size_t i = 0; i < target.size(); ++i) {
    if (!golden[i]->is_tensor && !target[i]->is_tensor) continue;
    if (!golden[i]->is_tensor) return {};
    if (!target[i]->is_tensor) {
      lacked.push_back(golden[i]);
    } else if (!Agree(*target[i], *golden[i], noise)) {
      return {};
    }
  }
  return lacked;
}

}  // namespace

bool LacksOnlyNeedlessGradients(const Comparison& comparison, uint32_t call, double noise) {
  const Text& name = comparison.calls[call].target_name;
  const ComparedCall* forward = ForwardCallOf(comparison, name);
  if (forward == nullptr || !forward->paired()) return false;
  const auto index = static_cast<uint32_t>(forward - comparison.calls.data());
  const std::vector<const Item*> lacked =
      LackedGradients(comparison, comparison.calls[call], noise);
  if (lacked.empty()) return false;
  const Ancestry ancestry(comparison);
  return std::ranges::all_of(lacked, [&](const Item* gradient) {
    return std::ranges::any_of(measure::RowsOf(comparison, *forward), [&](const ComparedRow& row) {
      return measure::IsInput(row) && row.target->is_tensor && row.golden->requires_grad == true &&
             measure::ElementsOf(*row.target) == measure::ElementsOf(*gradient) &&
             ancestry.AsksForNone(*row.target, index);
    });
  });
}

namespace {

// Matrices one after the other, row-major.
struct Matrices {
  size_t size = 0;  // rows, and columns
  std::vector<double> values;

  // Of the element that stands at the other side of the diagonal.
  [[nodiscard]] size_t Mirrored(size_t i) const {
    const size_t in_matrix = i % (size * size);
    return i - in_matrix + in_matrix % size * size + in_matrix / size;
  }
};

std::optional<Matrices> Load(const std::string& directory, const Item& item) {
  const Shape& shape = item.shape;
  const size_t rank = shape.size();
  if (!item.is_tensor || item.data_name.empty() || rank < 2) return std::nullopt;
  if (shape[rank - 1] != shape[rank - 2] || shape[rank - 1] < 2) return std::nullopt;
  const auto file = load::OpenTensorIn(directory, item.data_name);
  if (!file) return std::nullopt;
  Result<std::vector<double>> values = measure::DoublesOf(file->view());
  if (!values || values->empty()) return std::nullopt;
  return Matrices{static_cast<size_t>(shape[rank - 1]), std::move(*values)};
}

// Whether the antisymmetric part is nothing but rounding and something stands beside the diagonal.
bool IsSymmetric(const Matrices& matrices, double noise) {
  double whole = 0, apart = 0, beside = 0;
  for (size_t i = 0; i < matrices.values.size(); ++i) {
    const double value = matrices.values[i];
    const size_t mirrored = matrices.Mirrored(i);
    whole += value * value;
    if (mirrored == i) continue;
    const double difference = value - matrices.values[mirrored];
    apart += difference * difference;
    beside += value * value;
  }
  return std::sqrt(apart) <= noise * std::sqrt(whole) &&
         std::sqrt(beside) > noise * std::sqrt(whole);
}

// Relative error of the symmetric part.
double ErrorOfSymmetricPart(const Matrices& target, const Matrices& golden) {
  double difference = 0, whole = 0;
  for (size_t i = 0; i < golden.values.size(); ++i) {
    const size_t mirrored = golden.Mirrored(i);
    const double a = (target.values[i] + target.values[mirrored]) / 2;
    const double b = (golden.values[i] + golden.values[mirrored]) / 2;
    difference += (a - b) * (a - b);
    whole += b * b;
  }
  return std::sqrt(difference / whole);  // NaN where there is none
}

// Whether the means agree, which antisymmetric parts do not touch: dear files stay closed for most
// faults.
bool HaveOneMean(const Item& target, const Item& golden, double noise) {
  const std::optional<double> a = NumberOf(target.statistics[2]);
  const std::optional<double> b = NumberOf(golden.statistics[2]);
  const std::optional<double> size = measure::RmsOf(golden);
  return a && b && size && std::abs(*a - *b) <= noise * *size;
}

// The forward result of the call whose backward reads the row's gradient.
const ComparedRow* ValueOf(const Comparison& comparison, const ComparedRow& row) {
  const std::string forward = ForwardNameOf(comparison.calls[row.call].target_name);
  const auto call = std::ranges::find_if(comparison.calls, [&](const ComparedCall& each) {
    return !forward.empty() && each.paired() && each.target_name == forward;
  });
  if (call == comparison.calls.end()) return nullptr;
  for (const ComparedRow& each : measure::RowsOf(comparison, *call)) {
    if (!measure::IsInput(each) && each.target && each.golden) return &each;
  }
  return nullptr;
}

}  // namespace

bool MeansTheSameForSymmetricValue(const Comparison& comparison, const ComparedRow& row,
                                   double noise) {
  if (!row.target || !row.golden || !measure::IsInput(row)) return false;
  if (row.target->shape != row.golden->shape) return false;
  if (!HaveOneMean(*row.target, *row.golden, noise)) return false;
  const ComparedRow* value = ValueOf(comparison, row);
  if (value == nullptr || !measure::IsGood(value->verdict)) return false;
  if (value->target->shape != row.target->shape) return false;
  for (const bool of_target : {true, false}) {
    const auto matrices =
        Load(TensorDirectoryOf(comparison, of_target), of_target ? *value->target : *value->golden);
    if (!matrices || !IsSymmetric(*matrices, noise)) return false;
  }
  const auto target = Load(TensorDirectoryOf(comparison, true), *row.target);
  const auto golden = Load(TensorDirectoryOf(comparison, false), *row.golden);
  return target && golden && target->values.size() == golden->values.size() &&
         ErrorOfSymmetricPart(*target, *golden) <= noise;
}

}  // namespace plumbline::verdict
