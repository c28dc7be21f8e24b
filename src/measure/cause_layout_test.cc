// Values at other places: the classifier against indices computed here.

#include "measure/cause_layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "measure/cause_for_test.h"

namespace plumbline::measure {
namespace {

TEST(CauseLayout, ExchangedAxesAreTransposed) {
  const std::vector<double> golden = Normal(256, 11);
  std::vector<double> target(256);
  for (size_t r = 0; r < 16; ++r) {
    for (size_t c = 0; c < 16; ++c) target[c * 16 + r] = golden[r * 16 + c];
  }
  EXPECT_EQ(Classify(Make({16, 16}, target), Make({16, 16}, golden)).code, "transposed");
}

TEST(CauseLayout, ViewInsteadOfTranspositionIsTransposed) {
  // Golden [4, 8, 3] holds x[8, 4, 3] transposed; the target holds x as it was.
  const std::vector<double> x = Normal(96, 12);
  std::vector<double> golden(96);
  for (size_t a = 0; a < 8; ++a) {
    for (size_t b = 0; b < 4; ++b) {
      for (size_t c = 0; c < 3; ++c) golden[(b * 8 + a) * 3 + c] = x[(a * 4 + b) * 3 + c];
    }
  }
  EXPECT_EQ(Classify(Make({4, 8, 3}, x), Make({4, 8, 3}, golden)).code, "transposed");
}

TEST(CauseLayout, OtherShapeThatIsTheTranspositionIsTransposed) {
  const std::vector<double> golden = Normal(24, 13);
  std::vector<double> target(24);
  for (size_t r = 0; r < 4; ++r) {
    for (size_t c = 0; c < 6; ++c) target[c * 4 + r] = golden[r * 6 + c];
  }
  EXPECT_EQ(Classify(Make({6, 4}, target), Make({4, 6}, golden)).code, "transposed");
  EXPECT_EQ(Classify(Make({6, 4}, golden), Make({4, 6}, golden)).code, "structure");
  EXPECT_EQ(Classify(Make({24}, golden), Make({4, 6}, golden)).code, "structure");
}

TEST(CauseLayout, RolledIsShifted) {
  const std::vector<double> golden = Normal(kCount, 14);
  for (const size_t inner : {size_t{1}, size_t{16}, size_t{96}}) {
    const size_t length = inner == 1 ? 16 : inner == 16 ? 6 : 8;
    const std::vector<double> target = Mapped(golden, [&](double, size_t i) {
      const size_t at = i / inner % length;
      return golden[i - at * inner + (at + 2) % length * inner];
    });
    const Cause cause = Classify(Make(kShape, target), Make(kShape, golden));
    EXPECT_EQ(cause.code, "shifted") << cause.text;
    EXPECT_NE(cause.text.find("i+2"), std::string::npos) << cause.text;
  }
}

TEST(CauseLayout, MovedWithOtherEdgeIsShifted) {
  const std::vector<double> all = Normal(16 * 9, 15);
  const std::vector<double> golden(all.begin() + 16, all.end());
  const std::vector<double> target(all.begin(), all.end() - 16);
  const Cause cause = Classify(Make({8, 16}, target), Make({8, 16}, golden));
  EXPECT_EQ(cause.code, "shifted") << cause.text;
  EXPECT_NE(cause.text.find("i-1"), std::string::npos) << cause.text;
}

TEST(CauseLayout, CausalMaskOffByOneIsShifted) {
  std::vector<double> golden(144), target(144), infinite(144), moved(144);
  for (size_t r = 0; r < 12; ++r) {
    for (size_t c = 0; c < 12; ++c) {
      golden[r * 12 + c] = c <= r;
      target[r * 12 + c] = c < r;
      infinite[r * 12 + c] = c <= r ? 0 : -std::numeric_limits<double>::infinity();
      moved[r * 12 + c] = c <= r + 1 ? 0 : -std::numeric_limits<double>::infinity();
    }
  }
  EXPECT_EQ(
      Classify(Make({12, 12}, target, DType::kBool), Make({12, 12}, golden, DType::kBool)).code,
      "shifted");
  EXPECT_EQ(Classify(Make({12, 12}, moved), Make({12, 12}, infinite)).code, "shifted");
}

TEST(CauseLayout, ExchangedRowsArePermuted) {
  const std::vector<double> golden = Normal(kCount, 16);
  const std::vector<double> target = Mapped(golden, [&](double v, size_t i) {
    const size_t row = i / 96;
    return row == 1 ? golden[i + 96 * 4] : row == 5 ? golden[i - 96 * 4] : v;
  });
  const Cause cause = Classify(Make(kShape, target), Make(kShape, golden));
  EXPECT_EQ(cause.code, "permuted");
  EXPECT_NE(cause.text.find("1 and 5 are exchanged"), std::string::npos) << cause.text;
}

TEST(CauseLayout, ReversedColumnsArePermuted) {
  const std::vector<double> golden = Normal(kCount, 17);
  const std::vector<double> target =
      Mapped(golden, [&](double, size_t i) { return golden[i / 16 * 16 + 15 - i % 16]; });
  EXPECT_EQ(Classify(Make(kShape, target), Make(kShape, golden)).code, "permuted");
}

TEST(CauseLayout, InterleavedInsteadOfHalvesIsPermuted) {
  const std::vector<double> golden = Normal(kCount, 18);
  const std::vector<double> target = Mapped(golden, [&](double, size_t i) {
    const size_t c = i % 16;
    return golden[i / 16 * 16 + (c % 2) * 8 + c / 2];
  });
  EXPECT_EQ(Classify(Make(kShape, target), Make(kShape, golden)).code, "permuted");
}

}  // namespace
}  // namespace plumbline::measure
