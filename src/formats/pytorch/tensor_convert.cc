#include "formats/pytorch/tensor_convert.h"

#include <span>

#include "base/memory/digest.h"
#include "formats/array/npy.h"
#include "formats/pytorch/torch_pt.h"
#include "plumbline/tensor.h"

namespace plumbline {
namespace {

// The elements in row-major order; `copy` keeps them when the view's own memory cannot be used.
Result<std::span<const std::byte>> ContiguousBytes(const TensorView& view, Tensor& copy) {
  if (view.is_contiguous()) return std::span(view.data, view.size_bytes());
  PL_TRY_ASSIGN(copy, Tensor::Copy(view));
  return std::span(copy.view().data, view.size_bytes());
}

Result<uint64_t> WriteParts(AtomicFile& out, std::string_view head, std::span<const std::byte> data,
                            std::string_view tail) {
  PL_TRY(out.Write(head));
  PL_TRY(out.Write(data));
  PL_TRY(out.Write(tail));
  return head.size() + data.size() + tail.size();
}

// Creates the file, has `write` fill it, and commits it.
template <class T, class Write>
Result<T> Whole(const std::string& path, const Write& write) {
  PL_TRY_ASSIGN(AtomicFile out, AtomicFile::Create(path));
  Result<T> written = write(out);
  if (written) PL_TRY(out.Commit(/*durable=*/false));
  return written;
}

}  // namespace

Result<ConvertedTensor> WriteNpy(const TensorView& view, AtomicFile& to) {
  Tensor copy;
  PL_TRY_ASSIGN(const std::span<const std::byte> bytes, ContiguousBytes(view, copy));
  PL_TRY_ASSIGN(const npy::Contents contents, npy::MakeContents(view.dtype, view.sizes, bytes));
  ConvertedTensor converted;
  converted.widened = contents.dtype != view.dtype;
  PL_TRY_ASSIGN(converted.bytes, WriteParts(to, contents.header, contents.data, {}));
  return converted;
}

Result<ConvertedTensor> WriteNpy(const TensorView& view, const std::string& to) {
  return Whole<ConvertedTensor>(to, [&](AtomicFile& out) { return WriteNpy(view, out); });
}

Result<ConvertedTensor> WritePt(const TensorView& view, AtomicFile& to) {
  Tensor copy;
  PL_TRY_ASSIGN(const std::span<const std::byte> bytes, ContiguousBytes(view, copy));
  const torch_pt::Frame frame =
      torch_pt::MakeFrame(view.dtype, view.sizes, bytes.size(), Crc32(bytes));
  ConvertedTensor converted;
  PL_TRY_ASSIGN(converted.bytes, WriteParts(to, frame.head, bytes, frame.tail));
  return converted;
}

Result<ConvertedTensor> WritePt(const TensorView& view, const std::string& to) {
  return Whole<ConvertedTensor>(to, [&](AtomicFile& out) { return WritePt(view, out); });
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
  return Whole<uint64_t>(to,
                         [&](AtomicFile& out) { return WriteParts(out, {}, file->bytes(), {}); });
}

}  // namespace plumbline
