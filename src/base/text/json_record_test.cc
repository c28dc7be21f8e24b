#include "base/text/json_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plumbline::json {
namespace {

enum class Colour : uint8_t { kRed, kBlue };

struct Inner {
  std::string text;
  double number = 0;
};
void VisitRecord(auto& archive, RecordOf<Inner> auto& inner) { archive(inner.text, inner.number); }

struct Outer {
  bool truth = false;
  int64_t below = 0;
  uint64_t above = 0;
  std::optional<Inner> maybe, nothing;
  std::vector<Inner> list;
  std::array<int, 3> three = {};
  std::optional<std::string> empty_text;
  long double exact = 0;
  Colour colour = Colour::kRed;
};
void VisitRecord(auto& archive, RecordOf<Outer> auto& outer) {
  archive(outer.truth, outer.below, outer.above, outer.maybe, outer.nothing, outer.list,
          outer.three, outer.empty_text, outer.exact);
  archive.Choice(outer.colour, Colour::kBlue);
}

TEST(JsonRecord, GivesBackEveryKindOfMember) {
  Outer outer;
  outer.truth = true;
  outer.below = std::numeric_limits<int64_t>::min();
  outer.above = std::numeric_limits<uint64_t>::max();
  outer.maybe = Inner{"a \"b\"\n\xc3\xa4", 0.1};
  outer.list = {{"", -0.0}, {"x", INFINITY}, {"y", NAN}, {"z", 5e-324}};
  outer.three = {1, -2, 3};
  outer.empty_text = "";
  outer.exact = static_cast<long double>(std::numeric_limits<uint64_t>::max());
  outer.colour = Colour::kBlue;
  const std::string text = RecordText(outer);
  const Result<Value> value = Value::Parse(text);
  ASSERT_TRUE(value) << text;
  Outer again;
  again.nothing = Inner{};
  ASSERT_TRUE(ReadRecord(*value, again));
  EXPECT_EQ(RecordText(again), text);
  EXPECT_EQ(again.above, outer.above);
  EXPECT_EQ(again.maybe->text, outer.maybe->text);
  EXPECT_EQ(again.maybe->number, 0.1);
  EXPECT_FALSE(again.nothing);
  ASSERT_EQ(again.list.size(), 4U);
  EXPECT_TRUE(std::signbit(again.list[0].number));
  EXPECT_TRUE(std::isnan(again.list[2].number));
  EXPECT_EQ(again.list[3].number, 5e-324);
  EXPECT_EQ(again.three[1], -2);
  EXPECT_TRUE(again.empty_text);
  EXPECT_EQ(again.exact, outer.exact);
  EXPECT_EQ(again.colour, Colour::kBlue);
}

TEST(JsonRecord, RefusesWhatIsNoSuchRecord) {
  for (const char* text : {"[]", "{}", "1", "[\"a\"]", "[\"a\",\"0x1p+0\",1]", "[1,\"0x1p+0\"]",
                           "[\"a\",\"one\"]", "[\"a\",\"\"]", "[\"a\",1]"}) {
    Inner inner;
    EXPECT_FALSE(ReadRecord(*Value::Parse(text), inner)) << text;
  }
  Inner inner;
  EXPECT_TRUE(ReadRecord(*Value::Parse("[\"a\",\"0x1p+0\"]"), inner));
  std::vector<int8_t> small;
  EXPECT_FALSE(ReadRecord(*Value::Parse("[1,128]"), small));
  const auto colour = [](const char* text) {
    Colour value = Colour::kRed;
    const Value list = *Value::Parse(text);
    RecordReader in(*list.AsList());
    in.Choice(value, Colour::kBlue);
    return in.is_whole();
  };
  EXPECT_TRUE(colour("[1]"));
  EXPECT_FALSE(colour("[2]"));
}

}  // namespace
}  // namespace plumbline::json
