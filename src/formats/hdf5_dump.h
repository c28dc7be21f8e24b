// Operator dumps of the PyTorch 1.5 era: one HDF5 file with the arguments and results of every
// operator (docs/formats/hdf5_dump.md). What reader and writer share.

#ifndef PLUMBLINE_FORMATS_HDF5_DUMP_H_
#define PLUMBLINE_FORMATS_HDF5_DUMP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "plumbline/tensor.h"

namespace plumbline::hdf5 {

// Attribute `Type` of a value. The numbers are those of the files.
enum class ValueKind : int32_t {
  kTensor = 0,
  kTensorList = 1,
  kIntegers = 2,
  kInteger = 3,
  kBool = 4,
  kDouble = 5,
  kOptionalDouble = 6,
  kScalar = 7,
  kOptionalInteger = 9,
  kOptionalScalar = 10,
  kSize = 13,
  kScalarType = 14,
  kSizePair = 15,
  kIntegerArray = 16,
  kMemoryFormat = 17,
  kTensorOptions = 18,
};

// Attribute `DeviceType`.
inline constexpr int32_t kCpu = 0;
inline constexpr int32_t kCuda = 1;
inline constexpr int32_t kNpu = 10;

// Attribute `DataType`: the numbers of ONNX, of which PyTorch 1.5 had 1 to 11.
int32_t DataTypeNumber(DType dtype);
std::optional<DType> DTypeOfNumber(int32_t number);

enum class Side : uint8_t { kInput, kOutput };
constexpr std::string_view SideName(Side side) { return side == Side::kInput ? "input" : "output"; }

// A tensor argument. Without storage (`view.data` null where there are elements) only its name is
// kept.
struct TensorValue {
  TensorView view;  // contiguous
  int32_t device = kCpu;
  bool has_storage = true;
};

struct OptionsValue {
  int32_t device = kCpu;
  std::optional<DType> dtype;
  bool requires_grad = false;
};

// The alternative follows from the kind: kIntegers, kSizePair and kIntegerArray are lists, kScalar
// and kOptionalScalar any number.
using ValueData = std::variant<TensorValue, std::vector<TensorValue>, std::vector<int64_t>, int64_t,
                               bool, double, OptionsValue>;

// One argument or result of an operator.
struct Argument {
  std::string name;
  ValueKind kind = ValueKind::kTensor;
  ValueData data;
};

// Name of the attribute with the CRC-32 that ChecksumOf() defines, which plumbline adds.
inline constexpr const char* kChecksum = "Checksum";
// CRC-32 over "{side}/{argument}|{kind}|{data type}|{size,size,...}" and the bytes of the dataset.
uint32_t ChecksumOf(std::string_view name, ValueKind kind, int32_t data_type,
                    std::span<const int64_t> sizes, std::span<const std::byte> bytes);

// Whether the file starts as HDF5 files do.
bool IsHdf5(const std::string& path);

}  // namespace plumbline::hdf5

#endif  // PLUMBLINE_FORMATS_HDF5_DUMP_H_
