#include "watch/live/layer_features.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace plumbline::watch {
namespace {

struct Numbers {
  std::vector<double> data;
  std::vector<int64_t> sizes, strides;

  [[nodiscard]] TensorView view() const {
    return {DType::kFloat64, reinterpret_cast<const std::byte*>(data.data()), sizes, strides};
  }
};

TEST(LayerFeatures, AttentionSeesNoLaterColumn) {
  // Three queries, two keys, width 1; the second head and batch are not looked at.
  const Numbers q{{0, 9, 1, 9, 2, 9}, {3, 1, 2, 1}, {2, 2, 1, 1}};
  const Numbers k{{1, 9, 3, 9}, {2, 1, 2, 1}, {2, 2, 1, 1}};
  const auto found = AttentionFeatures(q.view(), k.view(), false);
  ASSERT_TRUE(found);
  const auto larger = [](double a, double b) { return 1 / (1 + std::exp(a - b)); };
  const double second = larger(1, 3), third = larger(2, 6);
  const auto entropy = [](double p) { return -p * std::log(p) - (1 - p) * std::log(1 - p); };
  EXPECT_NEAR(found->of(Op::kSoftmaxMax), (1 + second + third) / 3, 1e-15);
  EXPECT_NEAR(found->of(Op::kEntropy), (entropy(second) + entropy(third)) / 3, 1e-15);
  EXPECT_FALSE(AttentionFeatures(q.view(), Numbers{{1, 2}, {2}, {1}}.view(), false));
}

TEST(LayerFeatures, SingularValueOfAMatrixOfRankOne) {
  Numbers w{{3, 4, 6, 8, 0, 0}, {3, 2}, {2, 1}};
  const auto found = LinearFeatures(w.view(), "fc");
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->of(Op::kKernelNorm), std::sqrt(125), 1e-12);
  EXPECT_NEAR(found->of(Op::kStableRank), 1, 1e-14);
  w.data.assign(6, 0);
  EXPECT_EQ(LinearFeatures(w.view(), "fc")->of(Op::kKernelNorm), 0);
  EXPECT_EQ(LinearFeatures(w.view(), "fc")->of(Op::kStableRank), 0);
}

TEST(LayerFeatures, ExpertsAreTheSmallerDimension) {
  const Numbers rows{{1, 0, 0, 1, 1, 0}, {2, 3}, {3, 1}};  // cosine 1 / sqrt(2)
  const Numbers columns{rows.data, {3, 2}, {1, 3}};
  for (const Numbers* one : {&rows, &columns}) {
    EXPECT_NEAR(RouterWeightFeatures(one->view())->of(Op::kRouterSimilarity), std::sqrt(0.5),
                1e-15);
  }
}

TEST(LayerFeatures, EntropyOfTokens) {
  const Numbers logits{{0, 0, 1000, 0}, {2, 1, 2}, {2, 2, 1}};
  EXPECT_NEAR(RouterLogitFeatures(logits.view())->of(Op::kTokenEntropy), std::log(2) / 2, 1e-15);
  EXPECT_FALSE(RouterLogitFeatures(Numbers{{1, 2}, {2}, {1}}.view()));
}

}  // namespace
}  // namespace plumbline::watch
