// PyTorch .pt files that hold one tensor: a stored zip with a small pickle
// (docs/formats/torch_pt.md).
//
// Reading executes nothing: the pickle machine knows tensor rebuild functions and storages only.

#ifndef PLUMBLINE_FORMATS_PYTORCH_TORCH_PT_H_
#define PLUMBLINE_FORMATS_PYTORCH_TORCH_PT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "formats/pytorch/torch_pickle.h"
#include "formats/pytorch/zip.h"
#include "plumbline/tensor.h"

namespace plumbline::torch_pt {

// What files of torch.save with one tensor and with many have in common.

inline constexpr std::string_view kZipMagic = "PK\3\4";
inline constexpr std::string_view kPickleMagic = "\x80\x02";
// First value of a file from before PyTorch 1.6 (torch.serialization.MAGIC_NUMBER, LONG1 bytes).
inline constexpr std::string_view kLegacyMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
inline constexpr int64_t kLegacyProtocol = 1001;
inline constexpr std::string_view kPickleName = "data.pkl";

// Whether a storage of `storage_bytes` bytes is the one that the tensor names and holds all of its
// elements. kCorrupt, or kUnsupported for views that expand few bytes beyond reason.
Status CheckStorage(const PickledTensor& tensor, uint64_t storage_bytes);

// Everything up to the member called data.pkl, slash included; a file saved under another name
// keeps its old directory.
Result<std::string> ArchiveDirectory(const std::vector<zip::Member>& members);

// A .pt file around `data_bytes` bytes of contiguous element data: file = head + data + tail.
// The data starts at a multiple of 64. The bytes do not depend on the file's name, so files of
// equal tensors are identical and can be hard links of each other. torch.load(weights_only=True)
// reads them.
struct Frame {
  std::string head;
  std::string tail;
};
// `data_crc32` is the CRC-32 (zlib's polynomial) of the element bytes.
Frame MakeFrame(DType dtype, std::span<const int64_t> sizes, uint64_t data_bytes,
                uint32_t data_crc32);

// Whether Open compares the element bytes with their recorded checksum (one more pass over them).
enum class DataCheck : uint8_t { kVerify, kTrust };

// A mapped .pt file and the tensor in it. Movable; view() stays valid while the object lives.
// Thread-safe for reading.
class PtFile {
 public:
  // kNotFound, kIo, kCorrupt (damaged container or pickle, storage too short), kUnsupported (an
  // object that is not one plain tensor, or a pickle that names anything but tensor parts).
  static Result<PtFile> Open(const std::string& path, DataCheck check = DataCheck::kVerify);
  // The same for bytes in memory, which must outlive the object.
  static Result<PtFile> Parse(std::span<const std::byte> bytes,
                              DataCheck check = DataCheck::kVerify);
  // Strides are those of the file: a saved view is not made contiguous.
  [[nodiscard]] TensorView view() const;

 private:
  struct Contents;
  static Result<Contents> ReadZip(std::span<const std::byte> file, DataCheck check);
  static Result<Contents> ReadLegacy(std::span<const std::byte> file);
  Status Bind(Contents contents);

  std::shared_ptr<const MappedFile> file_;
  std::vector<std::byte> converted_;  // elements of a big-endian file
  DType dtype_ = DType::kFloat32;
  const std::byte* data_ = nullptr;
  Shape sizes_;
  std::vector<int64_t> strides_;
};

}  // namespace plumbline::torch_pt

#endif  // PLUMBLINE_FORMATS_PYTORCH_TORCH_PT_H_
