// What an optimizer makes of gradients, element by element.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_GRADIENT_TRAIL_H_
#define PLUMBLINE_PIPELINE_CULPRIT_GRADIENT_TRAIL_H_

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "measure/compared_row.h"
#include "pipeline/culprit/content_key.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Contents of golden tensors: gradients that forward calls read, and what calls that work element
// by element made of them. Some elements may be rounding alone, whatever the error of the whole is.
class GradientTrail {
 public:
  // `hidden`: relative error that statistics may hide because single elements may be anything.
  void Add(const Item& golden, double hidden = 0) {
    const std::optional<ContentKey> key = KeyOf(golden);
    if (!key) return;
    double& known = hidden_[*key];
    known = std::max(known, hidden);
  }
  // Nothing: it is none of these.
  [[nodiscard]] std::optional<double> HiddenIn(const Item& golden) const {
    const std::optional<ContentKey> key = hidden_.empty() ? std::nullopt : KeyOf(golden);
    const auto found = key ? hidden_.find(*key) : hidden_.end();
    return found == hidden_.end() ? std::nullopt : std::optional(found->second);
  }
  // Truth values of a call, which have no contents to follow. Requires: a row of the comparison.
  void AddTruth(const ComparedRow& row) { truths_[row.golden->shape] = &row; }
  // The last ones of that shape that differ as the row does; null: none.
  [[nodiscard]] const ComparedRow* TruthOf(const ComparedRow& row) const {
    const auto found = truths_.find(row.golden->shape);
    if (found == truths_.end()) return nullptr;
    const ComparedRow& truth = *found->second;
    const bool is_same = truth.golden->dtype == row.golden->dtype && truth.error == row.error &&
                         measure::HasSameExtremes(*truth.golden, *row.golden) &&
                         measure::HasSameExtremes(*truth.target, *row.target);
    return is_same ? &truth : nullptr;
  }
  [[nodiscard]] bool Has(const Item& golden) const { return HiddenIn(golden).has_value(); }

 private:
  std::unordered_map<ContentKey, double, ContentKeyHash> hidden_;
  std::map<Shape, const ComparedRow*> truths_;
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_GRADIENT_TRAIL_H_
