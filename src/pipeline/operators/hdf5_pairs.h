// Which calls of two operator dumps stand against each other.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_HDF5_PAIRS_H_
#define PLUMBLINE_PIPELINE_OPERATORS_HDF5_PAIRS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/hdf5_reader.h"

namespace plumbline::pipeline {

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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_HDF5_PAIRS_H_
