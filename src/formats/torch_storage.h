// What files of torch.save with one tensor and with many have in common.

#ifndef PLUMBLINE_FORMATS_TORCH_STORAGE_H_
#define PLUMBLINE_FORMATS_TORCH_STORAGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/torch_pickle.h"
#include "formats/zip.h"

namespace plumbline::torch_pt {

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

}  // namespace plumbline::torch_pt

#endif  // PLUMBLINE_FORMATS_TORCH_STORAGE_H_
