#include "view/node_values.h"

#include <gtest/gtest.h>

#include <limits>

#include "formats/json/dump_json.h"

namespace plumbline::view {
namespace {

constexpr ValueForm kDb{};
constexpr ValueForm kVis{.is_vis = true};

NodeValues ValuesIn(const std::string& inputs, const ValueForm& form) {
  const auto call =
      dump_json::ParseEntry("Torch.f.0.forward", "{\"input_args\": [" + inputs + "]}");
  EXPECT_TRUE(call) << call.error().message();
  auto values = ValuesOf(*call, form);
  EXPECT_TRUE(values);
  return std::move(*values);
}

TEST(NodeValues, DatabaseKeepsAllDigitsAndVisHasSix) {
  EXPECT_EQ(ShownNumber(0.123456789, kDb), "0.123456789");
  EXPECT_EQ(ShownNumber(0.123456789, kVis), "0.123457");
  EXPECT_EQ(ShownNumber(1.23456789e-9, kVis), "1.234568e-09");
  EXPECT_EQ(ShownNumber(2, kVis), "2.0");
  EXPECT_EQ(ShownNumber(std::numeric_limits<double>::infinity(), kVis), "inf");
}

TEST(NodeValues, TextsLoseQuotesAndNoneAsAWord) {
  EXPECT_EQ(ShownValue("'a' None NoneType", kDb), "a null NoneType");
  EXPECT_EQ(ShownValue("1.23456789", kDb), "1.234568");
  EXPECT_EQ(ShownValue("v 1.23456789", kDb), "v 1.23456789");
  EXPECT_EQ(ShownValue("v 1.23456789%", kVis), "v 1.234568%");
}

TEST(NodeValues, NestedValuesAreNamedByTheirPlace) {
  const NodeValues values = ValuesIn(R"([{"type": "int", "value": 3}], null, {}, [])", kDb);
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0].name, "Torch.f.0.forward.input.0.0");
  EXPECT_EQ(values[1].name, "Torch.f.0.forward.input.1");
  EXPECT_EQ(values[1].fields, "\"value\": \"null\"");
}

TEST(NodeValues, TensorIsNamedAfterItsFile) {
  const NodeValues values = ValuesIn(
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": NaN, "Min": 1.0,
          "Mean": 1.0, "Norm": 1.0, "requires_grad": true,
          "data_name": "Torch.f.0.forward.kwargs.x.pt"})",
      kDb);
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values[0].name, "Torch.f.0.forward.kwargs.x");
  EXPECT_EQ(values[0].fields,
            R"("type": "torch.Tensor", "dtype": "torch.float32", "shape": "[2]", "Max": "nan", )"
            R"("Min": "1.0", "Mean": "1.0", "Norm": "1.0", "requires_grad": "True", )"
            R"("data_name": "Torch.f.0.forward.kwargs.x.pt")");
}

TEST(NodeValues, HostileKeysAndValuesAreEscaped) {
  const NodeValues values =
      ValuesIn(R"({"type": "str", "value": "\"}<script>", "a\"b": "c"})", kDb);
  ASSERT_EQ(values.size(), 1u);
  EXPECT_NE(values[0].fields.find(R"("value": "\"}<script>", "a\"b": "c")"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::view
