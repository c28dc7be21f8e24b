// What readers and writers of operator dumps need of the HDF5 library, and the names that operators
// have on other devices.

#ifndef PLUMBLINE_FORMATS_HDF5_HDF5_HANDLE_H_
#define PLUMBLINE_FORMATS_HDF5_HDF5_HANDLE_H_

#include <hdf5.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/commit_file.h"
#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::hdf5 {

// Operators and arguments that have another name on another device.

using NameRow = std::pair<std::string_view, std::vector<std::string_view>>;

// What get_op_map() answers: names of operators on other devices, in the order to try them.
const std::vector<NameRow>& OperatorNames();
// Arguments of one operator that an operator of the map calls otherwise.
const std::vector<NameRow>& ArgumentNames();

// The row of `name`, or nothing.
const std::vector<std::string_view>& OtherNames(const std::vector<NameRow>& rows,
                                                std::string_view name);

// Whether a replay leaves an argument of an operator out of its comparison.
bool IsIgnoredArgument(std::string_view operation, std::string_view argument);

// Identifiers of the HDF5 library that close themselves, and its errors as values.

// Owns an identifier of any kind. Move-only.
class Handle {
 public:
  Handle() = default;
  explicit Handle(hid_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) H5Idec_ref(id_);
  }
  [[nodiscard]] bool is_open() const { return id_ >= 0; }
  operator hid_t() const { return id_; }  // NOLINT: for calls of the library

 private:
  hid_t id_ = H5I_INVALID_HID;
};

// The library shall not print its errors on this thread. First thing of every function that calls
// it from outside of formats/.
void Silence();

// "{path}: {what} ({the library's innermost reason})".
Error LastError(ErrorCode code, std::string_view path, std::string_view what);

// Access properties for a file whose bytes are those of `file`, which must outlive every open
// identifier in it. kInternal.
Result<Handle> AccessThrough(CommitFile& file);

// Element types of datasets, and the attributes of the file as a whole.

// Of the root group: who wrote the file, and how many operator calls it has.
inline constexpr const char* kWriterAttribute = "Writer";
inline constexpr const char* kCallsAttribute = "Calls";
// Of calls, their sides and lists of tensors: how many objects the writer put into the group, as a
// damaged group may list fewer without any sign of it.
inline constexpr const char* kMembers = "Members";

// The dtype that elements have in a dataset: float32 for narrower floats, else the dtype itself.
DType StoredDType(DType dtype);

// Little-endian type of the elements of a dataset. Complex numbers are pairs "r", "i", as h5py has
// them; bool is a signed byte. kInternal.
Result<Handle> FileTypeOf(DType dtype);

// Whether a file's type is whole numbers, IEEE floats, pairs of these or an enumeration, whose bits
// are all inside of an element: the library trusts a damaged type and reads outside of it.
bool IsPlainType(hid_t type);

// Chunks of HDF5 datasets, which the library of version 1.10 trusts.

// Checks that every chunk, its filters undone, holds as many bytes as the shape of chunks says: the
// library reads behind the end of one that holds fewer. Nothing to do where there are no chunks.
// kCorrupt; kUnsupported: filters other than shuffle, deflate and Fletcher-32, in this order. The
// messages have no path. Requires: the dataset has `element_bytes` per element and is in a file of
// `file_bytes`.
Status CheckChunks(hid_t dataset, size_t element_bytes, uint64_t file_bytes);

}  // namespace plumbline::hdf5

#endif  // PLUMBLINE_FORMATS_HDF5_HDF5_HANDLE_H_
