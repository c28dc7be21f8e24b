// The HDF5 library crashes on some damaged files, so that it works in processes of its own. What a
// crash there says about the files.

#ifndef PLUMBLINE_FORMATS_HDF5_HDF5_CRASH_H_
#define PLUMBLINE_FORMATS_HDF5_HDF5_CRASH_H_

#include <string_view>

#include "plumbline/result.h"

namespace plumbline::hdf5 {

// `end` is an error of RunIsolated(): a crash of work on `paths` becomes that of damaged files,
// anything else stays.
Error CrashOn(std::string_view paths, Error end);

}  // namespace plumbline::hdf5

#endif  // PLUMBLINE_FORMATS_HDF5_HDF5_CRASH_H_
