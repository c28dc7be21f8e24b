// Chunks of HDF5 datasets, which the library of version 1.10 trusts.

#ifndef PLUMBLINE_FORMATS_HDF5_CHUNKS_H_
#define PLUMBLINE_FORMATS_HDF5_CHUNKS_H_

#include <hdf5.h>

#include <cstddef>
#include <cstdint>

#include "plumbline/result.h"

namespace plumbline::hdf5 {

// Checks that every chunk, its filters undone, holds as many bytes as the shape of chunks says: the
// library reads behind the end of one that holds fewer. Nothing to do where there are no chunks.
// kCorrupt; kUnsupported: filters other than shuffle, deflate and Fletcher-32, in this order. The
// messages have no path. Requires: the dataset has `element_bytes` per element and is in a file of
// `file_bytes`.
Status CheckChunks(hid_t dataset, size_t element_bytes, uint64_t file_bytes);

}  // namespace plumbline::hdf5

#endif  // PLUMBLINE_FORMATS_HDF5_CHUNKS_H_
