// The gradients of a module's parameters, which stand in an entry of their own.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_PARAMETER_GRADIENTS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_PARAMETER_GRADIENTS_H_

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Of one comparison, which must outlive this and keep its calls.
class ParameterGradients {
 public:
  explicit ParameterGradients(const Comparison& comparison);

  // The pair of the gradient of the parameter that `read`, a row of a module's forward call, holds,
  // in the step of that call; null where none was recorded on both sides.
  [[nodiscard]] const ComparedRow* Of(const ComparedRow& read) const;

 private:
  [[nodiscard]] size_t StepOf(uint32_t call) const;

  const Comparison& comparison_;
  std::unordered_map<std::string_view, std::vector<uint32_t>> by_module_;  // calls
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_PARAMETER_GRADIENTS_H_
