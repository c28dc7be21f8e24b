#include "measure/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plumbline::measure {
namespace {

constexpr double kFloat32 = 0x1p-24;

ElementOperand Of(std::vector<double> values) { return {std::move(values), 0}; }
ElementOperand Number(double number) { return {{}, number}; }

bool Follows(std::string_view api, const std::vector<ElementOperand>& operands,
             const std::vector<double>& result, double roundoff = kFloat32) {
  const std::string name = "Tensor." + std::string(api) + ".0.forward";
  const ElementFunction function = ElementFunctionOf(name, operands.size());
  return function != nullptr && IsResultOf(function, operands, result, roundoff);
}

TEST(Elementwise, CallsOfOptimizers) {
  const ElementOperand a = Of({1, -2}), b = Of({4, 8}), c = Of({2, 16});
  EXPECT_TRUE(Follows("add_", {a, b}, {5, 6}));
  EXPECT_TRUE(Follows("add_", {a, b, Number(0.5)}, {3, 2}));
  EXPECT_TRUE(Follows("__sub__", {a, b}, {-3, -10}));
  EXPECT_TRUE(Follows("__rsub__", {a, Number(1)}, {0, 3}));
  EXPECT_TRUE(Follows("mul", {a, Number(3)}, {3, -6}));
  EXPECT_TRUE(Follows("__rtruediv__", {b, Number(1)}, {0.25, 0.125}));
  EXPECT_TRUE(Follows("lerp_", {a, b, Number(0.5)}, {2.5, 3}));
  EXPECT_TRUE(Follows("addcmul_", {a, b, c, Number(0.5)}, {5, 62}));
  EXPECT_TRUE(Follows("addcdiv_", {a, b, c, Number(-1)}, {-1, -2.5}));
  EXPECT_TRUE(Follows("sqrt", {b}, {2, std::sqrt(8.0)}));
  EXPECT_TRUE(Follows("sign_", {Of({1e-30, -3, 0})}, {1, -1, 0}));
  EXPECT_TRUE(Follows("gt", {a, Number(0)}, {1, 0}));
  EXPECT_TRUE(Follows("clamp_", {b, Number(5), Number(7)}, {5, 7}));
  EXPECT_TRUE(Follows("maximum", {a, c}, {2, 16}));
  EXPECT_TRUE(Follows("where", {Of({1, 0}), a, b}, {1, 8}));
}

TEST(Elementwise, RoundingIsMeasuredByWhatIsAdded) {
  const double one_unit = 1e8 * 0x1p-23;
  EXPECT_TRUE(Follows("add", {Of({1e8}), Of({-1e8})}, {one_unit}));
  EXPECT_FALSE(Follows("add", {Of({1e8}), Of({-1e8})}, {16 * one_unit}));
  EXPECT_FALSE(Follows("mul", {Of({1}), Of({1})}, {1.00001}));
  EXPECT_TRUE(Follows("mul", {Of({1}), Of({1})}, {1.00001}, 0x1p-8));
}

TEST(Elementwise, OneWrongElementIsSeen) {
  EXPECT_FALSE(Follows("sign_", {Of({1e-30, -3})}, {1, 1}));
  EXPECT_FALSE(Follows("addcdiv_", {Of({1, 1}), Of({1, 1}), Of({1, 1}), Number(0.5)}, {1.5, 1.4}));
  EXPECT_FALSE(Follows("add_", {Of({1}), Of({4}), Number(0.5)}, {5}));  // without the factor
  EXPECT_FALSE(Follows("gt", {Of({0}), Number(0)}, {1}));
}

TEST(Elementwise, NanIsNeverRightAndInfinityOnlyWhereItMustBe) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(Follows("div", {Of({0}), Of({0})}, {nan}));
  EXPECT_FALSE(Follows("mul", {Of({2}), Of({2})}, {nan}));
  EXPECT_TRUE(Follows("div", {Of({1}), Of({0})}, {infinity}));
  EXPECT_FALSE(Follows("mul", {Of({2}), Of({2})}, {infinity}));
}

TEST(Elementwise, HowFarOffIsCountedInRoundings) {
  const auto off = [](std::string_view api, const std::vector<ElementOperand>& operands,
                      const std::vector<double>& result) {
    const std::string name = "Tensor." + std::string(api) + ".0.forward";
    return RoundingsOff(ElementFunctionOf(name, operands.size()), operands, result, kFloat32);
  };
  EXPECT_EQ(off("add", {Of({1, 2}), Of({3, 4})}, {4, 6}), 0);
  EXPECT_NEAR(*off("add", {Of({1, 2}), Of({3, 4})}, {4 + 4 * 0x1p-20, 6}), 16, 1e-6);
  EXPECT_TRUE(std::isinf(*off("sign_", {Of({-1e-20})}, {1})));
  EXPECT_TRUE(std::isinf(*off("mul", {Of({2}), Of({2})}, {std::nan("")})));
  // What would have to be infinite may be reached in another way.
  EXPECT_FALSE(off("div", {Of({1}), Of({0})}, {7}));
}

TEST(Elementwise, OtherCallsAreNotKnown) {
  EXPECT_EQ(ElementFunctionOf("Torch.matmul.0.forward", 2), nullptr);
  EXPECT_EQ(ElementFunctionOf("Tensor.add_.0.backward", 2), nullptr);
  EXPECT_EQ(ElementFunctionOf("Tensor.add_.0.forward", 1), nullptr);
  EXPECT_EQ(ElementFunctionOf("Module.add.Linear.forward.0", 2), nullptr);
  for (const char* name :
       {"abs", "add",   "addcdiv", "addcmul", "clamp",   "clip",    "eq",      "ge",
        "gt",  "le",    "lerp",    "lt",      "maximum", "minimum", "mul",     "ne",
        "neg", "rsqrt", "sign",    "sqrt",    "square",  "sub",     "truediv", "where"}) {
    const std::string call = std::string("Torch.") + name + ".0.forward";
    bool is_known = false;
    for (const size_t arguments : {size_t{1}, size_t{2}, size_t{3}}) {
      is_known = is_known || ElementFunctionOf(call, arguments) != nullptr;
    }
    EXPECT_TRUE(is_known) << name;  // the table is sorted, or it would not be found
  }
}

}  // namespace
}  // namespace plumbline::measure
