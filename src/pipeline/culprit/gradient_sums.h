// Gradients of a value that several calls read are added up where no recorder sees it.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_GRADIENT_SUMS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_GRADIENT_SUMS_H_

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Follows one comparison, which must outlive this.
class GradientSums {
 public:
  struct Sum {
    Verdict worst = Verdict::kSame;  // of the terms
    double explained = 0;            // relative error: of the terms and of adding them
  };

  explicit GradientSums(const Comparison& comparison) : comparison_(comparison) {}

  // A gradient that a backward call returned. Requires: its verdict; both sides recorded.
  void Remember(uint32_t row);
  // Of a backward call without counterpart, on the target's side.
  void RememberAlone(const ComparedCall& call);
  // Two or three remembered gradients whose means add up to that of `row` on both sides, while
  // their norms can. Or one or two of calls without counterpart that do so on the target's side,
  // where both sides are no larger than the rounding of these: sums that cancel leave nothing else.
  // Nothing where there are none.
  [[nodiscard]] std::optional<Sum> FindTerms(const ComparedRow& row) const;
  // The same; or one that is so much larger that `row` is its rounding.
  [[nodiscard]] std::optional<Sum> Find(const ComparedRow& row) const;

 private:
  struct Alone {
    const Item* item;
    double rounding;  // absolute, root mean square
  };

  [[nodiscard]] std::optional<Sum> FindAlone(const ComparedRow& row) const;

  const Comparison& comparison_;
  // By element count.
  std::unordered_map<int64_t, std::vector<uint32_t>> recent_;
  std::unordered_map<int64_t, std::vector<Alone>> alone_;
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_GRADIENT_SUMS_H_
