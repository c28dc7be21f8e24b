// Size caps: the parameters of a driver's functions are those that the HDF5 library calls.

#include "formats/hdf5/hdf5_handle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <new>

#include "tensor/half.h"

namespace plumbline::hdf5 {

namespace {

hid_t NumberType(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kInt8:
      return H5T_STD_I8LE;
    case DType::kUInt8:
      return H5T_STD_U8LE;
    case DType::kUInt16:
      return H5T_STD_U16LE;
    case DType::kUInt32:
      return H5T_STD_U32LE;
    case DType::kUInt64:
      return H5T_STD_U64LE;
    case DType::kInt16:
      return H5T_STD_I16LE;
    case DType::kInt32:
      return H5T_STD_I32LE;
    case DType::kInt64:
      return H5T_STD_I64LE;
    case DType::kFloat64:
      return H5T_IEEE_F64LE;
    default:
      return H5T_IEEE_F32LE;
  }
}

}  // namespace

DType StoredDType(DType dtype) {
  return NarrowFormatOf(dtype) != nullptr ? DType::kFloat32 : dtype;
}

Result<Handle> FileTypeOf(DType dtype) {
  const DTypeInfo& info = InfoOf(dtype);
  if (info.kind != DTypeKind::kComplex) return Handle(H5Tcopy(NumberType(StoredDType(dtype))));
  const size_t part = info.size_bytes / 2U;
  const hid_t part_type = dtype == DType::kComplex64 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
  Handle pair(H5Tcreate(H5T_COMPOUND, info.size_bytes));
  if (!pair.is_open() || H5Tinsert(pair, "r", 0, part_type) < 0 ||
      H5Tinsert(pair, "i", part, part_type) < 0) {
    return LastError(ErrorCode::kInternal, info.name, "has no HDF5 type");
  }
  return pair;
}

bool IsPlainType(hid_t type) {
  const size_t bits = 8 * H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return bits > 0 && bits <= 64 && H5Tget_offset(type) == 0 && H5Tget_precision(type) == bits;
    case H5T_FLOAT: {
      size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
      return bits >= 16 && bits <= 64 && H5Tget_offset(type) == 0 &&
             H5Tget_precision(type) == bits &&
             H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >=
                 0 &&
             sign == bits - 1 && mantissa == 0 && exponent == mantissa_bits &&
             exponent_bits == (bits == 64   ? 11U
                               : bits == 32 ? 8U
                                            : 5U) &&
             exponent + exponent_bits == sign && H5Tget_order(type) <= H5T_ORDER_BE;
    }
    case H5T_ENUM: {
      const Handle numbers(H5Tget_super(type));
      return numbers.is_open() && H5Tget_class(numbers) == H5T_INTEGER && IsPlainType(numbers) &&
             8 * H5Tget_size(numbers) == bits;
    }
    case H5T_COMPOUND: {
      if (H5Tget_nmembers(type) != 2) return false;
      const Handle first(H5Tget_member_type(type, 0)), second(H5Tget_member_type(type, 1));
      return first.is_open() && second.is_open() && H5Tget_class(first) == H5T_FLOAT &&
             H5Tget_class(second) == H5T_FLOAT && IsPlainType(first) && IsPlainType(second) &&
             H5Tget_member_offset(type, 0) == 0 && 16 * H5Tget_size(first) == bits &&
             H5Tget_member_offset(type, 1) == H5Tget_size(first) &&
             16 * H5Tget_size(second) == bits;
    }
    default:
      return false;
  }
}

const std::vector<NameRow>& OperatorNames() {
  static const std::vector<NameRow> kRows = {
      {"NpuConvolutionBackward", {"CudnnConvolutionBackward", "ThnnConvDepthwise2DBackward"}},
      {"CudnnConvolutionBackward", {"NpuConvolutionBackward"}},
      {"ThnnConvDepthwise2DBackward", {"NpuConvolutionBackward"}},
      {"NativeBatchNormBackward", {"CudnnBatchNormBackward"}},
      {"CudnnBatchNormBackward", {"NativeBatchNormBackward"}},
  };
  return kRows;
}

const std::vector<NameRow>& ArgumentNames() {
  static const std::vector<NameRow> kRows = {
      {"input", {"self"}}, {"self", {"input"}}, {"eps", {"epsilon"}}, {"epsilon", {"eps"}}};
  return kRows;
}

const std::vector<std::string_view>& OtherNames(const std::vector<NameRow>& rows,
                                                std::string_view name) {
  static const std::vector<std::string_view> kNone;
  const auto row = std::ranges::find(rows, name, &NameRow::first);
  return row == rows.end() ? kNone : row->second;
}

bool IsIgnoredArgument(std::string_view operation, std::string_view argument) {
  return (operation == "NpuConvolutionBackward" &&
          (argument == "benchmark" || argument == "deterministic")) ||
         (operation == "NativeBatchNormBackward" && argument == "result3");
}

namespace {

// What the library sees of a CommitFile: a driver in the sense of its H5FDpublic.h.
struct Driver {
  H5FD_t base{};  // first, as the library demands
  CommitFile* file = nullptr;
  haddr_t end = 0;  // of the addresses it has given out
};

constexpr haddr_t kMostBytes = haddr_t{1} << 62;

const Driver& Of(const H5FD_t* base) { return *reinterpret_cast<const Driver*>(base); }
Driver& Of(H5FD_t* base) { return *reinterpret_cast<Driver*>(base); }

H5FD_t* Open(const char* /*name*/, unsigned /*flags*/, hid_t access, haddr_t /*most*/) {
  const void* info = H5Pget_driver_info(access);
  if (info == nullptr) return nullptr;
  auto* driver = new (std::nothrow) Driver;
  if (driver == nullptr) return nullptr;
  driver->file = *static_cast<CommitFile* const*>(info);
  return &driver->base;
}

herr_t Close(H5FD_t* base) {
  delete &Of(base);
  return 0;
}

int Compare(const H5FD_t* a, const H5FD_t* b) {
  if (Of(a).file == Of(b).file) return 0;
  return Of(a).file < Of(b).file ? -1 : 1;
}

herr_t Query(const H5FD_t* /*base*/, unsigned long* flags) {
  // No H5FD_FEAT_ACCUMULATE_METADATA: that cache of 1.10 crashes on damaged lengths.
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

// The library's own reasons for a failed driver say nothing: ours goes below them.
herr_t Outcome(const Status& status) {
  if (status) return 0;
  H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_VFL, H5E_CANTINIT, "%s",
           status.error().message().c_str());
  return -1;
}

haddr_t EndOfAddresses(const H5FD_t* base, H5FD_mem_t /*kind*/) { return Of(base).end; }

herr_t SetEndOfAddresses(H5FD_t* base, H5FD_mem_t /*kind*/, haddr_t end) {
  Of(base).end = end;
  return 0;
}

haddr_t EndOfFile(const H5FD_t* base, H5FD_mem_t /*kind*/) { return Of(base).file->size(); }

herr_t Read(H5FD_t* base, H5FD_mem_t /*kind*/, hid_t /*transfer*/, haddr_t place, size_t size,
            void* out) {
  if (place > kMostBytes || size > kMostBytes) return -1;
  return Outcome(Of(base).file->Read(place, {static_cast<std::byte*>(out), size}));
}

herr_t Write(H5FD_t* base, H5FD_mem_t /*kind*/, hid_t /*transfer*/, haddr_t place, size_t size,
             const void* bytes) {
  if (place > kMostBytes || size > kMostBytes) return -1;
  return Outcome(Of(base).file->Write(place, {static_cast<const std::byte*>(bytes), size}));
}

// A file shorter than its addresses counts as cut.
herr_t Truncate(H5FD_t* base, hid_t /*transfer*/, hbool_t /*closing*/) {
  return Outcome(Of(base).file->Extend(Of(base).end));
}

H5FD_class_t MakeClass() {
  H5FD_class_t made{};
  made.name = "plumbline";
  made.maxaddr = kMostBytes;
  made.fc_degree = H5F_CLOSE_STRONG;
  made.fapl_size = sizeof(CommitFile*);
  made.open = Open;
  made.close = Close;
  made.cmp = Compare;
  made.query = Query;
  made.get_eoa = EndOfAddresses;
  made.set_eoa = SetEndOfAddresses;
  made.get_eof = EndOfFile;
  made.read = Read;
  made.write = Write;
  made.truncate = Truncate;
  const H5FD_mem_t map[] = H5FD_FLMAP_DICHOTOMY;
  std::ranges::copy(map, made.fl_map);
  return made;
}

herr_t TakeReason(unsigned /*depth*/, const H5E_error2_t* error, void* out) {
  auto& reason = *static_cast<std::string*>(out);
  if (reason.empty() && error->desc != nullptr) reason = error->desc;
  return 0;
}

}  // namespace

void Silence() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

Error LastError(ErrorCode code, std::string_view path, std::string_view what) {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, TakeReason, &reason);
  H5Eclear2(H5E_DEFAULT);
  if (reason.empty()) return Error(code, fmt::format("{}: {}", path, what));
  return Error(code, fmt::format("{}: {} (HDF5: {})", path, what, reason));
}

Result<Handle> AccessThrough(CommitFile& file) {
  static const H5FD_class_t kClass = MakeClass();
  static const hid_t driver = H5FDregister(&kClass);
  Handle access(H5Pcreate(H5P_FILE_ACCESS));
  CommitFile* pointer = &file;
  if (driver < 0 || !access.is_open() || H5Pset_driver(access, driver, &pointer) < 0 ||
      H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0) {
    return LastError(ErrorCode::kInternal, file.path(), "cannot be given to the HDF5 library");
  }
  return access;
}

}  // namespace plumbline::hdf5
