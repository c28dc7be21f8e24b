#include "watch/live/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "formats/image/plot_font.h"
#include "formats/image/png.h"

namespace plumbline::watch {
namespace {

constexpr int kCountsHeight = kBinHeight * static_cast<int>(kHistogramBins);
constexpr int kBarLeft = kCountsLeft + kCountsWidth + 16, kBarWidth = 12;
constexpr int kGap = 6;  // between a text and what it stands beside
constexpr png::Color kInkColor = {38, 38, 38}, kPaperColor = {255, 255, 255};
constexpr int kShades = 255;  // above black

// Where red, green and blue have come to 1, and where red begins: matplotlib, _cm.py, "hot".
constexpr double kRedFull = 0.365079, kGreenFull = 0.746032, kRedStart = 0.0416;

uint8_t Level(double part) {
  return static_cast<uint8_t>(std::lround(255 * std::clamp(part, 0.0, 1.0)));
}

// `share`: 0 to 1.
png::Color HotColor(double share) {
  return {Level(kRedStart + (1 - kRedStart) * share / kRedFull),
          Level((share - kRedFull) / (kGreenFull - kRedFull)),
          Level((share - kGreenFull) / (1 - kGreenFull))};
}

class Picture {
 public:
  Picture() : pixels_(size_t{kHeatMapWidth} * kHeatMapHeight, kPaperColor) {}

  void Fill(int left, int top, int width, int height, const png::Color& color) {
    for (int y = top; y < top + height; ++y) {
      std::fill_n(pixels_.begin() + static_cast<std::ptrdiff_t>(y) * kHeatMapWidth + left, width,
                  color);
    }
  }
  // `align`: 0 begins at `x`, 1 is centred there, 2 ends there.
  void Text(int x, int y, std::string_view text, int align) {
    const int left = x - align * static_cast<int>(text.size()) * plot_font::kAdvance / 2;
    const int top = y - plot_font::kHeight / 2;
    plot_font::Draw(text, [&](int right, int down) {
      const int column = left + right;
      if (column < 0 || column >= kHeatMapWidth) return;
      pixels_[static_cast<size_t>(top + down) * kHeatMapWidth + static_cast<size_t>(column)] =
          kInkColor;
    });
  }
  [[nodiscard]] Result<std::string> Finish() const {
    return png::FileBytes(kHeatMapWidth, kHeatMapHeight, pixels_);
  }

 private:
  std::vector<png::Color> pixels_;
};

void DrawCounts(std::span<const HeatColumn> columns, uint64_t largest, Picture* picture) {
  const int count = static_cast<int>(columns.size());
  for (int column = 0; column < count; ++column) {
    const int left = column * kCountsWidth / count;
    const int width = (column + 1) * kCountsWidth / count - left;
    for (size_t bin = 0; bin < kHistogramBins; ++bin) {
      const double share =
          static_cast<double>(columns[static_cast<size_t>(column)].counts[bin]) /
          static_cast<double>(std::max<uint64_t>(largest, 1));
      picture->Fill(kCountsLeft + left, kCountsTop + static_cast<int>(bin) * kBinHeight, width,
                    kBinHeight, HotColor(std::round(share * kShades) / kShades));
    }
  }
}

void DrawScales(std::span<const HeatColumn> columns, uint64_t largest, Picture* picture) {
  for (const double edge : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
    const int y = kCountsTop + static_cast<int>((edge + 1) / 2 * kCountsHeight);
    picture->Text(kCountsLeft - kGap, y, fmt::format("{:.2f}", edge), 2);
  }
  const int below = kCountsTop + kCountsHeight + 2 * kGap;
  picture->Text(kCountsLeft, below, fmt::format("{}", columns.front().step), 0);
  picture->Text(kCountsLeft + kCountsWidth / 2, below, "step", 1);
  if (columns.size() > 1) {
    picture->Text(kCountsLeft + kCountsWidth, below, fmt::format("{}", columns.back().step), 2);
  }
  for (int y = 0; y < kCountsHeight; ++y) {
    picture->Fill(kBarLeft, kCountsTop + y, kBarWidth, 1,
                  HotColor(1 - static_cast<double>(y) / (kCountsHeight - 1)));
  }
  picture->Text(kBarLeft + kBarWidth + kGap, kCountsTop, fmt::format("{}", largest), 0);
  picture->Text(kBarLeft + kBarWidth + kGap, kCountsTop + kCountsHeight - 1, "0", 0);
}

}  // namespace

Result<std::string> HeatMapOf(std::span<const HeatColumn> columns) {
  uint64_t largest = 0;
  for (const HeatColumn& column : columns) {
    largest = std::max(largest, *std::ranges::max_element(column.counts));
  }
  Picture picture;
  DrawCounts(columns, largest, &picture);
  DrawScales(columns, largest, &picture);
  picture.Text(kCountsLeft + kCountsWidth / 2, kCountsTop / 2,
               fmt::format("Total Step: {}", columns.back().step), 1);
  return picture.Finish();
}

}  // namespace plumbline::watch
