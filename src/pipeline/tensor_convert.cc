#include "pipeline/tensor_convert.h"

#include <cstring>
#include <span>
#include <vector>

#include "base/digest.h"
#include "base/file.h"
#include "formats/npy.h"
#include "formats/torch_pt.h"
#include "plumbline/tensor.h"
#include "tensor/half.h"

namespace plumbline {
namespace {

// The elements in row-major order; `copy` keeps them when the view's own memory cannot be used.
Result<std::span<const std::byte>> ContiguousBytes(const TensorView& view, Tensor& copy) {
  if (view.is_contiguous()) return std::span(view.data, view.size_bytes());
  PL_TRY_ASSIGN(copy, Tensor::Copy(view));
  return std::span(copy.view().data, view.size_bytes());
}

std::vector<std::byte> Widen(std::span<const std::byte> narrow, size_t size, NarrowFormat format) {
  const size_t count = narrow.size() / size;
  std::vector<std::byte> wide(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    uint16_t bits = 0;  // little-endian, as all element data
    std::memcpy(&bits, narrow.data() + i * size, size);
    const float value = NarrowToFloat(format, bits);
    std::memcpy(wide.data() + i * sizeof value, &value, sizeof value);
  }
  return wide;
}

Result<uint64_t> WriteParts(const std::string& path, std::string_view head,
                            std::span<const std::byte> data, std::string_view tail) {
  PL_TRY_ASSIGN(AtomicFile out, AtomicFile::Create(path));
  PL_TRY(out.Write(head));
  PL_TRY(out.Write(data));
  PL_TRY(out.Write(tail));
  PL_TRY(out.Commit(/*durable=*/false));
  return head.size() + data.size() + tail.size();
}

}  // namespace

Result<ConvertedTensor> PtToNpy(const std::string& from, const std::string& to) {
  PL_TRY_ASSIGN(const torch_pt::PtFile file, torch_pt::PtFile::Open(from));
  const TensorView view = file.view();
  Tensor copy;
  PL_TRY_ASSIGN(std::span<const std::byte> bytes, ContiguousBytes(view, copy));
  ConvertedTensor converted;
  DType dtype = view.dtype;
  std::vector<std::byte> wide;
  const NarrowFormat* narrow = NarrowFormatOf(view.dtype);
  if (narrow != nullptr && InfoOf(view.dtype).numpy_descr.empty()) {
    wide = Widen(bytes, InfoOf(view.dtype).size_bytes, *narrow);
    bytes = wide;
    dtype = DType::kFloat32;
    converted.widened = true;
  }
  PL_TRY_ASSIGN(const std::string header, npy::MakeHeader(dtype, view.sizes));
  PL_TRY_ASSIGN(converted.bytes, WriteParts(to, header, bytes, {}));
  return converted;
}

Result<ConvertedTensor> NpyToPt(const std::string& from, const std::string& to) {
  PL_TRY_ASSIGN(const npy::NpyFile file, npy::NpyFile::Open(from));
  const TensorView view = file.view();
  Tensor copy;
  PL_TRY_ASSIGN(const std::span<const std::byte> bytes, ContiguousBytes(view, copy));
  const torch_pt::Frame frame =
      torch_pt::MakeFrame(view.dtype, view.sizes, bytes.size(), Crc32(bytes));
  ConvertedTensor converted;
  PL_TRY_ASSIGN(converted.bytes, WriteParts(to, frame.head, bytes, frame.tail));
  return converted;
}

Result<uint64_t> CopyFileBytes(const std::string& from, const std::string& to) {
  PL_TRY_ASSIGN(const auto file, MappedFile::Open(from));
  return WriteParts(to, {}, file->bytes(), {});
}

}  // namespace plumbline
