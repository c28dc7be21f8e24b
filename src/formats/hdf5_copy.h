// Copies parts of one HDF5 file into another: what the tool h5copy does.

#ifndef PLUMBLINE_FORMATS_HDF5_COPY_H_
#define PLUMBLINE_FORMATS_HDF5_COPY_H_

#include <span>
#include <string>

#include "plumbline/result.h"

namespace plumbline::hdf5 {

// An object, "/add_Tensor/7": with everything below it.
struct ObjectCopy {
  std::string source, destination;
  bool makes_parents = false;  // groups above the destination that are missing
};

// Copies all of them, or nothing: a process killed meanwhile leaves `output` as it was. `output` is
// made when missing. kNotFound: the input file, or an object in it, or a missing group above the
// destination; kInvalidArgument: a destination that is there already, two equal files; kCorrupt,
// kIo.
Status CopyObjects(const std::string& input, const std::string& output,
                   std::span<const ObjectCopy> copies);

}  // namespace plumbline::hdf5

#endif  // PLUMBLINE_FORMATS_HDF5_COPY_H_
