// Advice on the result csv of a comparison of operators, as upstream's advisor gives it.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_ADVICE_H_
#define PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_ADVICE_H_

#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::pipeline {

struct OperatorAdvice {
  std::string detection_type;  // "FP16 Overflow", "Input Inconsistent", "Global Consistency"
  std::string index;           // of the first operator that it is about; "NA": none
  std::string advice;
  std::vector<std::string> notes;  // steps that were left out
};

// The first that holds: an overflow of float16; an input node with a cosine similarity below 0.99;
// an operator below 0.99. Rows without a similarity are counted in the advice, never taken for
// good. kNotFound, kIo, kCorrupt: the csv; kInvalidArgument: it has no column CosineSimilarity.
Result<OperatorAdvice> AdviseOn(const std::string& csv_path,
                                const std::vector<std::string>& input_nodes);

// Three lines: type, index, advice.
std::string AdviceText(const OperatorAdvice& advice);

// advisor_summary.txt in `directory`; its path. kInvalidArgument: the result at `csv_path`, which
// the advice is on, is that file.
Result<std::string> WriteAdvice(const OperatorAdvice& advice, const std::string& csv_path,
                                const std::string& directory);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_ADVICE_H_
