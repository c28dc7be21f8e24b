// The module plumb_hdf5-<version>.so: all of `plumb` that needs the HDF5 library.

#include "hdf5_functions.h"

// kHdf5Symbol. Declared first, as a constant is otherwise seen by this file alone.
extern "C" [[gnu::visibility("default")]] const plumbline::cli::Hdf5Functions plumb_hdf5_functions;

const plumbline::cli::Hdf5Functions plumb_hdf5_functions = {
    .copy_objects = plumbline::hdf5::CopyObjects,
    .compare = plumbline::operators::CompareHdf5,
    .write_result = plumbline::operators::WriteHdf5Result,
    .write_filtered = plumbline::operators::WriteHdf5Filtered,
};
