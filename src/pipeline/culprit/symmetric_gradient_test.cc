#include "pipeline/culprit/symmetric_gradient.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <span>

#include "base/digest.h"
#include "base/file.h"
#include "base/test_directory.h"
#include "formats/torch_pt.h"
#include "pipeline/comparison_for_test.h"

namespace plumbline::pipeline {
namespace {

using Matrix = std::array<float, 4>;

constexpr Matrix kValue{2, 0.5, 0.5, 3};
constexpr Matrix kGradient{1, 2, 4, 5}, kTurned{1, 4, 2, 5};

class SymmetricGradientTest : public ::testing::Test {
 protected:
  // The tensor of one side, in a file of that name.
  Item Tensor(const std::string& side, const std::string& name, const Matrix& values) {
    const std::string files = JoinPath(JoinPath(directory_.path(), side), "dump_tensor_data");
    EXPECT_TRUE(MakeDirectories(files));
    const std::span<const std::byte> data = std::as_bytes(std::span(values));
    const int64_t sizes[] = {2, 2};
    const torch_pt::Frame frame =
        torch_pt::MakeFrame(DType::kFloat32, sizes, data.size(), Crc32(data));
    const std::string body(reinterpret_cast<const char*>(data.data()), data.size());
    EXPECT_TRUE(WriteFileAtomically(JoinPath(files, name), frame.head + body + frame.tail, false));
    double sum = 0, squares = 0;
    for (const float value : values) {
      sum += value;
      squares += value * value;
    }
    Item item = TensorForTest({5, 0, sum / 4, std::sqrt(squares)}, {2, 2});
    item.data_name = name;
    return item;
  }

  // Whether a gradient of `value` may be `target` where golden's is kGradient.
  bool MeansTheSame(const Matrix& value, const Matrix& target) {
    ComparisonForTest calls(CompareMode::kTensor);
    calls.Pair("Torch.f.0.forward");
    calls.Out(Tensor("target", "v.pt", value), Tensor("golden", "v.pt", value));
    calls.last_row().verdict = Verdict::kSame;
    calls.Pair("Torch.f.0.backward");
    calls.Row(ItemRole::kInput, Tensor("target", "g.pt", target),
              Tensor("golden", "g.pt", kGradient));
    Comparison comparison = calls.get();
    comparison.target_path = JoinPath(directory_.path(), "target/dump.json");
    comparison.golden_path = JoinPath(directory_.path(), "golden/dump.json");
    return MeansTheSameForSymmetricValue(comparison, comparison.rows.back(), 1e-5);
  }

  plumbline::testing::TestDirectory directory_;
};

TEST_F(SymmetricGradientTest, AntisymmetricPartSaysNothing) {
  EXPECT_TRUE(MeansTheSame(kValue, kTurned));
  EXPECT_TRUE(MeansTheSame(kValue, {1, 3, 3, 5}));
}

TEST_F(SymmetricGradientTest, SymmetricPartMustAgree) {
  EXPECT_FALSE(MeansTheSame(kValue, {1, 4, 2.1F, 5}));
  EXPECT_FALSE(MeansTheSame(kValue, {2, 2, 4, 4}));  // of one mean
}

TEST_F(SymmetricGradientTest, OfOtherMatricesEveryElementCounts) {
  EXPECT_FALSE(MeansTheSame({2, 0.5, 0.6F, 3}, kTurned));
  EXPECT_FALSE(MeansTheSame({2, 0, 0, 3}, kTurned));  // an initial value, perhaps
}

TEST_F(SymmetricGradientTest, WithoutTheForwardCallNothingIsKnown) {
  ComparisonForTest calls(CompareMode::kTensor);
  calls.Pair("Torch.f.0.backward");
  calls.Row(ItemRole::kInput, TensorForTest({5, 0, 1, 6}, {2, 2}),
            TensorForTest({5, 0, 1, 7}, {2, 2}));
  EXPECT_FALSE(MeansTheSameForSymmetricValue(calls.get(), calls.get().rows.back(), 1e-5));
}

}  // namespace
}  // namespace plumbline::pipeline
