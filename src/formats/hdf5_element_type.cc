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

}  // namespace plumbline::hdf5
