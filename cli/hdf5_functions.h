// What `plumb` needs of the HDF5 library: a module of its own (hdf5_module.cc), loaded by commands
// on .h5 files alone. Debian's library brings thirty others, which would take more than half of the
// start of every command.

#ifndef PLUMBLINE_CLI_HDF5_FUNCTIONS_H_
#define PLUMBLINE_CLI_HDF5_FUNCTIONS_H_

#include <functional>
#include <string>

#include "formats/hdf5/hdf5_dump.h"
#include "operators/compare_hdf5.h"
#include "operators/hdf5_filtered.h"
#include "plumbline/result.h"

namespace plumbline::cli {

// The functions of these names. Only the module links them: elsewhere they are called through here.
struct Hdf5Functions {
  decltype(&hdf5::CopyObjects) copy_objects;
  decltype(&operators::CompareHdf5) compare;
  decltype(&operators::WriteHdf5Result) write_result;
  decltype(&operators::WriteHdf5Filtered) write_filtered;
};

// Name of the variable, a Hdf5Functions, that the module exports.
inline constexpr const char* kHdf5Symbol = "plumb_hdf5_functions";

// Loads the module (module_loader.h).
Result<const Hdf5Functions*> LoadHdf5Functions();

// Runs `work`, which uses these functions and returns an exit status, in a process of its own: the
// HDF5 library crashes on some damaged files. kCorrupt, with `paths` in the message: it did.
Result<int> RunOnHdf5(const std::string& paths, const std::function<int()>& work);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_HDF5_FUNCTIONS_H_
