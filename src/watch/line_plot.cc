#include "watch/line_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/image/plot_font.h"
#include "formats/image/png.h"

namespace plumbline {
namespace {

// ---- where things are

constexpr int kPlotWidth = 640, kPlotHeight = 480;
constexpr int kLeft = 80, kRight = 20, kTop = 48, kBottom = 56;
constexpr png::Color kInk = {38, 38, 38}, kGrid = {222, 222, 222}, kCurve = {31, 119, 180};
constexpr png::Color kPaper = {255, 255, 255};

struct Point {
  double x = 0, y = 0;  // in pixels from the upper left corner
};

struct Tick {
  double at = 0;  // pixel
  std::string text;
};

// Numbers from `low` to `high`, shown on an axis.
struct Range {
  double low = 0, high = 1;
};

Range RangeOf(const LinePlot& plot) {
  Range range{1, 0};
  for (const std::optional<double>& y : plot.y) {
    if (!y) continue;
    range = range.low > range.high ? Range{*y, *y}
                                   : Range{std::min(range.low, *y), std::max(range.high, *y)};
  }
  if (range.low > range.high) return {0, 1};
  // A level curve gets room around it, so that it lies in the middle.
  const double room = range.low == range.high ? std::max(std::abs(range.low), 1e-9) * 0.05
                                              : (range.high - range.low) * 0.05;
  return {range.low - room, range.high + room};
}

// 1, 2 or 5 times a power of ten, so that there are about `count` steps.
double NiceStep(double span, double count) {
  const double power = std::pow(10, std::floor(std::log10(span / count)));
  for (const double factor : {1, 2, 5}) {
    if (span <= factor * power * count) return factor * power;
  }
  return 10 * power;
}

double XOf(const LinePlot& plot, double value) {
  const auto first = static_cast<double>(plot.x.front()), last = static_cast<double>(plot.x.back());
  const double part = last > first ? (value - first) / (last - first) : 0.5;
  return kLeft + part * (kPlotWidth - kLeft - kRight);
}

double YOf(const Range& range, double value) {
  const double part = (value - range.low) / (range.high - range.low);
  return kPlotHeight - kBottom - part * (kPlotHeight - kTop - kBottom);
}

std::vector<Tick> TicksOfY(const Range& range) {
  const double step = NiceStep(range.high - range.low, 6);
  std::vector<Tick> ticks;
  for (double n = std::ceil(range.low / step); n * step <= range.high; n += 1) {
    Tick tick{.at = YOf(range, n * step), .text = {}};
    AppendGeneral(n * step == 0 ? 0 : n * step, 6, tick.text);
    ticks.push_back(std::move(tick));
  }
  return ticks;
}

std::vector<Tick> TicksOfX(const LinePlot& plot) {
  std::vector<Tick> ticks;
  if (plot.x.empty()) return ticks;
  const auto first = static_cast<double>(plot.x.front()), last = static_cast<double>(plot.x.back());
  const double step = last > first ? std::max(1.0, NiceStep(last - first, 8)) : 1;
  for (double value = std::ceil(first / step) * step; value <= last; value += step) {
    ticks.push_back({XOf(plot, value), fmt::format("{:.0f}", value)});
  }
  return ticks;
}

// The points of the curve between gaps.
std::vector<std::vector<Point>> PiecesOf(const LinePlot& plot, const Range& range) {
  std::vector<std::vector<Point>> pieces(1);
  for (size_t i = 0; i < plot.x.size(); ++i) {
    if (plot.y[i]) {
      pieces.back().push_back({XOf(plot, static_cast<double>(plot.x[i])), YOf(range, *plot.y[i])});
    } else if (!pieces.back().empty()) {
      pieces.emplace_back();
    }
  }
  if (pieces.back().empty()) pieces.pop_back();
  return pieces;
}

// ---- SVG

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : ReplaceInvalidUtf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
  }
  return out;
}

std::string HexOf(const png::Color& color) {
  return fmt::format("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue);
}

class SvgCanvas {
 public:
  void Line(Point from, Point to, const png::Color& color) {
    text_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", from.x,
        from.y, to.x, to.y, HexOf(color));
  }
  void Curve(const std::vector<Point>& points) {
    text_ += "<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"" + HexOf(kCurve) +
             "\" points=\"";
    for (const Point& point : points) text_ += fmt::format("{:.1f},{:.1f} ", point.x, point.y);
    text_ += "\"/>\n";
  }
  void Dot(Point at) {
    text_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\"/>\n", at.x,
                         at.y, HexOf(kCurve));
  }
  // `align`: 0 begins at `at`, 0.5 is centred there, 1 ends there.
  void Text(Point at, std::string_view text, double align) {
    const std::string_view anchor = align == 0 ? "start" : align == 1 ? "end" : "middle";
    text_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", at.x,
        at.y + 4, anchor, HexOf(kInk), Escaped(text));
  }
  void UprightText(Point at, std::string_view text) {
    text_ += fmt::format(
        "<text x=\"{0:.1f}\" y=\"{1:.1f}\" text-anchor=\"middle\" fill=\"{2}\" "
        "transform=\"rotate(-90 {0:.1f} {1:.1f})\">{3}</text>\n",
        at.x, at.y, HexOf(kInk), Escaped(text));
  }
  [[nodiscard]] std::string Finish() const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
        "{1}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" "
        "fill=\"{2}\"/>\n{3}</svg>\n",
        kPlotWidth, kPlotHeight, HexOf(kPaper), text_);
  }

 private:
  std::string text_;
};

// ---- pixels

class PixelCanvas {
 public:
  PixelCanvas() : pixels_(size_t{kPlotWidth} * kPlotHeight, kPaper) {}

  void Line(Point from, Point to, const png::Color& color) {
    Stroke({std::round(from.x), std::round(from.y)}, {std::round(to.x), std::round(to.y)}, 0.5,
           color);
  }
  void Curve(const std::vector<Point>& points) {
    for (size_t i = 1; i < points.size(); ++i) {
      Stroke(points[i - 1], points[i], 0.9, kCurve);
    }
  }
  void Dot(Point at) { Stroke(at, at, 2.5, kCurve); }
  void Text(Point at, std::string_view text, double align) {
    const double width = static_cast<double>(text.size()) * plot_font::kAdvance;
    const int x = static_cast<int>(std::lround(at.x - align * width));
    const int y = static_cast<int>(std::lround(at.y)) - plot_font::kHeight / 2;
    plot_font::Draw(text, [&](int right, int down) { Put(x + right, y + down, kInk, 1); });
  }
  // From the bottom up.
  void UprightText(Point at, std::string_view text) {
    const double width = static_cast<double>(text.size()) * plot_font::kAdvance;
    const int x = static_cast<int>(std::lround(at.x)) - plot_font::kHeight / 2;
    const int y = static_cast<int>(std::lround(at.y + width / 2));
    plot_font::Draw(text, [&](int right, int down) { Put(x + down, y - right, kInk, 1); });
  }
  [[nodiscard]] Result<std::string> Finish() const {
    return png::FileBytes(kPlotWidth, kPlotHeight, pixels_);
  }

 private:
  // Every pixel as far as it is within `radius` of the line.
  void Stroke(Point from, Point to, double radius, const png::Color& color) {
    const double reach = radius + 1;
    const int left = static_cast<int>(std::floor(std::min(from.x, to.x) - reach));
    const int right = static_cast<int>(std::ceil(std::max(from.x, to.x) + reach));
    for (int x = left; x <= right; ++x) {
      // The rows that the line crosses near this column.
      const double one = RowAt(from, to, x - reach), other = RowAt(to, from, x + reach);
      const int top = static_cast<int>(std::floor(std::min(one, other) - reach));
      const int bottom = static_cast<int>(std::ceil(std::max(one, other) + reach));
      for (int y = top; y <= bottom; ++y) {
        const double away = Distance(from, to, {static_cast<double>(x), static_cast<double>(y)});
        Put(x, y, color, std::clamp(radius + 0.5 - away, 0.0, 1.0));
      }
    }
  }

  // Where the line is at a column, or where it ends before; upright: at its begin.
  static double RowAt(Point from, Point to, double column) {
    if (from.x == to.x) return from.y;
    const double inside =
        std::clamp(column, std::min(from.x, to.x), std::max(from.x, to.x)) - from.x;
    return from.y + (to.y - from.y) / (to.x - from.x) * inside;
  }

  static double Distance(Point from, Point to, Point at) {
    const double x = to.x - from.x, y = to.y - from.y, square = x * x + y * y;
    const double part = ((at.x - from.x) * x + (at.y - from.y) * y) / (square == 0 ? 1 : square);
    const double along = std::clamp(part, 0.0, 1.0);
    return std::hypot(at.x - from.x - along * x, at.y - from.y - along * y);
  }

  void Put(int x, int y, const png::Color& color, double share) {
    if (x < 0 || y < 0 || x >= kPlotWidth || y >= kPlotHeight || share <= 0) return;
    png::Color& pixel = pixels_[static_cast<size_t>(y) * kPlotWidth + static_cast<size_t>(x)];
    const auto mix = [share](uint8_t from, uint8_t to) {
      return static_cast<uint8_t>(std::lround(from + (to - from) * share));
    };
    pixel = {mix(pixel.red, color.red), mix(pixel.green, color.green),
             mix(pixel.blue, color.blue)};
  }

  std::vector<png::Color> pixels_;
};

// ---- the picture

std::string Shortened(std::string_view text) {
  constexpr size_t kMostLetters = 100;
  if (text.size() <= kMostLetters) return std::string(text);
  return "..." + std::string(text.substr(text.size() - kMostLetters + 3));
}

template <class Canvas>
void DrawFrame(const LinePlot& plot, const Range& range, Canvas* canvas) {
  const double bottom = kPlotHeight - kBottom, right = kPlotWidth - kRight;
  for (const Tick& tick : TicksOfY(range)) {
    canvas->Line({kLeft, tick.at}, {right, tick.at}, kGrid);
    canvas->Text({kLeft - 8, tick.at}, tick.text, 1);
  }
  for (const Tick& tick : TicksOfX(plot)) {
    canvas->Line({tick.at, kTop}, {tick.at, bottom}, kGrid);
    canvas->Text({tick.at, bottom + 14}, tick.text, 0.5);
  }
  canvas->Line({kLeft, kTop}, {right, kTop}, kInk);
  canvas->Line({kLeft, bottom}, {right, bottom}, kInk);
  canvas->Line({kLeft, kTop}, {kLeft, bottom}, kInk);
  canvas->Line({right, kTop}, {right, bottom}, kInk);
  canvas->Text({kPlotWidth / 2.0, 24}, Shortened(plot.title), 0.5);
  canvas->Text({(kLeft + right) / 2, kPlotHeight - 18}, plot.x_label, 0.5);
  canvas->UprightText({18, (kTop + bottom) / 2}, plot.y_label);
}

template <class Canvas>
void Draw(const LinePlot& plot, Canvas* canvas) {
  const Range range = RangeOf(plot);
  DrawFrame(plot, range, canvas);
  for (const std::vector<Point>& piece : PiecesOf(plot, range)) {
    canvas->Curve(piece);
    constexpr size_t kFewPoints = 40;  // that are still to be told apart
    if (piece.size() > 1 && plot.x.size() > kFewPoints) continue;
    for (const Point& point : piece) canvas->Dot(point);
  }
}

}  // namespace

std::string SvgOf(const LinePlot& plot) {
  SvgCanvas canvas;
  Draw(plot, &canvas);
  return canvas.Finish();
}

Result<std::string> PngOf(const LinePlot& plot) {
  PixelCanvas canvas;
  Draw(plot, &canvas);
  return canvas.Finish();
}

}  // namespace plumbline
