// One tensor of one operator, element by element, in files of their own.

#ifndef PLUMBLINE_OPERATORS_OPERATOR_DETAIL_H_
#define PLUMBLINE_OPERATORS_OPERATOR_DETAIL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "operators/compare_operators.h"

namespace plumbline::operators {

struct DetailRequest {
  OperatorRequest recordings;
  std::string op_name;
  TensorPlace place;
  size_t largest = 20;  // differences listed by size
  uint64_t lines_per_file = 1000000;
  bool all_elements = true;  // also the files with every element
  std::string output_directory;
};

struct OperatorDetail {
  std::string summary;             // the text of the summary file
  std::vector<std::string> files;  // paths
  OperatorRow row;                 // values and verdict
};

// Writes {operator}_{input or output}_{index}.npy, _summary.txt, _absolute_error_topn.csv,
// _relative_error_topn.csv and, {lines} rows each, _0.csv, _{lines}.csv, ...; older files of these
// names go first. Errors of CompareOperators(); kNotFound: no such operator or tensor, or it has no
// counterpart; kInvalidArgument: the two sides do not fit (the message is the reason); kIo.
Result<OperatorDetail> DetailOperator(const DetailRequest& request);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_OPERATOR_DETAIL_H_
