#include "pipeline/tensor_convert.h"

#include <span>

#include "base/digest.h"
#include "base/file.h"
#include "formats/npy.h"
#include "formats/torch_pt.h"
#include "plumbline/tensor.h"

namespace plumbline {
namespace {

// The elements in row-major order; `copy` keeps them when the view's own memory cannot be used.
Result<std::span<const std::byte>> ContiguousBytes(const TensorView& view, Tensor& copy) {
  if (view.is_contiguous()) return std::span(view.data, view.size_bytes());
  PL_TRY_ASSIGN(copy, Tensor::Copy(view));
  return std::span(copy.view().data, view.size_bytes());
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

Result<ConvertedTensor> WriteNpy(const TensorView& view, const std::string& to) {
  Tensor copy;
  PL_TRY_ASSIGN(const std::span<const std::byte> bytes, ContiguousBytes(view, copy));
  PL_TRY_ASSIGN(const npy::Contents contents, npy::MakeContents(view.dtype, view.sizes, bytes));
  ConvertedTensor converted;
  converted.widened = contents.dtype != view.dtype;
  PL_TRY_ASSIGN(converted.bytes, WriteParts(to, contents.header, contents.data, {}));
  return converted;
}

Result<ConvertedTensor> WritePt(const TensorView& view, const std::string& to) {
  Tensor copy;
  PL_TRY_ASSIGN(const std::span<const std::byte> bytes, ContiguousBytes(view, copy));
  const torch_pt::Frame frame =
      torch_pt::MakeFrame(view.dtype, view.sizes, bytes.size(), Crc32(bytes));
  ConvertedTensor converted;
  PL_TRY_ASSIGN(converted.bytes, WriteParts(to, frame.head, bytes, frame.tail));
  return converted;
}

Result<ConvertedTensor> PtToNpy(const std::string& from, const std::string& to) {
  PL_TRY_ASSIGN(const torch_pt::PtFile file, torch_pt::PtFile::Open(from));
  return WriteNpy(file.view(), to);
}

Result<ConvertedTensor> NpyToPt(const std::string& from, const std::string& to) {
  PL_TRY_ASSIGN(const npy::NpyFile file, npy::NpyFile::Open(from));
  return WritePt(file.view(), to);
}

Result<uint64_t> CopyFileBytes(const std::string& from, const std::string& to) {
  PL_TRY_ASSIGN(const auto file, MappedFile::Open(from));
  return WriteParts(to, {}, file->bytes(), {});
}

}  // namespace plumbline
