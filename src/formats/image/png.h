// PNG images: pictures of a few colours, written only.

#ifndef PLUMBLINE_FORMATS_IMAGE_PNG_H_
#define PLUMBLINE_FORMATS_IMAGE_PNG_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "plumbline/result.h"

namespace plumbline::png {

// Red, green and blue of a pixel, 0 to 255.
struct Color {
  uint8_t red = 0, green = 0, blue = 0;
  friend bool operator==(const Color&, const Color&) = default;
};

// The bytes of a file. Requires: pixels.size() == width * height, by rows from the top; both at
// least 1. kInternal when memory runs out.
Result<std::string> FileBytes(uint32_t width, uint32_t height, std::span<const Color> pixels);

}  // namespace plumbline::png

#endif  // PLUMBLINE_FORMATS_IMAGE_PNG_H_
