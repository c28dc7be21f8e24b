// How far values may differ that come from calls which compute otherwise on the two sides.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_ERRORS_BEFORE_H_
#define PLUMBLINE_PIPELINE_CULPRIT_ERRORS_BEFORE_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "pipeline/culprit/content_key.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Follows one comparison, which must outlive this.
class ErrorsBefore {
 public:
  explicit ErrorsBefore(const Comparison& comparison) : comparison_(comparison) {}

  // The relative error that what the target reads in `row` inherits from values in which the sides
  // agree: back through the target's calls that have no counterpart or return something else, the
  // largest error of what these read, times their condition. Requires: verdicts of all calls
  // before.
  [[nodiscard]] double LeadingTo(const ComparedRow& row);
  // The same of a result of the target, by way of all that its call reads.
  [[nodiscard]] double Through(const ComparedRow& result);

 private:
  void Prepare();
  // The error of contents in which the sides agree before `call`, or as it reads them, if they do.
  [[nodiscard]] bool FindAgreeing(const std::vector<uint32_t>& rows, uint32_t call,
                                  double& error) const;

  const Comparison& comparison_;
  bool is_prepared_ = false;
  std::unordered_map<ContentKey, std::vector<uint32_t>, ContentKeyHash> rows_;  // of the target
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_ERRORS_BEFORE_H_
