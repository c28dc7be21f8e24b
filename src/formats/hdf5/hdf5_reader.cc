#include "formats/hdf5/hdf5_reader.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/text_parts.h"
#include "formats/hdf5/hdf5_handle.h"
#include "tensor/half.h"

namespace plumbline::hdf5 {

namespace {

constexpr int kMostLibraryDimensions = 32;  // that the library has
constexpr hsize_t kMostPacking = 1100;      // what deflate can reach

herr_t TakeAnyName(hid_t /*group*/, const char* name, const H5L_info_t* /*info*/, void* out) {
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
    if (rank < 0 || rank > kMostLibraryDimensions) return Damaged("has no readable shape");
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
  if (H5Literate(file, H5_INDEX_NAME, H5_ITER_INC, &position, TakeAnyName, &names) < 0) {
    return LastError(ErrorCode::kCorrupt, path, "cannot be listed");
  }
  if (names.size() != 1) return std::optional<SoleArray>();
  const std::string name = "/" + names.front();
  const Handle object(H5Oopen(file, name.c_str(), H5P_DEFAULT));
  if (!object.is_open() || H5Iget_type(object) != H5I_DATASET) return std::optional<SoleArray>();
  PL_TRY_ASSIGN(StoredTensor tensor, ReadArray({path, name, bytes.size(), object}));
  return std::optional(SoleArray{name, std::move(tensor)});
}

namespace {

constexpr uint64_t kMostChunkBytes = std::numeric_limits<uint32_t>::max();  // of the format
constexpr size_t kFletcherBytes = 4;

using Extent = std::array<hsize_t, H5S_MAX_RANK>;

Error Damaged(std::string_view what) { return {ErrorCode::kCorrupt, std::string(what)}; }

// How the chunks of a dataset lie and what was done to them.
struct ChunkLayout {
  int rank = 0;
  Extent sizes{}, chunk{};  // of the dataset, of one chunk
  uint64_t chunk_bytes = 0;
  uint64_t chunk_count = 1;
  std::vector<H5Z_filter_t> filters;  // in the order of writing
};

bool AreKnown(std::span<const H5Z_filter_t> filters) {
  // Each at most once, and in this order.
  constexpr std::array kKnown = {H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32};
  size_t next = 0;
  for (const H5Z_filter_t filter : filters) {
    while (next < kKnown.size() && kKnown[next] != filter) ++next;
    if (next++ == kKnown.size()) return false;
  }
  return true;
}

Result<ChunkLayout> LayoutOf(hid_t dataset, hid_t properties, size_t element_bytes) {
  ChunkLayout layout;
  const Handle space(H5Dget_space(dataset));
  layout.rank = H5Pget_chunk(properties, H5S_MAX_RANK, layout.chunk.data());
  if (!space.is_open() || layout.rank < 1 || H5Sget_simple_extent_ndims(space) != layout.rank ||
      H5Sget_simple_extent_dims(space, layout.sizes.data(), nullptr) < 0) {
    return Damaged("has no readable chunks");
  }
  layout.chunk_bytes = element_bytes;
  for (int i = 0; i < layout.rank; ++i) {
    const auto axis = static_cast<size_t>(i);
    const hsize_t size = layout.sizes[axis], chunk = layout.chunk[axis];
    if (chunk == 0 || chunk > kMostChunkBytes || size == 0) return Damaged("has impossible chunks");
    const hsize_t along = size / chunk + (size % chunk == 0 ? 0 : 1);
    if (layout.chunk_bytes > kMostChunkBytes / chunk ||
        layout.chunk_count > std::numeric_limits<uint64_t>::max() / along) {
      return Damaged("has impossible chunks");
    }
    layout.chunk_bytes *= chunk;
    layout.chunk_count *= along;
  }
  for (int i = 0; i < H5Pget_nfilters(properties); ++i) {
    unsigned flags = 0;
    size_t values = 0;
    layout.filters.push_back(H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &values,
                                            nullptr, 0, nullptr, nullptr));
  }
  if (!AreKnown(layout.filters)) {
    return Error(ErrorCode::kUnsupported,
                 "is packed by a filter other than shuffle, deflate and Fletcher-32. Repack it "
                 "with h5repack");
  }
  return layout;
}

// Bytes that a deflated stream holds; nothing where it is damaged or holds more than `most`.
std::optional<uint64_t> InflatedBytes(std::span<std::byte> packed, uint64_t most) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return std::nullopt;
  std::array<Bytef, 16384> out;
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  int status = Z_OK;
  while (status == Z_OK && stream.total_out <= most) {
    stream.next_out = out.data();
    stream.avail_out = out.size();
    status = inflate(&stream, Z_SYNC_FLUSH);
  }
  const uint64_t bytes = stream.total_out;
  inflateEnd(&stream);
  return status == Z_STREAM_END ? std::optional(bytes) : std::nullopt;
}

// Bytes of a chunk without its filters; those of a set bit in `left_out` were not applied.
std::optional<uint64_t> UnpackedBytes(const ChunkLayout& layout, uint32_t left_out,
                                      std::span<std::byte> packed) {
  uint64_t bytes = packed.size();
  for (size_t i = layout.filters.size(); i-- > 0;) {
    if ((left_out >> i & 1) != 0) continue;
    if (layout.filters[i] == H5Z_FILTER_FLETCHER32) {
      if (bytes < kFletcherBytes) return std::nullopt;
      bytes -= kFletcherBytes;
    } else if (layout.filters[i] == H5Z_FILTER_DEFLATE) {
      const auto inflated = InflatedBytes(packed.first(bytes), layout.chunk_bytes);
      if (!inflated) return std::nullopt;
      bytes = *inflated;
    }
  }
  return bytes;
}

Status CheckChunk(hid_t dataset, const ChunkLayout& layout, const Extent& place,
                  uint64_t file_bytes) {
  unsigned left_out = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t stored = 0;
  if (H5Dget_chunk_info_by_coord(dataset, place.data(), &left_out, &address, &stored) < 0 ||
      address > file_bytes || stored > file_bytes - address) {
    return Damaged("has a chunk outside of the file");
  }
  std::optional<uint64_t> bytes = stored;
  if (!layout.filters.empty()) {
    std::vector<std::byte> packed(stored);
    uint32_t mask = 0;
    if (H5Dread_chunk(dataset, H5P_DEFAULT, place.data(), &mask, packed.data()) < 0) {
      return Damaged("has a chunk that cannot be read");
    }
    bytes = UnpackedBytes(layout, mask, packed);
  }
  if (bytes == layout.chunk_bytes) return {};
  return Damaged(fmt::format("has a damaged chunk (expected {} bytes, got {})", layout.chunk_bytes,
                             bytes ? fmt::to_string(*bytes) : "none that can be unpacked"));
}

}  // namespace

Status CheckChunks(hid_t dataset, size_t element_bytes, uint64_t file_bytes) {
  const Handle properties(H5Dget_create_plist(dataset));
  if (!properties.is_open()) return Damaged("has no readable layout");
  if (H5Pget_layout(properties) != H5D_CHUNKED) return {};
  PL_TRY_ASSIGN(const ChunkLayout layout, LayoutOf(dataset, properties, element_bytes));
  const Handle space(H5Dget_space(dataset));
  hsize_t found = 0;
  if (H5Dget_num_chunks(dataset, space, &found) < 0 || found != layout.chunk_count) {
    return Damaged(fmt::format("lacks chunks (expected {}, got {})", layout.chunk_count, found));
  }
  Extent place{};
  for (uint64_t i = 0; i < layout.chunk_count; ++i) {
    PL_TRY(CheckChunk(dataset, layout, place, file_bytes));
    for (auto axis = static_cast<size_t>(layout.rank); axis-- > 0;) {
      place[axis] += layout.chunk[axis];
      if (place[axis] < layout.sizes[axis]) break;
      place[axis] = 0;
    }
  }
  return {};
}

namespace {

constexpr int kMostDimensions = 64;  // as PyTorch has it

bool IsTensorKind(ValueKind kind) {
  return kind == ValueKind::kTensor || kind == ValueKind::kTensorList;
}

bool IsListKind(ValueKind kind) {
  return kind == ValueKind::kIntegers || kind == ValueKind::kSizePair ||
         kind == ValueKind::kIntegerArray;
}

std::optional<ValueKind> KindOfNumber(int32_t number) {
  const bool is_known = number >= 0 && number <= 18 && number != 8 && number != 11 && number != 12;
  return is_known ? std::optional(static_cast<ValueKind>(number)) : std::nullopt;
}

// "tensors_2" before "tensors_10".
bool NameBefore(const std::string& a, const std::string& b) {
  const auto split = [](const std::string& name) {
    const size_t end = name.find_last_not_of("0123456789") + 1;
    const auto number = ParseNatural(std::string_view(name).substr(end));
    return std::tuple(name.substr(0, end), number.value_or(-1), name);
  };
  return split(a) < split(b);
}

// Strides with which a view reaches every one of `count` elements and none behind them.
bool StridesFit(std::span<const int64_t> sizes, std::span<const int64_t> strides, int64_t count) {
  if (strides.size() != sizes.size()) return false;
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (strides[i] < 0 || (sizes[i] > 1 && strides[i] == 0)) return false;
    if (sizes[i] > 1 && strides[i] > count) return false;
    last += sizes[i] > 1 ? (sizes[i] - 1) * strides[i] : 0;
    if (last > count) return false;
  }
  return last + 1 == count || count == 0;
}

// Signed, of `width` bytes each.
std::vector<int64_t> WholeNumbers(std::span<const std::byte> bytes, size_t width) {
  std::vector<int64_t> numbers;
  for (; !bytes.empty(); bytes = bytes.subspan(width)) {
    int64_t number = 0;
    std::memcpy(&number, bytes.data(), width);
    const size_t unused = 8 * (sizeof(number) - width);
    numbers.push_back(static_cast<int64_t>(static_cast<uint64_t>(number) << unused) >> unused);
  }
  return numbers;
}

herr_t TakeName(hid_t /*group*/, const char* name, const H5L_info_t* info, void* out) {
  if (info->type == H5L_TYPE_HARD) static_cast<std::vector<std::string>*>(out)->emplace_back(name);
  return 0;
}

}  // namespace

struct DumpReader::State {
  std::mutex mutex;  // not every build of the library takes calls of several threads
  CommitFile storage;
  Handle file;
  std::string path;
  bool is_own = false;  // written by plumbline
  std::map<std::string, std::vector<int64_t>> calls;

  explicit State(CommitFile file_bytes) : storage(std::move(file_bytes)) {}

  [[nodiscard]] Error Damaged(std::string_view object, std::string_view problem) const {
    return LastError(ErrorCode::kCorrupt, path, fmt::format("{} {}", object, problem));
  }

  [[nodiscard]] Result<std::vector<std::string>> NamesIn(const std::string& where) const {
    std::vector<std::string> names;
    const Handle group(H5Gopen2(file, where.c_str(), H5P_DEFAULT));
    hsize_t position = 0;
    if (!group.is_open() ||
        H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &position, TakeName, &names) < 0) {
      return Damaged(where, "is no group of an operator dump that can be read");
    }
    std::ranges::sort(names, NameBefore);
    PL_TRY_ASSIGN(const std::optional<int32_t> written,
                  NumberAttribute<int32_t>(group, kMembers, H5T_NATIVE_INT32, where));
    if (written && std::cmp_less(names.size(), *written)) {
      return Damaged(where,
                     fmt::format("has lost members (expected {}, got {})", *written, names.size()));
    }
    return names;
  }

  // Nothing where there is no such attribute.
  template <class T>
  [[nodiscard]] Result<std::optional<T>> NumberAttribute(hid_t object, const char* name,
                                                         hid_t memory_type,
                                                         const std::string& where) const {
    const htri_t exists = H5Aexists(object, name);
    if (exists == 0) return std::optional<T>();
    T value{};
    const Handle attribute(H5Aopen(object, name, H5P_DEFAULT));
    const Handle space(attribute.is_open() ? H5Aget_space(attribute) : H5I_INVALID_HID);
    const Handle type(attribute.is_open() ? H5Aget_type(attribute) : H5I_INVALID_HID);
    if (exists < 0 || !space.is_open() || H5Sget_simple_extent_npoints(space) != 1 ||
        H5Tget_class(type) != H5T_INTEGER || !IsPlainType(type) ||
        H5Aread(attribute, memory_type, &value) < 0) {
      return Damaged(where, fmt::format("has a damaged attribute {}", name));
    }
    return std::optional<T>(value);
  }

  [[nodiscard]] Result<int32_t> Needed(hid_t object, const char* name,
                                       const std::string& where) const {
    PL_TRY_ASSIGN(const std::optional<int32_t> value,
                  NumberAttribute<int32_t>(object, name, H5T_NATIVE_INT32, where));
    if (value) return *value;
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: {} has no attribute {} (expected a dump of operators)", path,
                             where, name));
  }

  Status ReadCalls() {
    PL_TRY_ASSIGN(const std::vector<std::string> operations, NamesIn("/"));
    uint64_t found = 0;
    for (const std::string& operation : operations) {
      PL_TRY_ASSIGN(const std::vector<std::string> names, NamesIn("/" + operation));
      std::vector<int64_t>& ids = calls[operation];
      for (const std::string& name : names) {
        const std::optional<int64_t> id = ParseNatural(name);
        if (!id) {
          return Error(ErrorCode::kCorrupt,
                       fmt::format("{}: /{}/{} is no call of an operator (expected a sequence id)",
                                   path, operation, name));
        }
        ids.push_back(*id);
      }
      found += ids.size();
    }
    PL_TRY_ASSIGN(const std::optional<int64_t> written,
                  NumberAttribute<int64_t>(file, kCallsAttribute, H5T_NATIVE_INT64, "/"));
    if (written && found < static_cast<uint64_t>(*written)) {
      return Error(ErrorCode::kCorrupt, fmt::format("{}: calls are missing (expected {}, got {})",
                                                    path, *written, found));
    }
    return {};
  }

  [[nodiscard]] Result<Shape> SizesOf(hid_t dataset, const std::string& where) const {
    const Handle space(H5Dget_space(dataset));
    const int rank = space.is_open() ? H5Sget_simple_extent_ndims(space) : -1;
    if (rank < 0 || rank > kMostDimensions) return Damaged(where, "has no readable shape");
    std::vector<hsize_t> sizes(static_cast<size_t>(rank));
    if (H5Sget_simple_extent_dims(space, sizes.data(), nullptr) < 0) {
      return Damaged(where, "has no readable shape");
    }
    Shape shape;
    for (const hsize_t size : sizes) {
      if (size > static_cast<hsize_t>(std::numeric_limits<int64_t>::max())) {
        return Damaged(where, "has an impossible shape");
      }
      shape.push_back(static_cast<int64_t>(size));
    }
    const Result<int64_t> count = ElementCount(shape);
    if (!count) return count.error().In(fmt::format("{}: {}", path, where));
    return shape;
  }

  // Whether `dataset` has its elements in the file; kCorrupt where only some, or too few for them.
  [[nodiscard]] Result<bool> HasElements(hid_t dataset, const Shape& sizes, size_t width,
                                         const std::string& where) const {
    const int64_t count = ElementCount(sizes).value_or(0);
    if (count == 0) return true;
    H5D_space_status_t status = H5D_SPACE_STATUS_ERROR;
    if (H5Dget_space_status(dataset, &status) < 0) return Damaged(where, "has no readable layout");
    if (status == H5D_SPACE_STATUS_NOT_ALLOCATED) return false;
    const Handle layout(H5Dget_create_plist(dataset));
    const bool is_chunked = layout.is_open() && H5Pget_layout(layout) == H5D_CHUNKED;
    const hsize_t stored = H5Dget_storage_size(dataset);
    // Packed chunks take less than their elements, those at the edges more: CheckChunks() looks.
    const bool fits = is_chunked ? static_cast<hsize_t>(count) / kMostPacking <= stored
                                 : status == H5D_SPACE_STATUS_ALLOCATED &&
                                       stored / width == static_cast<hsize_t>(count);
    if (fits && stored <= storage.size()) {
      const Status chunks = CheckChunks(dataset, width, storage.size());
      if (chunks) return true;
      return Error(chunks.error().code(),
                   fmt::format("{}: {} {}", path, where, chunks.error().message()));
    }
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: {} has other elements than its shape needs (expected {} of {} "
                             "bytes, got {} bytes)",
                             path, where, count, width, stored));
  }

  Status ReadStride(hid_t dataset, StoredValue& value, const std::string& where) const {
    const Handle attribute(H5Aopen(dataset, "Stride", H5P_DEFAULT));
    if (!attribute.is_open()) {
      H5Eclear2(H5E_DEFAULT);
      return {};
    }
    const Handle space(H5Aget_space(attribute));
    const Handle type(H5Aget_type(attribute));
    const hssize_t count = space.is_open() ? H5Sget_simple_extent_npoints(space) : -1;
    const bool is_whole = type.is_open() && H5Tget_class(type) == H5T_INTEGER && IsPlainType(type);
    if (!is_whole || count < 0 || count > kMostDimensions) {
      return Damaged(where, "has damaged strides");
    }
    std::vector<int64_t> strides(static_cast<size_t>(count));
    if (count > 0 && H5Aread(attribute, H5T_NATIVE_INT64, strides.data()) < 0) {
      return Damaged(where, "has damaged strides");
    }
    const int64_t elements = ElementCount(value.sizes).value_or(0);
    if (StridesFit(value.sizes, strides, elements)) value.strides = std::move(strides);
    return {};
  }

  // Whether elements of the file's type are what a tensor of `dtype` is stored as.
  [[nodiscard]] static bool TypeFits(hid_t type, DType dtype) {
    const DTypeInfo& info = InfoOf(StoredDType(dtype));
    const size_t size = H5Tget_size(type);
    const H5T_class_t kind = H5Tget_class(type);
    switch (info.kind) {
      case DTypeKind::kComplex:
        return kind == H5T_COMPOUND && size == info.size_bytes;
      case DTypeKind::kFloat:
        return kind == H5T_FLOAT &&
               (size == info.size_bytes || (size == 2 && dtype == DType::kFloat16));
      case DTypeKind::kBool:
        return (kind == H5T_INTEGER || kind == H5T_ENUM) && size == 1;
      default:
        // PyTorch 1.5 stores unsigned bytes as signed ones.
        return kind == H5T_INTEGER && size == info.size_bytes &&
               (size == 1 ||
                (H5Tget_sign(type) == H5T_SGN_NONE) == (info.kind == DTypeKind::kUnsigned));
    }
  }

  Status DescribeTensor(hid_t dataset, StoredValue& value, const std::string& where) const {
    PL_TRY_ASSIGN(value.device, Needed(dataset, "DeviceType", where));
    PL_TRY_ASSIGN(const int32_t number, Needed(dataset, "DataType", where));
    const std::optional<DType> dtype = DTypeOfNumber(number);
    if (!dtype) {
      return Error(ErrorCode::kUnsupported,
                   fmt::format("{}: {} has an unknown DataType (expected 1 to 20, got {})", path,
                               where, number));
    }
    value.dtype = *dtype;
    value.has_dtype = true;
    const Handle type(H5Dget_type(dataset));
    if (!type.is_open() || !IsPlainType(type) || !TypeFits(type, *dtype)) {
      return Damaged(where, fmt::format("has elements that are not {}", InfoOf(*dtype).name));
    }
    PL_TRY_ASSIGN(value.sizes, SizesOf(dataset, where));
    PL_TRY_ASSIGN(value.has_data, HasElements(dataset, value.sizes, H5Tget_size(type), where));
    return ReadStride(dataset, value, where);
  }

  [[nodiscard]] Status CheckSum(hid_t dataset, std::string_view name, const StoredValue& value,
                                std::span<const std::byte> bytes) const {
    const std::string where(name);
    PL_TRY_ASSIGN(const std::optional<uint32_t> sum,
                  NumberAttribute<uint32_t>(dataset, kChecksum, H5T_NATIVE_UINT32, where));
    if (!sum) {
      if (!is_own) return {};
      return Error(ErrorCode::kCorrupt, fmt::format("{}: {} has lost its checksum", path, name));
    }
    const int32_t data_type = value.has_dtype ? DataTypeNumber(value.dtype) : 0;
    const uint32_t got = ChecksumOf(name, value.kind, data_type, value.sizes, bytes);
    if (got == *sum) return {};
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: {} is damaged (expected checksum {:08x}, got {:08x})", path, name,
                             *sum, got));
  }

  Status ReadNumbers(hid_t dataset, StoredValue& value, const std::string& where,
                     const std::string& relative) const {
    const Handle type(H5Dget_type(dataset));
    const H5T_class_t type_class = type.is_open() ? H5Tget_class(type) : H5T_NO_CLASS;
    const size_t width = type.is_open() ? H5Tget_size(type) : 0;
    PL_TRY_ASSIGN(value.sizes, SizesOf(dataset, where));
    const int64_t count = ElementCount(value.sizes).value_or(0);
    const bool is_real = type_class == H5T_FLOAT && width == sizeof(double);
    const bool is_whole = type_class == H5T_INTEGER && (width == 1 || width == 4 || width == 8);
    const bool fits = IsListKind(value.kind) ? is_whole && value.sizes.size() <= 1
                                             : (is_real || is_whole) && count == 1;
    if (!fits || !IsPlainType(type) || count > kMostNumbers)
      return Damaged(where, "does not hold what its Type says");
    PL_TRY_ASSIGN(const bool has_elements, HasElements(dataset, value.sizes, width, where));
    if (!has_elements) return Damaged(where, "has no value");
    // Converted to the type of the writer: the sum is of that.
    const hid_t plain = is_real      ? H5T_IEEE_F64LE
                        : width == 1 ? H5T_STD_I8LE
                        : width == 4 ? H5T_STD_I32LE
                                     : H5T_STD_I64LE;
    std::vector<std::byte> bytes(static_cast<size_t>(count) * width);
    if (count > 0 && H5Dread(dataset, plain, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0) {
      return Damaged(where, "cannot be read");
    }
    PL_TRY(CheckSum(dataset, relative, value, bytes));
    if (is_real) {
      double real = 0;
      std::memcpy(&real, bytes.data(), sizeof(real));
      value.number = real;
    } else {
      value.number = WholeNumbers(bytes, width);
    }
    return {};
  }

  Status DescribeOptions(hid_t dataset, StoredValue& value, const std::string& where) const {
    PL_TRY_ASSIGN(value.device, Needed(dataset, "DeviceType", where));
    PL_TRY_ASSIGN(const std::optional<int32_t> number,
                  NumberAttribute<int32_t>(dataset, "DataType", H5T_NATIVE_INT32, where));
    const auto dtype = number ? DTypeOfNumber(*number) : std::nullopt;
    value.has_dtype = dtype.has_value();
    value.dtype = dtype.value_or(DType::kFloat32);
    PL_TRY_ASSIGN(const std::optional<int32_t> grad,
                  NumberAttribute<int32_t>(dataset, "RequiresGrad", H5T_NATIVE_INT32, where));
    value.requires_grad = grad.value_or(0) != 0;
    return {};
  }

  // One dataset or group below a side.
  [[nodiscard]] Result<StoredValue> Describe(const std::string& side, std::string_view side_name,
                                             const std::string& name) const {
    const std::string where = fmt::format("{}/{}", side, name);
    StoredValue value;
    value.name = name;
    const Handle object(H5Oopen(file, where.c_str(), H5P_DEFAULT));
    if (!object.is_open()) return Damaged(where, "cannot be opened");
    const bool is_group = H5Iget_type(object) == H5I_GROUP;
    PL_TRY_ASSIGN(const std::optional<int32_t> number,
                  NumberAttribute<int32_t>(object, "Type", H5T_NATIVE_INT32, where));
    // A group of PyTorch 1.5 may go without: it is a list, or a tensor without storage.
    const std::optional<ValueKind> kind =
        number ? KindOfNumber(*number)
               : (is_group ? std::optional(ValueKind::kTensorList) : std::nullopt);
    const bool fits = kind && (is_group ? IsTensorKind(*kind) : *kind != ValueKind::kTensorList);
    if (!fits) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: {} has no known Type (expected 0 to 18, got {})", path, where,
                               number ? fmt::to_string(*number) : "none"));
    }
    value.kind = *kind;
    if (is_group) return value;
    if (value.kind == ValueKind::kTensor) {
      PL_TRY(DescribeTensor(object, value, where));
    } else if (value.kind == ValueKind::kTensorOptions) {
      PL_TRY(DescribeOptions(object, value, where));
    } else {
      PL_TRY(ReadNumbers(object, value, where, fmt::format("{}/{}", side_name, name)));
    }
    return value;
  }

  static constexpr int64_t kMostNumbers = 1 << 20;  // of a list that is no tensor
  static constexpr hsize_t kMostPacking = 1100;     // what deflate can reach
};

DumpReader::DumpReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
DumpReader::DumpReader(DumpReader&&) noexcept = default;
DumpReader::~DumpReader() = default;

const std::map<std::string, std::vector<int64_t>>& DumpReader::calls() const {
  return state_->calls;
}
const std::string& DumpReader::path() const { return state_->path; }

Result<DumpReader> DumpReader::Open(const std::string& path) {
  Silence();
  PL_TRY_ASSIGN(CommitFile bytes, CommitFile::OpenRead(path));
  auto state = std::make_unique<State>(std::move(bytes));
  state->path = path;
  PL_TRY_ASSIGN(const Handle access, AccessThrough(state->storage));
  state->file = Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access));
  if (!state->file.is_open()) {
    return LastError(ErrorCode::kCorrupt, path, "is no readable HDF5 file");
  }
  const htri_t has_writer = H5Aexists(state->file, kWriterAttribute);
  if (has_writer < 0) return state->Damaged("/", "has damaged attributes");
  state->is_own = has_writer > 0;
  PL_TRY(state->ReadCalls());
  return DumpReader(std::move(state));
}

Result<std::vector<StoredValue>> DumpReader::Values(const CallPlace& place) const {
  const std::scoped_lock lock(state_->mutex);
  Silence();
  const std::string call = fmt::format("/{}/{}", place.operation, place.call);
  const std::string side = fmt::format("{}/{}", call, SideName(place.side));
  std::vector<StoredValue> values;
  PL_TRY_ASSIGN(const std::vector<std::string> sides, state_->NamesIn(call));
  for (const std::string& name : sides) {
    const bool is_side = name == SideName(Side::kInput) || name == SideName(Side::kOutput);
    if (is_side || !state_->is_own) continue;
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: {} has {} (expected {} and {} alone)", state_->path, call, name,
                             SideName(Side::kInput), SideName(Side::kOutput)));
  }
  if (std::ranges::find(sides, SideName(place.side)) == sides.end()) return values;
  PL_TRY_ASSIGN(const std::vector<std::string> names, state_->NamesIn(side));
  for (const std::string& name : names) {
    PL_TRY_ASSIGN(StoredValue value, state_->Describe(side, SideName(place.side), name));
    const bool is_list = value.kind == ValueKind::kTensorList;
    values.push_back(std::move(value));
    if (!is_list) continue;
    PL_TRY_ASSIGN(const std::vector<std::string> members,
                  state_->NamesIn(fmt::format("{}/{}", side, name)));
    for (const std::string& member : members) {
      PL_TRY_ASSIGN(StoredValue one, state_->Describe(side, SideName(place.side),
                                                      fmt::format("{}/{}", name, member)));
      values.push_back(std::move(one));
    }
  }
  return values;
}

Result<StoredTensor> DumpReader::Load(const CallPlace& place, const StoredValue& value) const {
  const std::scoped_lock lock(state_->mutex);
  Silence();
  const std::string relative = fmt::format("{}/{}", SideName(place.side), value.name);
  const std::string where = fmt::format("/{}/{}/{}", place.operation, place.call, relative);
  const Handle dataset(H5Dopen2(state_->file, where.c_str(), H5P_DEFAULT));
  const Handle stored(dataset.is_open() ? H5Dget_type(dataset) : H5I_INVALID_HID);
  if (!stored.is_open()) return state_->Damaged(where, "cannot be opened");
  if (value.dtype == DType::kFloat16 && value.device == kCpu &&
      H5Aexists(dataset, kChecksum) <= 0) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: {} holds no numbers: PyTorch 1.5 wrote the bytes of float16 "
                             "tensors of a CPU as float32. Dump them as float32",
                             state_->path, where));
  }
  StoredTensor tensor;
  tensor.recorded_dtype = value.dtype;
  tensor.dtype = StoredDType(value.dtype);
  tensor.sizes = value.sizes;
  const bool uses_strides = value.device != kNpu && !value.strides.empty();
  tensor.strides = uses_strides ? value.strides : ContiguousStrides(value.sizes);
  const auto count = static_cast<size_t>(ElementCount(value.sizes).value_or(0));
  const size_t width = InfoOf(tensor.dtype).size_bytes;
  tensor.bytes.resize(count * width);
  PL_TRY_ASSIGN(const Handle wanted, FileTypeOf(tensor.dtype));
  // One byte is read as it stands, whatever sign the file gives it.
  const hid_t memory_type = width == 1 ? static_cast<hid_t>(stored) : static_cast<hid_t>(wanted);
  if (count > 0 &&
      H5Dread(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.bytes.data()) < 0) {
    return state_->Damaged(where, "cannot be read");
  }
  PL_TRY(state_->CheckSum(dataset, relative, value, tensor.bytes));
  return tensor;
}

}  // namespace plumbline::hdf5
