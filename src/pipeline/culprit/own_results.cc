#include "pipeline/culprit/own_results.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "measure/compared_row.h"
#include "measure/stats_metrics.h"
#include "measure/verdict.h"
#include "pipeline/culprit/content_key.h"
#include "pipeline/culprit/culprit_text.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

// The floating-point results of one side's own forward calls that no later call reads.
std::vector<const ComparedRow*> UnreadResults(const Comparison& comparison, bool of_target) {
  std::unordered_map<ContentKey, uint32_t, ContentKeyHash> last_reader;
  for (const ComparedRow& row : comparison.rows) {
    const Slot<Item>& item = measure::SideOf(row, of_target);
    const bool is_read = item && measure::IsInput(*item);
    if (const auto key = is_read ? KeyOf(*item) : std::nullopt) last_reader[*key] = row.call;
  }
  std::vector<const ComparedRow*> unread;
  for (const ComparedRow& row : comparison.rows) {
    const ComparedCall& call = comparison.calls[row.call];
    const std::string& name = measure::NameOn(call, of_target);
    if (call.paired() || name.empty() || KindOfCall(name) != CallKind::kForward) continue;
    const Slot<Item>& item = measure::SideOf(row, of_target);
    if (!item || measure::IsInput(*item) || !item->is_tensor) continue;
    if (measure::RoundoffOf(*item, *item) == 0) continue;
    const auto key = KeyOf(*item);
    const auto found = key ? last_reader.find(*key) : last_reader.end();
    if (found == last_reader.end() || found->second <= row.call) unread.push_back(&row);
  }
  return unread;
}

// The target's calls through which its gradients went.
class Derived {
 public:
  explicit Derived(const Comparison& comparison) : comparison_(comparison) {
    for (const ComparedCall& call : comparison.calls) {
      if (std::string forward = ForwardNameOf(call.target_name); !forward.empty()) {
        names_.insert(std::move(forward));
      }
    }
    for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
      if (names_.contains(comparison.calls[i].target_name)) last_ = i;
    }
  }

  // Whether no loss depends on a result.
  [[nodiscard]] bool LeavesOut(const ComparedRow& result) const {
    return result.target->requires_grad == true && result.call < last_ &&
           !names_.contains(comparison_.calls[result.call].target_name);
  }

 private:
  const Comparison& comparison_;
  std::unordered_set<std::string> names_;
  uint32_t last_ = 0;
};

// Whether none of `others` has the shape of `result`, or one of these agrees with it.
bool AgreesWithOne(const Item& result, const std::vector<const ComparedRow*>& others,
                   double noise) {
  bool any = false;
  for (const ComparedRow* other : others) {
    if (other->golden->shape != result.shape) continue;
    any = true;
    const auto count = static_cast<int64_t>(measure::ElementsOf(result));
    const double error =
        measure::StatisticError(result.statistics, other->golden->statistics, count);
    if (error <= noise) return true;  // false for NaN
  }
  return !any;
}

}  // namespace

bool AllOwnResultsAreRead(const Comparison& comparison, double noise) {
  const std::vector<const ComparedRow*> unread = UnreadResults(comparison, true);
  if (unread.empty()) return true;
  const std::vector<const ComparedRow*> of_golden = UnreadResults(comparison, false);
  const Derived derived(comparison);
  return std::ranges::all_of(unread, [&](const ComparedRow* row) {
    return derived.LeavesOut(*row) && AgreesWithOne(*row->target, of_golden, noise);
  });
}

}  // namespace plumbline::pipeline
