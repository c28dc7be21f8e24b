// Files that end in .bin and hold one tensor: elements whose type and sizes are in the name, as
// plumb convert and msaccucmp write them, and those of ATB.

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/text_parts.h"
#include "formats/acl_types.h"
#include "formats/atb_bin.h"
#include "load/checkpoint.h"

namespace plumbline::load {
namespace {

// What {name}.{2_3_4}.{float16}.{ND}.bin says.
struct NamedElements {
  int32_t type = 0;
  Shape sizes;
};

std::optional<Shape> SizesIn(std::string_view text) {
  Shape sizes;
  while (!text.empty()) {
    const size_t end = std::min(text.find('_'), text.size());
    const std::optional<int64_t> size = ParseNatural(text.substr(0, end));
    if (!size) return std::nullopt;
    sizes.push_back(*size);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return sizes;
}

// Takes the last part off.
std::string_view TakeEnd(std::string_view& name) {
  const size_t point = name.rfind('.');
  if (point == std::string_view::npos) return {};
  const std::string_view end = name.substr(point + 1);
  name = name.substr(0, point);
  return end;
}

std::optional<NamedElements> ParseName(std::string_view name) {
  TakeEnd(name);  // bin
  const std::string_view format = TakeEnd(name), type = TakeEnd(name), sizes = TakeEnd(name);
  if (format.empty() || type.empty()) return std::nullopt;
  const std::optional<Shape> shape = SizesIn(sizes);
  constexpr int32_t kMostTypes = std::numeric_limits<uint8_t>::max();
  for (int32_t code = 0; shape && code <= kMostTypes; ++code) {
    const acl::TypeInfo* info = acl::FindType(code);
    if (info != nullptr && info->file_name == type) return NamedElements{code, *shape};
  }
  return std::nullopt;
}

void AddTensor(const std::string& prefix, const TensorView& view, Checkpoint& out) {
  CheckpointTensor tensor{.name = prefix, .dtype = view.dtype};
  tensor.sizes.assign(view.sizes.begin(), view.sizes.end());
  TensorPiece piece;
  piece.data = view.data;
  piece.sizes = tensor.sizes;
  piece.strides.assign(view.strides.begin(), view.strides.end());
  tensor.pieces.push_back(std::move(piece));
  out.Add(std::move(tensor));
}

// torch.save() writes a zip archive or a pickle.
bool LooksLikeTorch(std::span<const std::byte> bytes) {
  return (bytes.size() >= 2 && std::memcmp(bytes.data(), "PK", 2) == 0) ||
         (!bytes.empty() && bytes[0] == std::byte{0x80});
}

}  // namespace

Result<bool> ReadPlainBin(const std::string& path, const std::string& prefix, Checkpoint& out) {
  PL_TRY_ASSIGN(const auto file, MappedFile::Open(path));
  const std::span<const std::byte> bytes = file->bytes();
  if (const std::optional<NamedElements> named = ParseName(BaseName(path))) {
    Result<acl::Elements> elements = acl::Decode(named->type, named->sizes, bytes);
    if (!elements) return elements.error().In(path);
    elements->Align();
    const auto kept = std::make_shared<const acl::Elements>(std::move(*elements));
    AddTensor(prefix, kept->view(), out);
    out.Keep(file);
    out.Keep(kept);
    return true;
  }
  if (LooksLikeTorch(bytes)) return false;
  Result<atb::BinFile> opened = atb::BinFile::Open(path);
  if (!opened) return false;
  const auto kept = std::make_shared<const atb::BinFile>(std::move(*opened));
  AddTensor(prefix, kept->view(), out);
  out.Keep(kept);
  return true;
}

}  // namespace plumbline::load
