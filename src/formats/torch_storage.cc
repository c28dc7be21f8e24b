#include "formats/torch_storage.h"

#include <fmt/format.h>

namespace plumbline::torch_pt {
namespace {

// A view may repeat elements with stride 0; a count beyond both this and the storage is no data.
constexpr int64_t kMaxExpandedElements = int64_t{1} << 36;

// Index of the last element that a non-empty tensor addresses.
Result<int64_t> LastIndex(const PickledTensor& tensor) {
  int64_t last = tensor.offset;
  bool overflow = last < 0;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    int64_t step = 0;
    overflow = overflow || tensor.strides[i] < 0 ||
               __builtin_mul_overflow(tensor.sizes[i] - 1, tensor.strides[i], &step) ||
               __builtin_add_overflow(last, step, &last);
  }
  if (overflow) {
    return Error(ErrorCode::kCorrupt, "the tensor's offset and strides make no sense");
  }
  return last;
}

}  // namespace

Status CheckStorage(const PickledTensor& tensor, uint64_t storage_bytes) {
  const uint64_t unit = tensor.storage.is_untyped ? 1 : InfoOf(tensor.storage.dtype).size_bytes;
  const auto count = static_cast<uint64_t>(tensor.storage.count);
  if (count > storage_bytes / unit || count * unit != storage_bytes) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("the storage has the wrong length (expected {} x {} bytes, got {})",
                             count, unit, storage_bytes));
  }
  PL_TRY_ASSIGN(const int64_t elements, ElementCount(tensor.sizes));
  if (elements == 0) return {};
  PL_TRY_ASSIGN(const int64_t last, LastIndex(tensor));
  const uint64_t size = InfoOf(tensor.dtype).size_bytes;
  if (static_cast<uint64_t>(last) >= storage_bytes / size) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("the storage is too short (expected more than {} elements, got {})",
                             last, storage_bytes / size));
  }
  if (elements > kMaxExpandedElements && static_cast<uint64_t>(elements) > storage_bytes / size) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{} elements expanded from {} bytes", elements, storage_bytes));
  }
  return {};
}

Result<std::string> ArchiveDirectory(const std::vector<zip::Member>& members) {
  for (const zip::Member& member : members) {
    if (!member.name.ends_with(kPickleName)) continue;
    const std::string_view directory =
        member.name.substr(0, member.name.size() - kPickleName.size());
    if (directory.ends_with('/') && directory.find('/') + 1 == directory.size()) {
      return std::string(directory);
    }
  }
  return Error(ErrorCode::kUnsupported,
               "a zip archive without data.pkl (expected a file of torch.save)");
}

}  // namespace plumbline::torch_pt
