#include "formats/hdf5/hdf5_dump.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/file/file.h"
#include "base/memory/digest.h"

namespace plumbline::hdf5 {

namespace {

constexpr std::pair<DType, int32_t> kNumbers[] = {
    {DType::kFloat32, 1},
    {DType::kUInt8, 2},
    {DType::kInt8, 3},
    {DType::kUInt16, 4},
    {DType::kInt16, 5},
    {DType::kInt32, 6},
    {DType::kInt64, 7},
    {DType::kBool, 9},
    {DType::kFloat16, 10},
    {DType::kFloat64, 11},
    {DType::kUInt32, 12},
    {DType::kUInt64, 13},
    {DType::kComplex64, 14},
    {DType::kComplex128, 15},
    {DType::kBFloat16, 16},
    {DType::kFloat8E4M3FN, 17},
    {DType::kFloat8E4M3FNUZ, 18},
    {DType::kFloat8E5M2, 19},
    {DType::kFloat8E5M2FNUZ, 20},
};
static_assert(std::size(kNumbers) == kDTypeCount);

}  // namespace

int32_t DataTypeNumber(DType dtype) {
  for (const auto& row : kNumbers) {
    if (row.first == dtype) return row.second;
  }
  return 0;
}

std::optional<DType> DTypeOfNumber(int32_t number) {
  for (const auto& row : kNumbers) {
    if (row.second == number) return row.first;
  }
  return std::nullopt;
}

uint32_t ChecksumOf(std::string_view name, ValueKind kind, int32_t data_type,
                    std::span<const int64_t> sizes, std::span<const std::byte> bytes) {
  const std::string text = fmt::format("{}|{}|{}|{}", name, static_cast<int32_t>(kind), data_type,
                                       fmt::join(sizes, ","));
  return Crc32(bytes, Crc32(std::as_bytes(std::span(text))));
}

bool IsHdf5(const std::string& path) {
  static constexpr std::string_view kSignature("\x89HDF\r\n\x1a\n", 8);
  if (KindOf(path) != PathKind::kFile) return false;
  const Result<std::string> start = ReadStart(path, kSignature.size());
  return start && *start == kSignature;
}

}  // namespace plumbline::hdf5
