// Element types of datasets, and the attributes of the file as a whole.

#ifndef PLUMBLINE_FORMATS_HDF5_ELEMENT_TYPE_H_
#define PLUMBLINE_FORMATS_HDF5_ELEMENT_TYPE_H_

#include "formats/hdf5_handle.h"
#include "plumbline/tensor.h"

namespace plumbline::hdf5 {

// Of the root group: who wrote the file, and how many operator calls it has.
inline constexpr const char* kWriterAttribute = "Writer";
inline constexpr const char* kCallsAttribute = "Calls";

// The dtype that elements have in a dataset: float32 for narrower floats, else the dtype itself.
DType StoredDType(DType dtype);

// Little-endian type of the elements of a dataset. Complex numbers are pairs "r", "i", as h5py has
// them; bool is a signed byte. kInternal.
Result<Handle> FileTypeOf(DType dtype);

// Whether a file's type is whole numbers, IEEE floats, pairs of these or an enumeration, whose bits
// are all inside of an element: the library trusts a damaged type and reads outside of it.
bool IsPlainType(hid_t type);

}  // namespace plumbline::hdf5

#endif  // PLUMBLINE_FORMATS_HDF5_ELEMENT_TYPE_H_
