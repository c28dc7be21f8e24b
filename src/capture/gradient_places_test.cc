#include "capture/gradient_places.h"

#include <gtest/gtest.h>

namespace plumbline::capture {
namespace {

using Answer = GradientPlaces::Answer;

GradientEdge To(Shape shape) { return {true, std::move(shape)}; }
SeenGradient Of(Shape shape) { return {false, std::move(shape)}; }

// Position of the gradient along each edge; -1: none flows, -2: cannot be told.
std::vector<int> PlacesOf(const std::vector<GradientEdge>& edges,
                          std::vector<SeenGradient> gradients) {
  const GradientPlaces places(edges, std::move(gradients));
  std::vector<int> found;
  for (size_t i = 0; i < edges.size(); ++i) {
    size_t at = 0;
    const Answer answer = places.At(i, &at);
    found.push_back(answer == Answer::kFound ? static_cast<int>(at)
                                             : (answer == Answer::kNone ? -1 : -2));
  }
  return found;
}

using Places = std::vector<int>;

TEST(GradientPlaces, ShapesTellWhichEdgesAreLeftOut) {
  EXPECT_EQ(PlacesOf({To({2}), To({3}), To({4})}, {Of({2}), Of({4})}), (Places{0, -1, 1}));
  EXPECT_EQ(PlacesOf({To({2}), {}, To({3})}, {Of({3})}), (Places{-1, -1, 0}));
}

TEST(GradientPlaces, EqualShapesCannotBeTold) {
  EXPECT_EQ(PlacesOf({To({2}), To({2}), To({3})}, {Of({2}), Of({3})}), (Places{-2, -2, 1}));
}

TEST(GradientPlaces, EdgeOfUnknownShapeTakesAny) {
  EXPECT_EQ(PlacesOf({{true, std::nullopt}, To({3})}, {Of({2})}), (Places{0, -1}));
}

TEST(GradientPlaces, GradientThatFitsNowhereMakesAllUnknown) {
  EXPECT_EQ(PlacesOf({To({2}), To({3})}, {Of({5})}), (Places{-2, -2}));
}

TEST(GradientPlaces, WithoutGradientsNoneFlows) {
  EXPECT_EQ(PlacesOf({To({2}), To({3})}, {}), (Places{-1, -1}));
}

}  // namespace
}  // namespace plumbline::capture
