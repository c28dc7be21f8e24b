#include "overflow/result_bounds.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "formats/json/dump_json.h"

namespace plumbline {
namespace {

std::string Half(const std::string& low, const std::string& high, const std::string& shape = "4") {
  return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.float16", "shape": [{}],)"
                     R"( "Max": {}, "Min": {}, "Mean": 0.0, "Norm": 1.0}})",
                     shape, high, low);
}

std::optional<bool> Asked(const std::string& name, const std::string& inputs, DType dtype,
                          const std::string& keywords = "") {
  const Result<Call> call = dump_json::ParseEntry(
      name, fmt::format(R"({{"input_args": [{}], "input_kwargs": {{{}}}, "output": []}})", inputs,
                        keywords));
  EXPECT_TRUE(call.has_value());
  return StaysFinite(*call, dtype);
}

constexpr DType kBrain = DType::kBFloat16, kSingle = DType::kFloat32;

TEST(ResultBounds, ProductsSumsAndQuotients) {
  const std::string big = Half("-3e4", "6e4");
  EXPECT_EQ(Asked("Tensor.__mul__.0.forward", big + ", " + big, kBrain), true);
  EXPECT_EQ(Asked("Tensor.mul_.0.forward", big + R"(, {"type": "float", "value": 1e30})", kSingle),
            true);
  // 6e4 * 1e34 is beyond both; only that nothing is sure is said.
  EXPECT_EQ(Asked("Torch.mul.0.forward", big + R"(, {"type": "float", "value": 1e34})", kSingle),
            std::nullopt);
  EXPECT_EQ(Asked("Torch.add.3.forward", big + ", " + big, kBrain), true);
  EXPECT_EQ(Asked("Torch.div.0.forward", big + ", " + Half("0.5", "2.0"), kBrain), true);
  EXPECT_EQ(Asked("Torch.div.0.forward", big + ", " + Half("-0.5", "2.0"), kBrain), std::nullopt)
      << "the divisor may be 0";
  EXPECT_EQ(Asked("Torch.square.0.forward", big, kBrain), true);
}

TEST(ResultBounds, MatricesCountTheirTerms) {
  const std::string wide = Half("-6e4", "6e4", "2, 1000");
  EXPECT_EQ(Asked("Torch.matmul.0.forward", wide + ", " + wide, kBrain), true);
  EXPECT_EQ(Asked("Functional.linear.0.forward", wide + ", " + wide + ", null", kSingle), true);
  EXPECT_EQ(Asked("Functional.linear.0.forward", wide + ", " + wide + ", " + Half("0.0", "1.0"),
                  kSingle),
            true);
  const std::string vast = Half("-1e18", "1e18", "2, 1000");
  EXPECT_EQ(Asked("Torch.bmm.0.forward", vast + ", " + vast, kSingle), std::nullopt);
  EXPECT_EQ(Asked("Tensor.sum.0.forward", wide, kBrain), true);
}

TEST(ResultBounds, TheExponentialIsDecidedBothWays) {
  EXPECT_EQ(Asked("Torch.exp.0.forward", Half("-1.0", "80.0"), kBrain), true);
  EXPECT_EQ(Asked("Torch.exp.0.forward", Half("-1.0", "100.0"), kBrain), false);
  EXPECT_EQ(Asked("Torch.exp.0.forward", Half("-1.0", "100.0"), kSingle), false);
  EXPECT_EQ(Asked("Torch.exp.0.forward", Half("-1.0", "88.7"), kBrain), std::nullopt)
      << "rounding decides";
}

TEST(ResultBounds, NothingIsSaidOfWhatIsNotKnown) {
  const std::string one = Half("-1.0", "1.0");
  EXPECT_EQ(Asked("Torch.exp.0.forward", Half("NaN", "NaN"), kBrain), std::nullopt);
  EXPECT_EQ(Asked("Torch.exp.0.forward", Half("-Infinity", "1.0"), kBrain), std::nullopt);
  EXPECT_EQ(Asked("Torch.exp.0.forward", Half("null", "null"), kBrain), std::nullopt);
  EXPECT_EQ(Asked("Torch.log.0.forward", one, kBrain), std::nullopt);
  EXPECT_EQ(Asked("Torch.exp.0.backward", one, kBrain), std::nullopt);
  EXPECT_EQ(Asked("Torch.add.0.forward", one + ", " + one, kBrain,
                  R"("alpha": {"type": "float", "value": 1e38})"),
            std::nullopt);
  EXPECT_EQ(Asked("Module.a.Exp.forward.0", one, kBrain), std::nullopt);
  // The operand itself is beyond the other type.
  EXPECT_EQ(Asked("Torch.mul.0.forward", Half("0.0", "1e300") + ", " + one, kSingle), std::nullopt);
}

}  // namespace
}  // namespace plumbline
