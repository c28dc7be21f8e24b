// Signs of many tensors in one file, a bit per element (docs/formats/sign_pack.md): what a gradient
// probe writes instead of a .npy file of bytes per parameter. And the same bits as bytes.

#ifndef PLUMBLINE_FORMATS_ARRAY_SIGN_PACK_H_
#define PLUMBLINE_FORMATS_ARRAY_SIGN_PACK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::sign_pack {

// Of the file in a step's directory.
inline constexpr std::string_view kFileName = "signs.plumb";

// A tensor: whether each element, in row-major order, is above 0. The first one is the lowest bit
// of the first byte; bits behind the last element are 0.
struct Entry {
  std::string name;
  Shape sizes;
  std::span<const std::byte> bits;
};

// Bytes for the bits of that many elements.
constexpr size_t BytesFor(uint64_t elements) { return static_cast<size_t>((elements + 7) / 8); }

// One byte for each of 8 * bits.size() elements, 1 or 0. Requires: out.size() is as many.
void Unpack(std::span<const std::byte> bits, std::span<std::byte> out);

// A .npy file of bools, which appears when it is complete. Errors of File.
Status WriteNpy(const std::string& path, const Shape& sizes, std::span<const std::byte> bits);

// The whole file. Errors of File.
Status Write(std::span<const Entry> entries, AtomicFile& file);

// A mapped file. Movable; the entries' bits stay valid while the object lives.
class SignFile {
 public:
  // kNotFound, kIo; kCorrupt also when a checksum is not that of the bytes.
  static Result<SignFile> Open(const std::string& path);
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::vector<Entry> entries_;
};

}  // namespace plumbline::sign_pack

#endif  // PLUMBLINE_FORMATS_ARRAY_SIGN_PACK_H_
