// Memory whose contents a call writes over is never judged; what it leaves in place is.

#include "pipeline/culprit/overwritten.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "pipeline/two_dumps_for_test.h"

namespace plumbline {
namespace {

std::string Whole(int64_t max, int64_t min, double mean, double norm, const std::string& shape) {
  return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.int64", "shape": {}, "Max": {}, )"
                     R"("Min": {}, "Mean": {}, "Norm": {}, "requires_grad": false}})",
                     shape, max, min, mean, norm);
}

// 0 to 7 in some order.
const std::string kEach = Whole(7, 0, 3.5, std::sqrt(140.0), "[8]");
const std::string kSource = TensorJson(2, -2, 3, "[8, 2]");
const std::string kAllPlaces = R"({"type": "slice", "value": [null, null, null]})";

class OverwrittenTest : public TwoDumpsTest {
 protected:
  // A call that writes into other memory on each side. `more`: its other inputs.
  void Write(const std::string& api, const std::string& more, const std::string& results = "null") {
    int side_number = 1;
    for (DumpForTest* side : {&target_, &golden_}) {
      const double garbage = std::pow(1e3, side_number++);
      side->Add(api + ".0.forward", TensorJson(garbage, -garbage, garbage, "[8, 2]") + more,
                results);
    }
  }
  void ExpectOverwritten() {
    const Comparison comparison = Compare();
    EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->what;
    EXPECT_EQ(comparison.rows[0].reason, "overwritten");
    EXPECT_EQ(comparison.rows[0].verdict, Verdict::kNotComparable);
    EXPECT_EQ(comparison.counts.missing_values, 0U);
  }
};

TEST_F(OverwrittenTest, MemoryThatIsCopiedOver) {
  Write("Tensor.copy_", "," + kSource, kSource);
  ExpectOverwritten();
}

TEST_F(OverwrittenTest, MemoryThatIsFilled) {
  Write("Tensor.fill_", "," + ScalarJson("float", "0.5"), TensorJson(0.5, 0.5, 2, "[8, 2]"));
  ExpectOverwritten();
}

TEST_F(OverwrittenTest, PlacesThatAreEachNamedOnce) {
  Write("Tensor.__setitem__", "," + kEach + "," + kSource);
  ExpectOverwritten();
}

TEST_F(OverwrittenTest, PlacesOfADimensionThatAreEachNamedOnce) {
  Write("Tensor.index_copy_", "," + ScalarJson("int", "-2") + "," + kEach + "," + kSource, kSource);
  ExpectOverwritten();
}

TEST_F(OverwrittenTest, SlicesOfAllPlaces) {
  const std::string wide = R"({"type": "slice", "value": [0, 2, 1]})";
  Write("Tensor.__setitem__", ",[" + kAllPlaces + "," + wide + "]," + kSource);
  ExpectOverwritten();
}

TEST_F(OverwrittenTest, AnEllipsisAndOneDimension) {
  const std::string dots = R"({"type": "ellipsis", "value": "..."})";
  Write("Tensor.__setitem__", ",[" + dots + "," + kAllPlaces + "]," + kSource);
  ExpectOverwritten();
}

TEST_F(OverwrittenTest, WhatPartsOfAWriteLeaveIsJudged) {
  const std::string half = R"({"type": "slice", "value": [4, null, null]})";
  Write("Tensor.__setitem__", "," + half + "," + kSource);
  EXPECT_EQ(Named(), "Tensor.__setitem__.0.forward");
}

TEST_F(OverwrittenTest, WhatDoubledPlacesLeaveIsJudged) {
  Write("Tensor.__setitem__", "," + Whole(7, 0, 3, 11, "[8]") + "," + kSource);
  EXPECT_EQ(Named(), "Tensor.__setitem__.0.forward");
}

TEST_F(OverwrittenTest, WhatACallAddsToIsJudged) {
  Write("Tensor.add_", "," + kSource, kSource);
  EXPECT_EQ(Named(), "Tensor.add_.0.forward");
}

// Only where the memory of both sides is written over.
TEST_F(OverwrittenTest, AnotherResultIsNamedNevertheless) {
  int side_number = 1;
  for (DumpForTest* side : {&target_, &golden_}) {
    const double number = side_number++;
    side->Add("Tensor.copy_.0.forward",
              TensorJson(number, -number, number, "[8, 2]") + "," + kSource,
              TensorJson(2 * number, -2, 3 * number, "[8, 2]"));
  }
  EXPECT_EQ(Named(), "Tensor.copy_.0.forward");
}

}  // namespace
}  // namespace plumbline
