// An HDF5 file with one array in it, as h5py writes it: no operator dump.

#ifndef PLUMBLINE_FORMATS_HDF5_ARRAY_H_
#define PLUMBLINE_FORMATS_HDF5_ARRAY_H_

#include <optional>
#include <string>

#include "formats/hdf5_reader.h"
#include "plumbline/result.h"

namespace plumbline::hdf5 {

struct SoleArray {
  std::string name;  // "/x"
  StoredTensor tensor;
};

// The array of a file whose only object is one. Nothing: the file has something else. kNotFound,
// kIo; kCorrupt: no HDF5 file, a damaged one; kUnsupported: elements that are no numbers.
Result<std::optional<SoleArray>> ReadSoleArray(const std::string& path);

}  // namespace plumbline::hdf5

#endif  // PLUMBLINE_FORMATS_HDF5_ARRAY_H_
