#include "tensor/dlpack.h"

namespace plumbline::dlpack {
namespace {

// DLDataTypeCode of DLPack 1.3.
constexpr uint8_t kSigned = 0, kUnsigned = 1, kFloat = 2, kBFloat = 4, kComplex = 5, kBool = 6,
                  kFloat8E4M3FN = 10, kFloat8E4M3FNUZ = 11, kFloat8E5M2 = 12, kFloat8E5M2FNUZ = 13;

struct Row {
  uint8_t code, bits;
  DType dtype;
};
constexpr Row kRows[] = {
    {kSigned, 8, DType::kInt8},
    {kSigned, 16, DType::kInt16},
    {kSigned, 32, DType::kInt32},
    {kSigned, 64, DType::kInt64},
    {kUnsigned, 8, DType::kUInt8},
    {kUnsigned, 16, DType::kUInt16},
    {kUnsigned, 32, DType::kUInt32},
    {kUnsigned, 64, DType::kUInt64},
    {kFloat, 16, DType::kFloat16},
    {kFloat, 32, DType::kFloat32},
    {kFloat, 64, DType::kFloat64},
    {kBFloat, 16, DType::kBFloat16},
    {kComplex, 64, DType::kComplex64},
    {kComplex, 128, DType::kComplex128},
    {kBool, 8, DType::kBool},
    {kFloat8E4M3FN, 8, DType::kFloat8E4M3FN},
    {kFloat8E4M3FNUZ, 8, DType::kFloat8E4M3FNUZ},
    {kFloat8E5M2, 8, DType::kFloat8E5M2},
    {kFloat8E5M2FNUZ, 8, DType::kFloat8E5M2FNUZ},
};

}  // namespace

std::optional<DType> TypeOf(const DataType& type) {
  if (type.lanes != 1) return std::nullopt;
  for (const Row& row : kRows) {
    if (row.code == type.code && row.bits == type.bits) return row.dtype;
  }
  return std::nullopt;
}

DataType DataTypeOf(DType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return {row.code, row.bits, 1};
  }
  return {};
}

std::optional<TensorView> ViewOf(const Tensor& in, Strides& own) {
  const std::optional<DType> dtype = TypeOf(in.dtype);
  if (!dtype || in.ndim < 0 || in.ndim > kMaxRank) return std::nullopt;
  const auto rank = static_cast<size_t>(in.ndim);
  TensorView view;
  view.dtype = *dtype;
  view.data = static_cast<const std::byte*>(in.data) + in.byte_offset;
  view.sizes = {in.shape, rank};
  if (in.strides != nullptr || rank == 0) {
    view.strides = {in.strides, rank};
    return view;
  }
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    own[i] = stride;
    stride *= in.shape[i] > 0 ? in.shape[i] : 1;
  }
  view.strides = {own.data(), rank};
  return view;
}

}  // namespace plumbline::dlpack
