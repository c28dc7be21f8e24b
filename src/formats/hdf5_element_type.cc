#include "formats/hdf5_element_type.h"

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

}  // namespace plumbline::hdf5
