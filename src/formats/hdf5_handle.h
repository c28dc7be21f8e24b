// Identifiers of the HDF5 library that close themselves, and its errors as values.

#ifndef PLUMBLINE_FORMATS_HDF5_HANDLE_H_
#define PLUMBLINE_FORMATS_HDF5_HANDLE_H_

#include <hdf5.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/commit_file.h"
#include "plumbline/result.h"

namespace plumbline::hdf5 {

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

}  // namespace plumbline::hdf5

#endif  // PLUMBLINE_FORMATS_HDF5_HANDLE_H_
