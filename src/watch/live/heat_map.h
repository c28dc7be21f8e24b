// Histograms over the steps of a training as a picture.

#ifndef PLUMBLINE_WATCH_LIVE_HEAT_MAP_H_
#define PLUMBLINE_WATCH_LIVE_HEAT_MAP_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "plumbline/result.h"
#include "watch/live/adam_update.h"

namespace plumbline::watch {

// Older steps leave the picture, so that what a parameter keeps stays below 64 KiB.
inline constexpr size_t kHeatMapColumns = 128;
// Of the whole picture, and of the part that has the counts: its left and upper edge and its size,
// in pixels. Bin b is 8 pixels high, the lowest values on top as upstream draws them; column c of n
// begins at c * 384 / n, rounded down.
inline constexpr int kHeatMapWidth = 520, kHeatMapHeight = 296;
inline constexpr int kCountsLeft = 48, kCountsTop = 28;
inline constexpr int kCountsWidth = 384, kBinHeight = 8;

struct HeatColumn {
  int64_t step = 0;
  Histogram counts;
};

// A PNG. A count is drawn in the colour count / largest count of matplotlib's map "hot", in 256
// shades: black for 0, white for the largest. Requires: 1 to kHeatMapColumns columns. kInternal
// when memory runs out.
Result<std::string> HeatMapOf(std::span<const HeatColumn> columns);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_LIVE_HEAT_MAP_H_
