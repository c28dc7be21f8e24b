#include "watch/line_plot.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace plumbline {
namespace {

const LinePlot kSample = {"a<b>&_similarities", "steps", "similarities", {0, 1, 2, 3, 9},
                          {1.0, 0.5, {}, 0.75, 0.25}};

// The pixels of a PNG of 640 by 480 whose rows have no filter.
std::string PixelsOf(const std::string& png) {
  const size_t at = png.find("IDAT") + 4;
  std::string rows(480 * (1 + 640 * 3), '\0');
  uLongf size = rows.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(rows.data()), &size,
                       reinterpret_cast<const Bytef*>(png.data() + at), png.size() - at),
            Z_OK);
  EXPECT_EQ(size, rows.size());
  return rows;
}

TEST(LinePlot, PngHasTheCurveWhereItsNumbersAre) {
  const auto png = PngOf(kSample);
  ASSERT_TRUE(png);
  EXPECT_TRUE(png->starts_with("\x89PNG\r\n\x1A\n"));
  const std::string rows = PixelsOf(*png);
  const auto is_curve = [&](int x, int y) {
    return rows.substr(static_cast<size_t>(y * (1 + 640 * 3) + 1 + x * 3), 3) == "\x1F\x77\xB4";
  };
  // Steps 0 to 9 from pixel 80 to 620, 1.0 to 0.25 from pixel 65 to 407.
  EXPECT_TRUE(is_curve(80, 65));
  EXPECT_TRUE(is_curve(110, 179));   // halfway to step 1
  EXPECT_FALSE(is_curve(230, 236));  // the gap between steps 1 and 3
  EXPECT_TRUE(is_curve(440, 293));   // halfway from step 3 to step 9
}

TEST(LinePlot, SvgHasAPieceForEachSideOfAGapAndSpellsItsTitle) {
  const std::string svg = SvgOf(kSample);
  size_t pieces = 0;
  for (size_t at = svg.find("<polyline"); at != std::string::npos;
       at = svg.find("<polyline", at + 1)) {
    ++pieces;
  }
  EXPECT_EQ(pieces, 2u);
  EXPECT_NE(svg.find("a&lt;b&gt;&amp;_similarities"), std::string::npos);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(LinePlot, AnythingCanBeDrawn) {
  for (const LinePlot& plot :
       {LinePlot{"", "", "", {}, {}}, LinePlot{"", "", "", {7}, {{}}},
        LinePlot{"\xFF", "", "", {7}, {0.0}}, LinePlot{"", "", "", {1, 2}, {0.5, 0.5}},
        LinePlot{std::string(500, 'w'), "", "", {1, 1000000}, {1e-9, 1.0}}}) {
    EXPECT_TRUE(PngOf(plot));
    EXPECT_TRUE(SvgOf(plot).ends_with("</svg>\n"));
  }
}

}  // namespace
}  // namespace plumbline
