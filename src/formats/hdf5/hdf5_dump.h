// Operator dumps of the PyTorch 1.5 era: one HDF5 file with the arguments and results of every
// operator (docs/formats/hdf5_dump.md). The values, their writer, and copies of parts of such
// files.

#ifndef PLUMBLINE_FORMATS_HDF5_HDF5_DUMP_H_
#define PLUMBLINE_FORMATS_HDF5_HDF5_DUMP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::hdf5 {

// Copies parts of one HDF5 file into another: what the tool h5copy does.

// An object, "/add_Tensor/7": with everything below it.
struct ObjectCopy {
  std::string source, destination;
  bool makes_parents = false;  // groups above the destination that are missing
};

// Copies all of them, or nothing: a process killed meanwhile leaves `output` as it was. `output` is
// made when missing. kNotFound: the input file, or an object in it, or a missing group above the
// destination; kInvalidArgument: a destination that is there already, two equal files; kCorrupt,
// kIo.
Status CopyObjects(const std::string& input, const std::string& output,
                   std::span<const ObjectCopy> copies);

// What reader and writer of operator dumps share.

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

// Writes an operator dump.

// Where the values of one operator call belong: /{operation}/{call}/{input or output}.
struct CallPlace {
  std::string operation;
  int64_t call = 0;  // sequence id, from 1
  Side side = Side::kInput;
};

// One file. What was committed survives the process being killed (base/file/commit_file.h); the
// file appears, and replaces an earlier one, at the first commit. After an error of kIo the file
// stays as committed and every later call fails. Movable. Thread-compatible.
class DumpWriter {
 public:
  // Errors of CommitFile::Create().
  static Result<DumpWriter> Create(const std::string& path);
  DumpWriter(DumpWriter&&) noexcept;
  DumpWriter& operator=(DumpWriter&&) = delete;
  ~DumpWriter();  // what was not committed is not in the file

  // kInvalidArgument: a name that is empty or holds a slash, a value that is there already.
  // float16, bfloat16 and float8 become float32, which holds their values.
  Status Write(const CallPlace& place, std::span<const Argument> arguments);
  Status Commit();

 private:
  struct State;
  explicit DumpWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plumbline::hdf5

#endif  // PLUMBLINE_FORMATS_HDF5_HDF5_DUMP_H_
