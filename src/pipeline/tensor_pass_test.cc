// Tensor files that hold something else than dump.json says.

#include "pipeline/tensor_pass.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>

#include "base/file.h"
#include "pipeline/pt_for_test.h"
#include "pipeline/two_dumps_for_test.h"

namespace plumbline {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Values = std::array<float, 4>;

class FilesAgainstStatisticsTest : public TwoDumpsTest {
 protected:
  static std::string Tensor(const std::string& name) {
    return TensorJson(2, -2, 3, "[4]", fmt::format(R"(, "data_name": "{}.pt")", name));
  }
  // One call that reads finite values and returns these.
  Comparison Compare(const Values& of_target, const Values& of_golden) {
    for (DumpForTest* side : {&target_, &golden_}) {
      side->Add("Torch.f.0.forward", Tensor("Torch.f.0.forward.input.0"),
                Tensor("Torch.f.0.forward.output.0"));
      const std::string files = side->Write("tensor") + "/dump_tensor_data/";
      EXPECT_TRUE(MakeDirectories(files));
      WritePt(files + "Torch.f.0.forward.input.0.pt", {1, 2, -2, 0});
      WritePt(files + "Torch.f.0.forward.output.0.pt", side == &target_ ? of_target : of_golden);
    }
    Result<Comparison> result = CompareRuns(directory_.Path("target"), directory_.Path("golden"));
    EXPECT_TRUE(result);
    return result ? std::move(*result) : Comparison();
  }
  static std::string FirstLine(const Comparison& comparison) {
    const std::string text = SummaryText(comparison);
    return text.substr(0, text.find('\n'));
  }
};

TEST_F(FilesAgainstStatisticsTest, EqualFilesWithNanAreNotTheSame) {
  const Comparison comparison = Compare({kNan, 1, 2, 3}, {kNan, 1, 2, 3});
  EXPECT_EQ(comparison.rows[1].reason, "nonfinite-both");
  EXPECT_EQ(FirstLine(comparison),
            "not judged completely: 1 value is NaN on both sides; the 1 paired calls show no wrong "
            "one");
  ASSERT_EQ(comparison.warnings.size(), 2u);
  EXPECT_EQ(comparison.warnings[0],
            "Torch.f.0.forward.output.0: the tensor files hold NaN or infinities, which dump.json "
            "denies; what the files hold is compared");
}

TEST_F(FilesAgainstStatisticsTest, NorAreOthersWithNanAtTheSamePlaces) {
  const Comparison comparison = Compare({kNan, 1, 2, 3}, {kNan, 1, 2, 3.0000001f});
  EXPECT_EQ(comparison.rows[1].reason, "nonfinite-both");
  EXPECT_FALSE(comparison.is_complete());
}

TEST_F(FilesAgainstStatisticsTest, InfinitiesProveNothing) {
  const Comparison comparison = Compare({-kInfinity, 1, 2, 3}, {-kInfinity, 1, 2, 3});
  EXPECT_EQ(comparison.rows[1].reason, "nonfinite-both");
  EXPECT_EQ(FirstLine(comparison), "no wrong call");
}

TEST_F(FilesAgainstStatisticsTest, NanOnOneSideIsWrong) {
  EXPECT_EQ(FirstLine(Compare({kNan, 1, 2, 3}, {0, 1, 2, 3})),
            "first wrong call: Torch.f.0.forward");
}

TEST_F(FilesAgainstStatisticsTest, FiniteFilesAreTheSame) {
  const Comparison comparison = Compare({2, -2, 1, 1}, {2, -2, 1, 1});
  EXPECT_EQ(comparison.rows[1].verdict, Verdict::kSame);
  EXPECT_TRUE(comparison.warnings.empty());
}

}  // namespace
}  // namespace plumbline
