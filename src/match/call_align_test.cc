#include "match/call_align.h"

#include <gtest/gtest.h>

#include <string>

namespace plumbline::match {
namespace {

// Calls "s" of structure s[0] at site s[1], by position.
std::vector<AlignedCall> Calls(const std::vector<std::string>& texts) {
  std::vector<AlignedCall> calls;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto name = static_cast<uint32_t>(i + 1);
    calls.push_back({i, static_cast<uint32_t>(texts[i][0]),
                     texts[i].size() > 1 ? static_cast<uint32_t>(texts[i][1]) : 0, 0, 0, name});
  }
  return calls;
}

std::string Aligned(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::string text;
  for (const auto& [i, j] : AlignCalls(Calls(a), Calls(b))) {
    text += std::to_string(i) + ":" + std::to_string(j) + " ";
  }
  return text;
}

TEST(CallAlign, StructureDecidesFirst) {
  EXPECT_EQ(Aligned({"a", "b", "c"}, {"b", "c"}), "1:0 2:1 ");
  EXPECT_EQ(Aligned({"a"}, {"b"}), "");
  EXPECT_EQ(Aligned({}, {"b"}), "");
}

TEST(CallAlign, SitesTellEqualStructuresApart) {
  EXPECT_EQ(Aligned({"ax", "ay", "az"}, {"ax", "az"}), "0:0 2:1 ");
  EXPECT_EQ(Aligned({"ay"}, {"ax", "ay"}), "0:1 ");
}

TEST(CallAlign, WhereACallStandsTellsMoreThanItsArguments) {
  std::vector<AlignedCall> a = {{.index = 0}}, b = {{.index = 0}, {.index = 1}};
  a[0].arguments = b[1].arguments = 1;
  b[0].arguments = 2;
  EXPECT_EQ(AlignCalls(a, b).front().second, 1u);
  a[0].site = b[0].site = 1;
  b[1].site = 2;
  EXPECT_EQ(AlignCalls(a, b).front().second, 0u);
}

TEST(CallAlign, NumbersDecideWhenNothingElseDoes) {
  EXPECT_EQ(Aligned({"a", "a", "a"}, {"a", "a"}), "0:0 1:1 ");
}

TEST(CallAlign, VeryLongSequencesPairByPosition) {
  const std::vector<AlignedCall> a(5000);
  const std::vector<AlignedCall> b(5001);
  EXPECT_EQ(AlignCalls(a, b).size(), 5000u);
}

}  // namespace
}  // namespace plumbline::match
