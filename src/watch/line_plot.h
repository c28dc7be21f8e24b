// A curve over the steps of a training as a picture of its own: SVG or PNG.

#ifndef PLUMBLINE_WATCH_LINE_PLOT_H_
#define PLUMBLINE_WATCH_LINE_PLOT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

struct LinePlot {
  std::string title, x_label, y_label;
  std::vector<int64_t> x;                // ascending
  std::vector<std::optional<double>> y;  // of each x; nothing: a gap
};

// The picture's text or bytes, 640 by 480. Texts in a PNG are ASCII; other characters are '?'.
std::string SvgOf(const LinePlot& plot);
Result<std::string> PngOf(const LinePlot& plot);

}  // namespace plumbline

#endif  // PLUMBLINE_WATCH_LINE_PLOT_H_
