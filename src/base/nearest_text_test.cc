#include "base/nearest_text.h"

#include <gtest/gtest.h>

namespace plumbline {
namespace {

const std::vector<std::string> kWords = {"compare", "check", "convert", "export", "new", "good"};

TEST(NearestText, NamesWhatWasMeant) {
  EXPECT_EQ(NearestText("compre", kWords), "compare");
  EXPECT_EQ(NearestText("comapre", kWords), "compare");
  EXPECT_EQ(NearestText("exprt", kWords), "export");
  EXPECT_EQ(NearestText("nwe", kWords), "new");
  EXPECT_EQ(NearestText("god", kWords), "good");
}

TEST(NearestText, SaysNothingWhereNothingIsNear) {
  for (const char* word : {"", "x", "banana", "ok", "compare", "recompilation"}) {
    EXPECT_EQ(NearestText(word, kWords), "") << word;
  }
  EXPECT_EQ(NearestText("compre", {}), "");
  EXPECT_EQ(NearestText(std::string(200, 'x'), kWords), "");
}

TEST(NearestText, CountsChanges) {
  EXPECT_EQ(EditDistance("", "abc"), 3U);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3U);
  EXPECT_EQ(EditDistance("same", "same"), 0U);
}

}  // namespace
}  // namespace plumbline
