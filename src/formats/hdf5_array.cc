#include "formats/hdf5_array.h"

#include <fmt/format.h>

#include <limits>
#include <utility>
#include <vector>

#include "formats/hdf5_chunks.h"
#include "formats/hdf5_element_type.h"
#include "formats/hdf5_handle.h"

namespace plumbline::hdf5 {
namespace {

constexpr int kMostDimensions = 32;     // that the library has
constexpr hsize_t kMostPacking = 1100;  // what deflate can reach

herr_t TakeName(hid_t /*group*/, const char* name, const H5L_info_t* /*info*/, void* out) {
  static_cast<std::vector<std::string>*>(out)->emplace_back(name);
  return 0;
}

std::optional<DType> WholeNumbersOf(size_t bytes, bool is_signed) {
  switch (bytes) {
    case 1:
      return is_signed ? DType::kInt8 : DType::kUInt8;
    case 2:
      return is_signed ? DType::kInt16 : DType::kUInt16;
    case 4:
      return is_signed ? DType::kInt32 : DType::kUInt32;
    case 8:
      return is_signed ? DType::kInt64 : DType::kUInt64;
    default:
      return std::nullopt;
  }
}

std::optional<DType> DTypeOf(hid_t type) {
  const size_t bytes = H5Tget_size(type);
  if (!IsPlainType(type)) return std::nullopt;
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return WholeNumbersOf(bytes, H5Tget_sign(type) == H5T_SGN_2);
    case H5T_FLOAT:
      return bytes == 2 ? DType::kFloat16 : bytes == 4 ? DType::kFloat32 : DType::kFloat64;
    case H5T_ENUM:  // h5py has truth values so
      return bytes == 1 ? std::optional(DType::kBool) : std::nullopt;
    case H5T_COMPOUND:
      return bytes == 8 ? DType::kComplex64 : DType::kComplex128;
    default:
      return std::nullopt;
  }
}

// One open file and the dataset in it.
struct OpenArray {
  const std::string& path;
  const std::string& name;
  uint64_t file_bytes;
  const Handle& dataset;

  [[nodiscard]] Error Damaged(std::string_view problem) const {
    return LastError(ErrorCode::kCorrupt, path, fmt::format("{} {}", name, problem));
  }
  [[nodiscard]] Result<Shape> Sizes() const {
    const Handle space(H5Dget_space(dataset));
    const int rank = space.is_open() ? H5Sget_simple_extent_ndims(space) : -1;
    if (rank < 0 || rank > kMostDimensions) return Damaged("has no readable shape");
    std::vector<hsize_t> sizes(static_cast<size_t>(rank));
    if (H5Sget_simple_extent_dims(space, sizes.data(), nullptr) < 0) {
      return Damaged("has no readable shape");
    }
    Shape shape;
    for (const hsize_t size : sizes) {
      constexpr auto kMost = static_cast<hsize_t>(std::numeric_limits<int64_t>::max());
      if (size > kMost) return Damaged("has an impossible shape");
      shape.push_back(static_cast<int64_t>(size));
    }
    return shape;
  }
  // Whether the file may hold so many elements: none is made up for those that it lacks.
  [[nodiscard]] Status CheckStorage(uint64_t count, size_t width) const {
    const hsize_t stored = H5Dget_storage_size(dataset);
    if (count > 0 && (stored > file_bytes || count / kMostPacking > stored / width + 1)) {
      return Damaged("lacks elements");
    }
    if (count > 0 && stored == 0) return Damaged("has no elements in the file");
    const Status chunks = CheckChunks(dataset, width, file_bytes);
    if (!chunks) return chunks.error().In(fmt::format("{}: {}", path, name));
    return {};
  }
};

Result<StoredTensor> ReadArray(const OpenArray& array) {
  const Handle stored(H5Dget_type(array.dataset));
  if (!stored.is_open()) return array.Damaged("has no readable type");
  const std::optional<DType> dtype = DTypeOf(stored);
  if (!dtype) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: {} holds no plain numbers", array.path, array.name));
  }
  StoredTensor tensor;
  tensor.recorded_dtype = *dtype;
  tensor.dtype = StoredDType(*dtype);
  PL_TRY_ASSIGN(tensor.sizes, array.Sizes());
  PL_TRY_ASSIGN(const int64_t count, ElementCount(tensor.sizes));
  tensor.strides = ContiguousStrides(tensor.sizes);
  PL_TRY(array.CheckStorage(static_cast<uint64_t>(count), H5Tget_size(stored)));
  const size_t width = InfoOf(tensor.dtype).size_bytes;
  tensor.bytes.resize(static_cast<size_t>(count) * width);
  PL_TRY_ASSIGN(const Handle wanted, FileTypeOf(tensor.dtype));
  // One byte is read as it stands, whatever sign the file gives it.
  const hid_t memory = width == 1 ? static_cast<hid_t>(stored) : static_cast<hid_t>(wanted);
  if (count > 0 &&
      H5Dread(array.dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.bytes.data()) < 0) {
    return array.Damaged("cannot be read");
  }
  return tensor;
}

}  // namespace

Result<std::optional<SoleArray>> ReadSoleArray(const std::string& path) {
  Silence();
  PL_TRY_ASSIGN(CommitFile bytes, CommitFile::OpenRead(path));
  PL_TRY_ASSIGN(const Handle access, AccessThrough(bytes));
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access));
  if (!file.is_open()) return LastError(ErrorCode::kCorrupt, path, "is no readable HDF5 file");
  std::vector<std::string> names;
  hsize_t position = 0;
  if (H5Literate(file, H5_INDEX_NAME, H5_ITER_INC, &position, TakeName, &names) < 0) {
    return LastError(ErrorCode::kCorrupt, path, "cannot be listed");
  }
  if (names.size() != 1) return std::optional<SoleArray>();
  const std::string name = "/" + names.front();
  const Handle object(H5Oopen(file, name.c_str(), H5P_DEFAULT));
  if (!object.is_open() || H5Iget_type(object) != H5I_DATASET) return std::optional<SoleArray>();
  PL_TRY_ASSIGN(StoredTensor tensor, ReadArray({path, name, bytes.size(), object}));
  return std::optional(SoleArray{name, std::move(tensor)});
}

}  // namespace plumbline::hdf5
