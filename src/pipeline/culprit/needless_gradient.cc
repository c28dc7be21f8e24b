#include "pipeline/culprit/needless_gradient.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "measure/compared_row.h"
#include "measure/stats_metrics.h"
#include "pipeline/culprit/content_key.h"
#include "pipeline/culprit/culprit_text.h"
#include "record/recorded_number.h"

namespace plumbline::pipeline {
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
  const std::string& name = comparison.calls[call].target_name;
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

}  // namespace plumbline::pipeline
