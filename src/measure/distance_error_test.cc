#include "measure/distance_error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "measure/item_for_test.h"

namespace plumbline::measure {
namespace {

constexpr double kRounding = 1e-6;
constexpr double kError = 1e-6;

Item TensorOf(Shape shape, double rms, double min = 0) {
  return TensorForTest(std::move(shape), rms, min, rms);
}

const Item& Rows() {
  static const Item kRows = TensorOf({40, 16}, 2);
  return kRows;
}

double ErrorOf(const std::string& api, const Item& output) {
  const InputError operands[] = {{&Rows(), kError}, {&Rows(), kError}};
  return DistanceError(output, "Functional." + api + ".0.forward", operands, kRounding);
}

double GradientErrorOf(const std::string& api, const Item& output, const Item& gradient,
                       const Item& incoming = TensorOf({}, 1)) {
  const InputError operands[] = {{&Rows(), kError}, {&Rows(), kError}};
  return DistanceGradientError({gradient, incoming, output}, "Functional." + api + ".0.forward",
                               operands, kRounding);
}

TEST(DistanceError, ErrorsOfWhatIsComparedCountByTheDistance) {
  // Elements 0.01 apart, of size 2: 2 * 2 * 1e-6 of 0.01.
  EXPECT_NEAR(ErrorOf("l1_loss", TensorOf({}, 0.01)), 4e-4, 1e-9);
  EXPECT_NEAR(ErrorOf("mse_loss", TensorOf({}, 1e-4)), 8e-4 + 16e-8, 1e-9);
  EXPECT_NEAR(ErrorOf("pairwise_distance", TensorOf({40}, 0.04)), 4e-4, 1e-9);
  EXPECT_NEAR(ErrorOf("sub", TensorOf({40, 16}, 0.01)), 4e-4, 1e-9);
}

TEST(DistanceError, FarApartNothingIsAdded) {
  for (const char* api : {"l1_loss", "mse_loss", "sub", "cosine_embedding_loss"}) {
    EXPECT_EQ(ErrorOf(api, TensorOf({}, 1)), 0) << api;
  }
  EXPECT_EQ(ErrorOf("linear", TensorOf({40, 16}, 1e-6)), 0);
  EXPECT_EQ(ErrorOf("mse_loss", TensorOf({}, std::nan(""))), 0);
}

TEST(DistanceError, OneLessACosineIsOffByTheRoundingOfOne) {
  EXPECT_NEAR(ErrorOf("cosine_embedding_loss", TensorOf({}, 1e-4)), 0.02, 1e-9);
}

TEST(DistanceError, DistancesOfAllPairsAreRootsOfDifferencesOfSquares) {
  // |a|^2 is 64; the squares are off by 1.3e-4, near pairs by the root of it.
  EXPECT_NEAR(ErrorOf("cdist", TensorOf({40, 40}, 8, 4)), 2e-6, 1e-9);
  const double nearest = std::sqrt(64 * 2e-6);
  EXPECT_NEAR(ErrorOf("cdist", TensorOf({40, 40}, 8)), nearest / std::sqrt(40.0) / 8, 1e-9);
}

TEST(DistanceError, GradientsOfWhatIsNearAreOffLikeTheDistance) {
  const Item gradient = TensorOf({40, 16}, 1e-5);
  EXPECT_NEAR(GradientErrorOf("mse_loss", TensorOf({}, 1e-4), gradient), 4e-4, 1e-9);
  // A share of the signs may be another.
  EXPECT_NEAR(GradientErrorOf("l1_loss", TensorOf({}, 0.01), gradient), 0.04, 1e-9);
  EXPECT_EQ(GradientErrorOf("mse_loss", TensorOf({}, 1), gradient), 0);
}

TEST(DistanceError, GradientsOfCosinesVanishWhereTheseAreOne) {
  const double natural = 1 / (2 * std::sqrt(640.0));  // one over the norm of what is compared
  const Item gradient = TensorOf({40, 16}, 1e-3 * natural / std::sqrt(640.0));
  EXPECT_NEAR(GradientErrorOf("cosine_similarity", TensorOf({}, 1), gradient), 2e-3, 1e-9);
}

TEST(DistanceError, GradientsOfDistancesOfPairsHangOnTheNearest) {
  const Item gradient = TensorOf({40, 16}, 1e-2), incoming = TensorOf({40, 40}, 1e-3);
  const double share = 1e-3 * 40 / (1e-2 * std::sqrt(640.0));
  EXPECT_NEAR(GradientErrorOf("cdist", TensorOf({40, 40}, 8), gradient, incoming), share, 1e-9);
  EXPECT_LT(GradientErrorOf("cdist", TensorOf({40, 40}, 8, 4), gradient, incoming), 1e-5);
}

}  // namespace
}  // namespace plumbline::measure
