// Tensors of a run that may explain a wrong one.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_CAUSE_CANDIDATES_H_
#define PLUMBLINE_PIPELINE_CULPRIT_CAUSE_CANDIDATES_H_

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/tensor_file.h"
#include "measure/cause_class.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Two recordings and what was found so far. Borrowed.
struct CauseContext {
  const Run& target;
  const Run& golden;
  const Comparison& comparison;
};

// Open tensor files with what they are. Views stay valid while the object lives.
class CandidateFiles {
 public:
  void Add(std::string name, measure::CauseCandidate::Role role, TensorFile file) {
    files_.push_back(std::move(file));
    facts_.push_back({std::move(name), role});
  }
  [[nodiscard]] std::vector<measure::CauseCandidate> views() const;
  [[nodiscard]] size_t size() const { return files_.size(); }

 private:
  std::deque<TensorFile> files_;
  std::vector<std::pair<std::string, measure::CauseCandidate::Role>> facts_;
};

// Of the pair in row `row_index`: the good inputs and parameters of its call (of a backward call
// also those of the forward call), earlier values of the target with the same statistics, values
// whose norm is that of the difference, the same item at other steps, and that of sibling ranks.
// Files that cannot be read are left out.
CandidateFiles CollectCandidates(const CauseContext& context, uint32_t row_index);

// Whether two items hold the same elements as far as digests or statistics tell.
bool HasSameContents(const Item& a, const Item& b);

// Whether the call of that index can have made what one side of `row` holds. A producer is earlier
// than its consumer; golden's calls may have another order than the comparison's, but one that
// reads the value did not make it.
bool MayMake(const Comparison& comparison, uint32_t maker, const ComparedRow& row, bool of_target);

// The call without counterpart whose result has the contents of the row's target (golden) side;
// empty when there is none.
std::string UnmatchedProducer(const Comparison& comparison, const ComparedRow& row, bool of_target);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_CAUSE_CANDIDATES_H_
