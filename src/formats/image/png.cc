#include "formats/image/png.h"

#include <zlib.h>

#include <vector>

#include "base/memory/digest.h"

namespace plumbline::png {
namespace {

void AppendBigEndian(uint32_t value, std::string& out) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xFF);
}

// Length, kind, contents, and a checksum of the last two.
void AppendChunk(std::string_view kind, std::string_view contents, std::string& out) {
  AppendBigEndian(static_cast<uint32_t>(contents.size()), out);
  const size_t begin = out.size();
  out += kind;
  out += contents;
  AppendBigEndian(Crc32(std::as_bytes(std::span(out).subspan(begin))), out);
}

}  // namespace

Result<std::string> FileBytes(uint32_t width, uint32_t height, std::span<const Color> pixels) {
  std::string rows;
  for (uint32_t y = 0; y < height; ++y) {
    rows += '\0';  // no filter
    const auto row = std::as_bytes(pixels.subspan(size_t{y} * width, width));
    rows.append(reinterpret_cast<const char*>(row.data()), row.size());
  }
  uLongf size = compressBound(rows.size());
  std::vector<Bytef> compressed(size);
  constexpr int kFast = 3;  // such pictures get no smaller by trying harder
  if (compress2(compressed.data(), &size, reinterpret_cast<const Bytef*>(rows.data()), rows.size(),
                kFast) != Z_OK) {
    return Error(ErrorCode::kInternal, "a picture could not be compressed: no memory");
  }
  std::string header;
  AppendBigEndian(width, header);
  AppendBigEndian(height, header);
  header += std::string_view("\x08\x02\0\0\0", 5);  // 8 bits each of red, green and blue
  std::string file("\x89PNG\r\n\x1A\n", 8);
  AppendChunk("IHDR", header, file);
  AppendChunk("IDAT", {reinterpret_cast<const char*>(compressed.data()), size}, file);
  AppendChunk("IEND", {}, file);
  return file;
}

}  // namespace plumbline::png
