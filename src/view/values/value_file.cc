#include "view/values/value_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/file/file.h"
#include "formats/array/safetensors.h"
#include "formats/pytorch/torch_archive.h"
#include "load/derived_tensor.h"
#include "load/gathered_tensor.h"
#include "load/processed_tensor.h"
#include "load/run_reader.h"
#include "measure/tensor_metrics.h"
#include "tensor/block_gather.h"
#include "tensor/element_value.h"

namespace plumbline::view {
namespace {

constexpr std::string_view kMemberSign = "::";
constexpr std::string_view kSafetensorsEnding = ".safetensors";

// A path that names a tensor of a file; the second is empty where it does not.
std::pair<std::string, std::string_view> SplitMember(std::string_view path) {
  const size_t at = path.rfind(kMemberSign);
  if (at == std::string_view::npos || KindOf(std::string(path)) == PathKind::kFile) {
    return {std::string(path), {}};
  }
  return {std::string(path.substr(0, at)), path.substr(at + kMemberSign.size())};
}

Error NoMember(const std::string& path, std::string_view member) {
  return Error(ErrorCode::kNotFound, fmt::format("{}: holds no tensor '{}'", path, member));
}

}  // namespace

Status ValueFile::Bind(const TensorView& view) {
  dtype_ = view.dtype;
  data_ = view.data;
  sizes_.assign(view.sizes.begin(), view.sizes.end());
  strides_.assign(view.strides.begin(), view.strides.end());
  PL_TRY_ASSIGN(const int64_t count, ElementCount(sizes_));
  elements_ = static_cast<size_t>(count);
  return {};
}

Status ValueFile::OpenMember(const std::string& path, std::string_view member) {
  if (path.ends_with(kSafetensorsEnding)) {
    PL_TRY_ASSIGN(auto opened, safetensors::SafetensorsFile::Open(path));
    const auto file = std::make_shared<const safetensors::SafetensorsFile>(std::move(opened));
    const auto found = std::ranges::find(file->tensors(), member, &safetensors::StoredTensor::name);
    if (found == file->tensors().end()) return NoMember(path, member);
    if (!found->problem.empty()) {
      return Error(ErrorCode::kUnsupported,
                   fmt::format("{}: {}: {}", path, member, found->problem));
    }
    owner_ = file;
    const std::vector<int64_t> strides = ContiguousStrides(found->sizes);
    return Bind({found->dtype, file->data(*found).data(), found->sizes, strides});
  }
  PL_TRY_ASSIGN(auto opened, torch_pt::TorchArchive::Open(path));
  const auto file = std::make_shared<const torch_pt::TorchArchive>(std::move(opened));
  const auto found = std::ranges::find(file->tensors(), member, &torch_pt::ArchiveTensor::name);
  if (found == file->tensors().end()) return NoMember(path, member);
  if (!found->problem.empty()) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: {}: {}", path, member, found->problem));
  }
  owner_ = file;
  return Bind(found->view());
}

Result<ValueFile> ValueFile::Open(const std::string& path) {
  ValueFile file;
  if (const auto [archive, member] = SplitMember(path); !member.empty()) {
    PL_TRY(file.OpenMember(archive, member));
    return file;
  }
  const auto opened = std::make_shared<const Result<TensorFile>>(load::OpenTensorIn(
      std::string(DirectoryOf(path)), std::string(BaseName(path)), torch_pt::DataCheck::kTrust));
  if (!*opened) return opened->error();
  file.owner_ = opened;
  PL_TRY(file.Bind((*opened)->view()));
  return file;
}

Result<std::string> ContentKey(const std::string& path) {
  const std::string archive = SplitMember(path).first;
  std::vector<std::string> files = {archive};
  if (const auto derived = load::ParseDerivedName(BaseName(archive))) {
    files.clear();
    for (const std::string& name : derived->files) {
      files.push_back(JoinPath(DirectoryOf(archive), name));
    }
  } else if (const auto gathered = load::ParseGatheredName(BaseName(archive))) {
    files.clear();
    for (const auto& piece : gathered->pieces) {
      for (const std::string& name : piece.files) {
        files.push_back(JoinPath(DirectoryOf(archive), name));
      }
    }
  } else if (const auto processed = load::ParseProcessedName(BaseName(archive))) {
    files = {JoinPath(DirectoryOf(archive), processed->file)};
    for (const load::ProcessingStep& step : processed->steps) {
      if (!step.matrix.empty()) files.push_back(step.matrix);
    }
  }
  std::string key = path;
  for (const std::string& file : files) {
    PL_TRY_ASSIGN(const uint64_t bytes, FileSize(file));
    PL_TRY_ASSIGN(const int64_t changed, ModifiedAt(file));
    PL_TRY_ASSIGN(const FileIdentity identity, IdentityOf(file));
    key += fmt::format("\n{}:{}:{}:{}", bytes, changed, identity.device, identity.inode);
  }
  return key;
}

ElementReader::ElementReader(const TensorView& view)
    : view_(view),
      is_contiguous_(view.is_contiguous()),
      is_complex_(InfoOf(view.dtype).kind == DTypeKind::kComplex),
      elements_(static_cast<size_t>(view.element_count())),
      element_bytes_(InfoOf(view.dtype).size_bytes) {}

const std::byte* ElementReader::Raw(size_t first, size_t count, std::byte* scratch) const {
  if (is_contiguous_) return view_.data + first * element_bytes_;
  std::array<std::byte, BlockGather::kMinScratchBytes> room;
  BlockGather gather(view_, room);
  gather.Select(first, count);
  std::byte* at = scratch;
  for (auto chunk = gather.Next(); !chunk.empty(); chunk = gather.Next()) {
    std::memcpy(at, chunk.data(), chunk.size());
    at += chunk.size();
  }
  return scratch;
}

void ElementReader::Read(size_t first, size_t count, double* out) const {
  std::array<std::byte, kRunElements * 16> scratch;
  WidenElements(view_.dtype, Raw(first, count, scratch.data()), count, out);
}

void WidenElements(DType dtype, const std::byte* data, size_t count, double* out) {
  if (InfoOf(dtype).kind != DTypeKind::kComplex) return measure::Widen(dtype, data, count, out);
  const bool is_single = dtype == DType::kComplex64;
  const size_t width = is_single ? sizeof(float) : sizeof(double);
  for (size_t i = 0; i < count; ++i) {
    const std::byte* at = data + 2 * width * i;
    out[i] = is_single ? std::hypot(static_cast<double>(LoadAs<float>(at)),
                                    static_cast<double>(LoadAs<float>(at + width)))
                       : std::hypot(LoadAs<double>(at), LoadAs<double>(at + width));
  }
}

namespace {

// The parts of complex elements; of others the imaginary part is 0.
void ReadParts(const ElementReader& reader, size_t first, size_t count, double* parts) {
  std::array<std::byte, kRunElements * 16> scratch;
  if (!reader.is_complex()) {
    std::array<double, kRunElements> reals;
    reader.Read(first, count, reals.data());
    for (size_t i = 0; i < count; ++i) {
      parts[2 * i] = reals[i];
      parts[2 * i + 1] = 0;
    }
    return;
  }
  const std::byte* raw = reader.Raw(first, count, scratch.data());
  const DType part = reader.dtype() == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
  measure::Widen(part, raw, 2 * count, parts);
}

template <class T>
void Subtract(const std::byte* target, const std::byte* golden, size_t count, double* out) {
  for (size_t i = 0; i < count; ++i) {
    const T a = LoadAs<T>(target + i * sizeof(T)), b = LoadAs<T>(golden + i * sizeof(T));
    const auto distance =
        static_cast<double>(a >= b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
                                   : static_cast<uint64_t>(b) - static_cast<uint64_t>(a));
    out[i] = a >= b ? distance : -distance;
  }
}

bool IsWideInteger(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kUInt64; }

}  // namespace

PairReader::PairReader(const TensorView& target, const TensorView& golden)
    : target_(target), golden_(golden) {}

void PairReader::Read(size_t first, size_t count, double* target, double* golden,
                      double* difference) const {
  target_.Read(first, count, target);
  golden_.Read(first, count, golden);
  if (target_.is_complex() || golden_.is_complex()) return ReadComplex(first, count, difference);
  if (target_.dtype() == golden_.dtype() && IsWideInteger(golden_.dtype())) {
    return ReadIntegers(first, count, difference);
  }
  for (size_t i = 0; i < count; ++i) difference[i] = target[i] - golden[i];
}

void PairReader::ReadComplex(size_t first, size_t count, double* difference) const {
  std::array<double, 2 * kRunElements> a, b;
  ReadParts(target_, first, count, a.data());
  ReadParts(golden_, first, count, b.data());
  for (size_t i = 0; i < count; ++i) {
    difference[i] = std::hypot(a[2 * i] - b[2 * i], a[2 * i + 1] - b[2 * i + 1]);
  }
}

void PairReader::ReadIntegers(size_t first, size_t count, double* difference) const {
  std::array<std::byte, kRunElements * 16> of_target, of_golden;
  const std::byte* a = target_.Raw(first, count, of_target.data());
  const std::byte* b = golden_.Raw(first, count, of_golden.data());
  if (golden_.dtype() == DType::kInt64) return Subtract<int64_t>(a, b, count, difference);
  Subtract<uint64_t>(a, b, count, difference);
}

namespace {

constexpr size_t kMostParts = 64;

}  // namespace

size_t WalkParts(size_t elements) {
  constexpr size_t kLeast = size_t{1} << 18;  // elements of a part
  return std::clamp((elements + kLeast - 1) / kLeast, size_t{1}, kMostParts);
}

WalkPart PartOf(size_t elements, size_t index) {
  const size_t runs = (elements + kRunElements - 1) / kRunElements;
  const size_t parts = WalkParts(elements);
  const auto begin_of = [&](size_t i) {
    // Without a product that might leave 64 bits.
    return std::min(elements, (runs / parts * i + std::min(i, runs % parts)) * kRunElements);
  };
  return {index, begin_of(index), begin_of(index + 1)};
}

Error CancelledError() { return Error(ErrorCode::kNotFound, "cancelled"); }

}  // namespace plumbline::view
