// The table of compared operators, the advice on it, and upstream's log lines.

#ifndef PLUMBLINE_OPERATORS_OPERATOR_CSV_H_
#define PLUMBLINE_OPERATORS_OPERATOR_CSV_H_

#include <string>
#include <string_view>
#include <vector>

#include "operators/compare_operators.h"
#include "plumbline/result.h"

namespace plumbline::operators {

// The result files of a comparison of operators.

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

// Advice on the result csv of a comparison of operators, as upstream's advisor gives it.

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

// Texts that custom AI CPU operators left in their dumps.

// Writes every workspace of the dump, without its NUL bytes, as {name of the file}.{i}.log in
// `directory`; their paths, none if the dump has no workspace. Errors of acl::DumpFile::Open();
// kCorrupt: a workspace is cut; kIo.
Result<std::vector<std::string>> SaveSpaceLogs(const std::string& dump_path,
                                               const std::string& directory);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_OPERATOR_CSV_H_
