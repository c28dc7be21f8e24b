#include "load/rank_directories.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file/test_directory.h"

namespace plumbline::load {
namespace {

class RankDirectories : public ::testing::Test {
 protected:
  void Make(const std::string& name) { std::filesystem::create_directories(root_.Path(name)); }

  // "name:rank" of every directory found.
  std::string Listed() const {
    const auto ranks = ListRankDirectories(root_.path());
    if (!ranks) return ranks.error().message();
    std::string text;
    for (const RankDirectory& rank : *ranks) {
      if (!text.empty()) text += ' ';
      text += rank.name + ":" + (rank.rank ? std::to_string(*rank.rank) : "?");
    }
    return text;
  }

  plumbline::testing::TestDirectory root_;
};

TEST_F(RankDirectories, OrderIsThatOfNumbers) {
  for (const char* name : {"rank10", "rank2", "rank0", ".rank5", "ranks", "rank1x", "step0"}) {
    Make(name);
  }
  std::ofstream(root_.Path("rank7")) << "a file";
  EXPECT_EQ(Listed(), "rank0:0 rank2:2 rank10:10");
}

TEST_F(RankDirectories, EveryNamingMixes) {
  for (const char* name : {"rank", "rank3", "proc123", "rank3_77"}) Make(name);
  EXPECT_EQ(Listed(), "rank:0 rank3:3 proc123:? rank3_77:?");
}

TEST_F(RankDirectories, SoleProcessIsRankZero) {
  Make("proc812");
  EXPECT_EQ(Listed(), "proc812:0");
  Make("rank1");
  EXPECT_EQ(Listed(), "proc812:0 rank1:1");
  Make("proc813");
  EXPECT_EQ(Listed(), "rank1:1 proc812:? proc813:?");
}

TEST_F(RankDirectories, TwoClaimsOfOneRankAreRefused) {
  Make("rank");
  Make("rank0");
  EXPECT_NE(Listed().find("both rank 0"), std::string::npos);
}

TEST_F(RankDirectories, LinksAreRefused) {
  Make("elsewhere");
  std::filesystem::create_directory_symlink(root_.Path("elsewhere"), root_.Path("rank0"));
  EXPECT_NE(Listed().find("symbolic link"), std::string::npos);
}

TEST_F(RankDirectories, NothingIsNoError) {
  EXPECT_EQ(Listed(), "");
  EXPECT_EQ(ListRankDirectories(root_.Path("x")).error().code(), ErrorCode::kNotFound);
}

TEST_F(RankDirectories, StepsAreInOrderOfNumber) {
  for (const char* name : {"step10", "step9", "step", "stepx", "rank0"}) Make(name);
  const auto steps = ListStepDirectories(root_.path());
  ASSERT_TRUE(steps);
  ASSERT_EQ(steps->size(), 2u);
  EXPECT_EQ((*steps)[0].step, 9);
  EXPECT_EQ((*steps)[1].step, 10);
}

}  // namespace
}  // namespace plumbline::load
