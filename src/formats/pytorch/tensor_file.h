// A recorded tensor in whichever file format its recorder writes.

#ifndef PLUMBLINE_FORMATS_PYTORCH_TENSOR_FILE_H_
#define PLUMBLINE_FORMATS_PYTORCH_TENSOR_FILE_H_

#include <string>
#include <utility>
#include <variant>

#include "formats/array/npy.h"
#include "formats/pytorch/torch_pt.h"
#include "plumbline/tensor.h"

namespace plumbline {

// A mapped .npy or .pt file, or what was made of several. Movable; view() stays valid while the
// object lives. Thread-safe for reading.
class TensorFile {
 public:
  // A name that ends in .npy is NumPy's format, as MindSpore's recorders write it; any other is
  // .pt. `check` concerns .pt, the other has no checksum. Errors of NpyFile::Open() and
  // PtFile::Open().
  static Result<TensorFile> Open(const std::string& path,
                                 torch_pt::DataCheck check = torch_pt::DataCheck::kVerify) {
    if (path.ends_with(".npy")) {
      PL_TRY_ASSIGN(npy::NpyFile file, npy::NpyFile::Open(path));
      return TensorFile(std::move(file));
    }
    PL_TRY_ASSIGN(torch_pt::PtFile file, torch_pt::PtFile::Open(path, check));
    return TensorFile(std::move(file));
  }
  static TensorFile Of(Tensor tensor) { return TensorFile(std::move(tensor)); }
  [[nodiscard]] TensorView view() const {
    return std::visit([](const auto& file) { return file.view(); }, file_);
  }

 private:
  using Storage = std::variant<npy::NpyFile, torch_pt::PtFile, Tensor>;
  explicit TensorFile(Storage file) : file_(std::move(file)) {}

  Storage file_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_FORMATS_PYTORCH_TENSOR_FILE_H_
