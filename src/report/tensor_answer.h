// The answer of a comparison whose tensors are judged one by one, without calls around them.

#ifndef PLUMBLINE_REPORT_TENSOR_ANSWER_H_
#define PLUMBLINE_REPORT_TENSOR_ANSWER_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/array_verdict.h"
#include "plumbline/compare.h"

namespace plumbline::report {

struct JudgedTensor {
  std::string operation, name;
  bool is_output = false;
  bool paired = true;
  measure::ArrayVerdict verdict;
};

struct TensorAnswer {
  // The first operator with a broken result and no broken input; that of the first broken tensor
  // where there is none such. Empty: nothing is broken.
  std::string first_wrong;
  JudgedTensor shown;                            // its tensor
  std::array<uint64_t, kVerdictCount> counts{};  // by Verdict
  uint64_t unpaired = 0, unreadable = 0;
  // Of the pairs that could be read, those without a verdict: NaN or infinity on both sides, no
  // elements, another form. Zeros on both sides, empty tensors and those that stand for nothing do
  // not count.
  uint64_t undecided = 0;
  uint64_t left_out = 0;  // parts of the input that could not be used
  [[nodiscard]] uint64_t CountOf(Verdict verdict) const {
    return counts[static_cast<size_t>(verdict)];
  }
};

// `tensors` in the order in which they were computed.
TensorAnswer AnswerOf(std::span<const JudgedTensor> tensors, uint64_t left_out);
// For a terminal. `left_out_name`: "rows of statistic.csv".
std::string AnswerText(const TensorAnswer& answer, std::string_view left_out_name);
// As FailsOn() of compare.h.
Result<bool> AnswerFailsOn(const TensorAnswer& answer, const std::vector<std::string>& conditions);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_TENSOR_ANSWER_H_
