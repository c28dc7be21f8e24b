// The result files of a comparison of operators.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_CSV_H_
#define PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_CSV_H_

#include <string>
#include <string_view>

#include "pipeline/operators/compare_operators.h"

namespace plumbline::pipeline {

// Whether every result has a column of this name, so that an algorithm of the user cannot.
bool IsResultColumn(std::string_view name);

// One row per tensor in the file `path`; `is_csv` false: blanks between the cells. Every row has
// the cells of the header.
Status WriteOperatorTable(const OperatorComparison& comparison, const std::string& path,
                          bool is_csv);

// {prefix}_{time}.csv in `directory`, the same; its path.
Result<std::string> WriteOperatorCsv(const OperatorComparison& comparison,
                                     const std::string& directory, const std::string& prefix);

// mapping_{time}.csv: which file is compared with which; its path.
Result<std::string> WriteOperatorMapping(const OperatorComparison& comparison,
                                         const std::string& directory);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_CSV_H_
