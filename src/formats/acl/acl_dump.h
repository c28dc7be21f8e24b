// Dump files of devices: what one operator took and gave, as asynchronous, ACL and GE dump leave it
// (docs/formats/acl_dump.md).

#ifndef PLUMBLINE_FORMATS_ACL_ACL_DUMP_H_
#define PLUMBLINE_FORMATS_ACL_ACL_DUMP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file_bytes.h"
#include "formats/acl/acl_types.h"
#include "formats/array/npy.h"
#include "plumbline/tensor.h"
#include "tensor/device_layout.h"

namespace plumbline::acl {

// Sizes as a message has them: above 2^63 - 1 where the recorder did not know one.
using Dims = std::vector<uint64_t>;
// The shape; nothing when a size is unknown.
std::optional<Shape> KnownShape(const std::optional<Dims>& dims);

struct DimRange {
  uint64_t start = 0, end = 0;
};

// Where an output came from before the graph was compiled.
struct OriginalOp {
  std::string name;
  uint32_t output_index = 0;
  int32_t data_type = 0;
  DeviceFormat format = DeviceFormat::kNCHW;
};

// One input or output. Numbers of types are those of FindType(), also in nano dumps.
struct DumpedTensor {
  int32_t data_type = 0;
  DeviceFormat format = DeviceFormat::kNCHW;
  std::optional<Dims> shape;              // on the device, with padding
  std::optional<Dims> original_shape;     // as the user knows it
  int32_t sub_format = 0;                 // groups of a grouped convolution
  uint64_t size = 0;                      // bytes, by the message
  uint64_t address = 0, offset = 0;       // on the device
  std::optional<OriginalOp> original_op;  // of outputs, as the next
  std::vector<DimRange> dim_ranges;
  std::span<const std::byte> data;  // borrowed; shorter than `size` in a cut file

  [[nodiscard]] bool is_cut() const { return data.size() < size; }
};

// The elements in the layout of the device. kCorrupt: cut, or too short for the shape;
// kUnsupported: the type. The messages have no path.
Result<Elements> ElementsOf(const DumpedTensor& tensor);

// An L1 buffer (type 0) or a workspace (type 0: text of a custom AI CPU operator).
struct DumpedBytes {
  int32_t type = 0;
  uint64_t size = 0;
  std::span<const std::byte> data;  // as of a tensor

  [[nodiscard]] bool is_cut() const { return data.size() < size; }
};

struct Attribute {
  std::string name, value;
};

// The whole message. Fields that are not named here are stepped over.
struct Message {
  // Whether it describes any data.
  [[nodiscard]] bool has_parts() const {
    return !inputs.empty() || !outputs.empty() || !buffers.empty() || !spaces.empty();
  }

  std::string version;
  uint64_t dump_time = 0;
  std::string op_name;
  std::vector<DumpedTensor> inputs, outputs;
  std::vector<DumpedBytes> buffers, spaces;
  std::vector<Attribute> attributes;
};

enum class Container : uint8_t {
  kVersion2,  // length of the message, the message, all data
  kVersion1,  // a message that holds the data
  kNano,      // length of a header of binary records, the header, all data
  kNpy,       // an array, taken for the output of an operator
};

// An open file. Data of the message lie in it. Move-only.
class DumpFile {
 public:
  // Finds out which container it is. kNotFound, kIo; kCorrupt: empty, no message, a length beyond
  // the file. A file that is cut behind its header is read: FirstCutPart() and is_cut() of its
  // parts. `name` is the one that the recorder gave the file, which another one may stand for at
  // `path` (mapping.csv, pieces). One that ends in .npy is an array; of a nano dump it gives
  // op_name and dump_time: kCorrupt if it has less than five parts.
  static Result<DumpFile> Open(const std::string& path, std::string_view name);
  static Result<DumpFile> Open(const std::string& path) { return Open(path, BaseName(path)); }
  // The same for bytes in memory, which must outlive the object; no array.
  static Result<DumpFile> Parse(std::span<const std::byte> bytes);
  DumpFile(DumpFile&&) = default;
  DumpFile& operator=(DumpFile&&) = default;

  [[nodiscard]] const Message& message() const { return message_; }
  [[nodiscard]] Container container() const { return container_; }
  // Bytes behind the last part, which nothing describes.
  [[nodiscard]] uint64_t surplus_bytes() const { return surplus_bytes_; }
  // "output 1" for the first part that is not all there; empty: the file is whole.
  [[nodiscard]] std::string FirstCutPart() const;

 private:
  DumpFile() = default;
  static Result<DumpFile> OpenArray(const std::string& path);
  static Result<DumpFile> ParseVersion2(std::span<const std::byte> bytes);
  static Result<DumpFile> ParseVersion1(std::span<const std::byte> bytes);
  static Result<DumpFile> ParseNano(std::span<const std::byte> bytes);
  void PlaceData(std::span<const std::byte> data);

  FileBytes file_;
  std::unique_ptr<npy::NpyFile> array_;
  Tensor contiguous_;  // elements of an array in another order
  Container container_ = Container::kVersion2;
  Message message_;
  uint64_t surplus_bytes_ = 0;
};

// Whether bytes start as a nano dump does. Damage of such a file is damage of a nano dump.
bool LooksLikeNano(std::span<const std::byte> bytes);

// Length and header of container version 2 for `message`, whose sizes are those of its data; the
// data follow in the order inputs, outputs, buffers, spaces.
std::string MakeHeader(const Message& message);
// Writes header and data, atomically. kIo, kNotFound.
Status WriteDump(const std::string& path, const Message& message);

// The message in the header of a device dump, in protobuf's wire format.

// `offset` is where the bytes stand in their file, for the places in errors. A tensor's `data` are
// those inside the message (container version 1). kCorrupt.
Result<Message> ReadMessage(std::span<const std::byte> bytes, size_t offset);

// Without the data; sizes are those of the data.
std::string WriteMessage(const Message& message);

}  // namespace plumbline::acl

#endif  // PLUMBLINE_FORMATS_ACL_ACL_DUMP_H_
