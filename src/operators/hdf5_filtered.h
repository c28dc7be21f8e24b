// The tensors of a comparison that are worth a look, as files.

#ifndef PLUMBLINE_OPERATORS_HDF5_FILTERED_H_
#define PLUMBLINE_OPERATORS_HDF5_FILTERED_H_

#include <string>

#include "operators/compare_hdf5.h"

namespace plumbline::operators {

// The two dumps of a comparison and the path of its result, "{directory}/result_{time}.csv".
struct Hdf5Files {
  std::string target, golden, result;
};

// Makes "{directory}/result_{time}_filtered": filtered_result.csv with the rows whose cosine is
// NaN, missing or at most 0.95, and their tensors as my_dump/{path}.npy and gold_dump/{path}.npy. A
// tensor that cannot be read has no file; its row says why. Returns the directory. kIo.
Result<std::string> WriteHdf5Filtered(const Hdf5Comparison& comparison, const Hdf5Files& files);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_HDF5_FILTERED_H_
