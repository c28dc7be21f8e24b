// HDF5 files read: operator dumps (docs/formats/hdf5_dump.md), and files of one array.

#ifndef PLUMBLINE_FORMATS_HDF5_HDF5_READER_H_
#define PLUMBLINE_FORMATS_HDF5_HDF5_READER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/hdf5/hdf5_dump.h"
#include "plumbline/result.h"

namespace plumbline::hdf5 {

// An operator dump, ours or that of PyTorch 1.5.

// A value as the file has it, without the elements of tensors.
struct StoredValue {
  std::string name;  // of the argument; of members of lists "{argument}/{argument}_{i}"
  ValueKind kind = ValueKind::kTensor;
  bool has_data = false;          // false: a tensor without storage, a list
  DType dtype = DType::kFloat32;  // that the tensor had, or TensorOptions
  bool has_dtype = false;
  int32_t device = kCpu;
  Shape sizes;
  std::vector<int64_t> strides;  // attribute `Stride`; empty where it does not fit the sizes
  // Of kinds other than tensors: the numbers, as stored. One for scalars.
  std::variant<std::vector<int64_t>, double> number;
  bool requires_grad = false;
};

// The elements of one tensor.
struct StoredTensor {
  DType dtype = DType::kFloat32;  // of the elements here; float32 for narrower floats
  DType recorded_dtype = DType::kFloat32;
  Shape sizes;
  std::vector<int64_t> strides;
  std::vector<std::byte> bytes;
  [[nodiscard]] TensorView view() const { return {dtype, bytes.data(), sizes, strides}; }
};

// An open file. Calls from several threads wait for each other. Movable.
class DumpReader {
 public:
  // kNotFound, kIo; kCorrupt: no HDF5 file, a damaged one, groups that are none of an operator
  // dump, fewer calls than were written. Changes of a commit that a kill interrupted are included.
  static Result<DumpReader> Open(const std::string& path);
  DumpReader(DumpReader&&) noexcept;
  DumpReader& operator=(DumpReader&&) = delete;
  ~DumpReader();

  // Sequence ids of every operator, ascending.
  [[nodiscard]] const std::map<std::string, std::vector<int64_t>>& calls() const;
  [[nodiscard]] const std::string& path() const;
  // Arguments or results of a call, lists followed by their members; in order of name, numbers at
  // the end of names as numbers. Empty where the call has none on that side. kCorrupt: an attribute
  // or a dataset that does not fit its kind, or whose checksum differs. kUnsupported: DataType.
  Result<std::vector<StoredValue>> Values(const CallPlace& place) const;
  // The elements of a value of kind kTensor with data, at its place. kCorrupt: they differ from the
  // checksum, or cannot be read. kUnsupported: float16 of a CPU by PyTorch 1.5, which wrote other
  // bytes than the values.
  Result<StoredTensor> Load(const CallPlace& place, const StoredValue& value) const;

 private:
  struct State;
  explicit DumpReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// An HDF5 file with one array in it, as h5py writes it: no operator dump.

struct SoleArray {
  std::string name;  // "/x"
  StoredTensor tensor;
};

// The array of a file whose only object is one. Nothing: the file has something else. kNotFound,
// kIo; kCorrupt: no HDF5 file, a damaged one; kUnsupported: elements that are no numbers.
Result<std::optional<SoleArray>> ReadSoleArray(const std::string& path);

}  // namespace plumbline::hdf5

#endif  // PLUMBLINE_FORMATS_HDF5_HDF5_READER_H_
