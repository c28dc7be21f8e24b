#include "view/serve/gzip_text.h"

#include <isa-l/igzip_lib.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "base/text/text_parts.h"

namespace plumbline::view {
namespace {

// Below that the headers cost more than the packing saves.
constexpr size_t kWorthPacking = 512;

std::string_view WithoutBlanks(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// "q=0", "q=0.000".
bool IsRefused(std::string_view parameter) {
  const std::string_view value = WithoutBlanks(parameter);
  return value.starts_with("q=0") && value.find_first_not_of("0.", 2) == std::string_view::npos;
}

}  // namespace

bool TakesGzip(std::string_view accept_encoding) {
  for (const std::string_view item : SplitAt(accept_encoding, ',')) {
    const size_t semicolon = item.find(';');
    const std::string_view name = WithoutBlanks(item.substr(0, semicolon));
    if (name != "gzip" && name != "*") continue;
    return semicolon == std::string_view::npos || !IsRefused(item.substr(semicolon + 1));
  }
  return false;
}

std::optional<std::string> GzipText(std::string_view text) {
  if (text.size() < kWorthPacking || text.size() > std::numeric_limits<uint32_t>::max()) {
    return std::nullopt;
  }
  std::vector<uint8_t> level_buffer(ISAL_DEF_LVL1_DEFAULT);
  std::string packed(text.size(), '\0');
  isal_zstream stream{};
  isal_deflate_stateless_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.level = 1;
  stream.level_buf = level_buffer.data();
  stream.level_buf_size = static_cast<uint32_t>(level_buffer.size());
  // The library does not write to what it reads.
  stream.next_in = const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(text.data()));
  stream.avail_in = static_cast<uint32_t>(text.size());
  stream.next_out = reinterpret_cast<uint8_t*>(packed.data());
  stream.avail_out = static_cast<uint32_t>(packed.size());
  if (isal_deflate_stateless(&stream) != COMP_OK) return std::nullopt;  // no room: not smaller
  packed.resize(stream.total_out);
  return packed;
}

}  // namespace plumbline::view
