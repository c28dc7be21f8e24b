// Compares two recordings of operators: device dumps with device dumps, with a framework's arrays
// or with those of a quantised model (docs/reference/msaccucmp.md).

#ifndef PLUMBLINE_OPERATORS_COMPARE_OPERATORS_H_
#define PLUMBLINE_OPERATORS_COMPARE_OPERATORS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/dump_algorithms.h"
#include "operators/measure_operator.h"
#include "plumbline/result.h"
#include "report/tensor_answer.h"

namespace plumbline::operators {

// Part of a network, by execution sequence from 1 on.
struct OperatorRange {
  std::optional<std::array<int64_t, 3>> span;  // start, end (-1: last), step; both ends included
  std::vector<int64_t> chosen;
  [[nodiscard]] bool is_set() const { return span.has_value() || !chosen.empty(); }
};

struct OperatorRequest {
  std::string target, golden;                         // directories
  std::string fusion_rule, quant_rule, unfused_rule;  // JSON files; empty: none
  std::vector<measure::DumpAlgorithm> algorithms = measure::AllDumpAlgorithms();
  OwnFunctions own;
  OperatorRange range;
  uint64_t most_elements = 0;   // compare only the first; 0: all
  bool slice_by_slice = false;  // operators that FFTS+ cut are not put together
  bool with_overflow = false;   // look for float16 values at the end of their range
  int threads = 0;
};

struct OperatorComparison {
  std::vector<PairedOperator> pairs;
  std::vector<OperatorRow> rows;         // in the order of the pairs
  std::vector<std::string> input_nodes;  // operators that feed the network, by the rule file
  std::vector<std::string> notes;        // what was left out, one sentence each
  uint64_t unnamed = 0;                  // dumps of either side whose operator has no name
  bool is_target_array = false, is_golden_array = false;
  bool has_sequence = false;            // a range was asked for
  bool with_overflow = false;           // as the request has it
  std::vector<std::string> algorithms;  // names of the columns
  report::TensorAnswer answer;
};

// Pairs only; nothing is read but names and rule files. kInvalidArgument: the kinds of the two
// directories cannot be compared, or need or refuse a rule file; a range outside of the network.
// kNotFound: no dumps, or no operator of the rule file has any. kCorrupt: a rule file.
Result<OperatorComparison> PairOperators(const OperatorRequest& request);

// The rows of the pairs and the answer.
void MeasurePairs(const OperatorRequest& request, OperatorComparison& comparison);

// Pairs and measures. A file that cannot be read is a row that says so.
Result<OperatorComparison> CompareOperators(const OperatorRequest& request);

// Verdict first, then counts, for a terminal.
std::string OperatorText(const OperatorComparison& comparison);

// Several models of one recording, each compared by its own rule file.

// One model on one device: {device}/{model}/{model id}/{step} below the recording.
struct BatchModel {
  std::string device, model, step;
  std::string directory;
  std::string rule_path;

  // "0_resnet_10_result", the start of its result's name.
  [[nodiscard]] std::string ResultPrefix() const {
    return device + "_" + model + "_" + step + "_result";
  }
};

struct OperatorBatch {
  std::vector<BatchModel> models;
  std::vector<std::string> notes;
};

// Joins the rule files of `rules` (their graph names) with the models below `recording`, a
// directory named by its time. Where no name fits, the second number in both names decides. Of
// several steps the highest counts. kInvalidArgument: `recording` is not such a directory;
// kNotFound: nothing fits; kCorrupt: a rule file.
Result<OperatorBatch> FindBatch(const std::string& recording, const std::string& rules);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_COMPARE_OPERATORS_H_
