#include "config/graph_dump/iterations.h"

#include <gtest/gtest.h>

#include <array>

namespace plumbline::graph_dump {
namespace {

// Which of 0 to 200 a text selects, as items of single numbers and ranges.
std::string Selected(std::string_view text) {
  const Result<Iterations> iterations = ParseIterations(text);
  if (!iterations) return "error";
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i <= 200; ++i) {
    if (iterations->Contains(static_cast<uint64_t>(i))) numbers.push_back(i);
  }
  return numbers.empty() ? "none" : IterationText(numbers, /*with_ranges=*/true);
}

size_t Warnings(std::string_view text) { return ParseIterations(text)->warnings.size(); }

TEST(Iterations, SelectWhatTheirItemsSay) {
  EXPECT_EQ(Selected("all"), "0-200");
  EXPECT_EQ(Selected("0|5-8|100-120"), "0|5-8|100-120");
  EXPECT_EQ(Selected("5-5"), "5");
  EXPECT_EQ(Selected("007"), "7");
  EXPECT_EQ(Selected("3-6|5-8|4"), "3-8");
  for (const char* text : {"5-5", "007", "0|5-8", "3-6|5-8|4"}) EXPECT_EQ(Warnings(text), 0U);
}

TEST(Iterations, ItemsThatNeverMatchAreWarnings) {
  for (const char* text : {"8-5", "1-2-3", "3-", "-3", "4294967296", "99999999999999999999"}) {
    EXPECT_EQ(Selected(text), "none") << text;
    EXPECT_EQ(Warnings(text), 1U) << text;
  }
  EXPECT_EQ(Selected("|3"), "3");
  EXPECT_EQ(Selected("3||4"), "3-4");
  EXPECT_EQ(Warnings("3||4"), 1U);
  EXPECT_EQ(Selected("8-5|2"), "2");
}

TEST(Iterations, OtherCharactersAreNamedWithTheirPlace) {
  for (const char* text : {"ALL", "a", "0,5", "0 | 5", "", "all|3"}) {
    EXPECT_EQ(Selected(text), "error") << text;
  }
  EXPECT_NE(ParseIterations("0 | 5").error().message().find("' ' at position 1"),
            std::string::npos);
}

TEST(Iterations, AreWrittenAsUpstreamDoes) {
  const std::array<int64_t, 4> numbers = {0, 5, 6, 7};
  EXPECT_EQ(IterationText(numbers, /*with_ranges=*/false), "0|5|6|7");
  EXPECT_EQ(IterationText({}, /*with_ranges=*/false), "all");
}

}  // namespace
}  // namespace plumbline::graph_dump
