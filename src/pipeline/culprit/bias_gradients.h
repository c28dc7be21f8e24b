// Gradients of biases that backward calls do not return: sums of the gradients that came in.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_BIAS_GRADIENTS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_BIAS_GRADIENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "pipeline/culprit/content_key.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Follows one comparison, which must outlive this. The node of a `linear` of more than two
// dimensions returns the gradient of the product alone; that of the bias first shows where an
// optimizer reads it. A module's backward call returns those of its inputs; those of its parameters
// stand apart.
class BiasGradients {
 public:
  explicit BiasGradients(const Comparison& comparison) : comparison_(comparison) {}

  // A paired backward call. Requires: the verdicts of its rows.
  void Remember(const ComparedCall& call);

  // The relative error that a gradient which no recorded call returned may have as the sum that a
  // bias gets: what adding the terms rounds, and what is explained of the terms, without a ceiling
  // (docs/design/verdict.md, "What no recorder sees"). Nothing where on either side no recorded
  // sum comes to it.
  [[nodiscard]] std::optional<double> ExplainedFor(const ComparedRow& row);

 private:
  // All that is added for one bias on one side: over several parts of a batch, over several uses.
  struct Sum {
    std::optional<ContentKey> weight, bias;  // new biases are all zero: weights tell them apart
    double total = 0;                        // of all elements
    double tolerance = 0;                    // of the total
    double rounding = 0;                     // of one element: probable size
  };
  struct Operands {
    const Item* weight = nullptr;
    const Item* bias = nullptr;
  };
  using Sums = std::unordered_map<int64_t, std::vector<Sum>>;  // by elements of the bias

  void Prepare();
  void RememberBias(const ComparedCall& call, bool of_target);
  void RememberParameters(const ComparedCall& call, bool of_target);
  void AddTerms(const ComparedCall& call, bool of_target);
  void AddTerms(const ComparedCall& call, bool of_target, const Operands& operands);

  const Comparison& comparison_;
  // By backward call; golden, target. Which of a module's vectors are biases is told by what adds
  // up to their gradients.
  std::unordered_map<std::string, std::vector<Operands>> biases_[2];
  Sums sums_[2];
  bool is_prepared_ = false;
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_BIAS_GRADIENTS_H_
