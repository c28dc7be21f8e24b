// Two operator dumps in HDF5 files compared (docs/formats/hdf5_dump.md).

#ifndef PLUMBLINE_OPERATORS_COMPARE_HDF5_H_
#define PLUMBLINE_OPERATORS_COMPARE_HDF5_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/csv.h"
#include "formats/hdf5/hdf5_reader.h"
#include "measure/dump_algorithms.h"
#include "plumbline/result.h"
#include "report/tensor_answer.h"

namespace plumbline::operators {

// Which calls of two operator dumps stand against each other.

struct Hdf5Call {
  std::string operation;
  int64_t id = 0;
  [[nodiscard]] std::string text() const { return "/" + operation + "/" + std::to_string(id); }
  friend auto operator<=>(const Hdf5Call&, const Hdf5Call&) = default;
};

struct Hdf5CallPairs {
  // By the target's sequence ids. Without a golden call where there is none.
  std::vector<std::pair<Hdf5Call, std::optional<Hdf5Call>>> pairs;
  std::vector<Hdf5Call> golden_only;  // by sequence id
};

// `by_id`: a call stands against that of the same sequence id, else against that of the same
// position among the calls of its operator.
Hdf5CallPairs PairHdf5Calls(const hdf5::DumpReader& target, const hdf5::DumpReader& golden,
                            bool by_id);

struct Hdf5Row {
  int64_t index = 0;  // sequence id of the target; behind all of them for golden calls alone
  std::string operation;
  std::string target_path, golden_path;  // "/add_Tensor/7/input/self"; "*": there is none
  std::string dtype, shape;
  std::vector<std::string> algorithms;  // cells, empty where there is nothing to measure
  std::string fail_reason;              // upstream's column
  report::JudgedTensor judged;
};

struct Hdf5CompareOptions {
  int threads = 0;  // 0: one per core
  std::vector<measure::DumpAlgorithm> algorithms = measure::AllDumpAlgorithms();
};

struct Hdf5Comparison {
  std::vector<measure::DumpAlgorithm> algorithms;
  bool target_is_npu = false;  // by its first tensor
  std::vector<Hdf5Row> rows;   // in the order of the target's sequence ids, inputs first
  report::TensorAnswer answer;
};

// Calls of an operator pair by their position; one of several names by those of the other device
// (hdf5::OperatorNames(), and the prefixes Npu, Cudnn, Thnn). Where the target has no inputs, which
// a replay leaves, outputs pair by equal sequence id. Numbers and lists of numbers are rows only
// where they differ. Values that cannot be read are rows. Errors of DumpReader::Open().
// Two files of one array each (hdf5::ReadSoleArray()) are one row; kInvalidArgument: only one of
// them is such a file.
Result<Hdf5Comparison> CompareHdf5(const std::string& target, const std::string& golden,
                                   const Hdf5CompareOptions& options = {});

// Cells of its result: the first line, and those of a row.
csv::Row Hdf5Header(const Hdf5Comparison& comparison);
csv::Row Hdf5Cells(const Hdf5Comparison& comparison, const Hdf5Row& row);

// result_<time>.csv in `directory`; its path.
Result<std::string> WriteHdf5Result(const Hdf5Comparison& comparison, const std::string& directory);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_COMPARE_HDF5_H_
