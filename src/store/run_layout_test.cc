#include "store/run_layout.h"

#include <gtest/gtest.h>

#include <set>

#include "record/run_files.h"

namespace plumbline::run_layout {
namespace {

TEST(RunLayout, Directories) {
  EXPECT_EQ(RankDirectory("./out", 0, std::nullopt), "./out/step0/rank");
  EXPECT_EQ(RankDirectory("/a/", 12, 3), "/a/step12/rank3");
  EXPECT_EQ(ContestedDirectory("out/step0/rank3", 77), "out/step0/rank3_77");
}

TEST(RunLayout, StaleJournalNamesAreRecognised) {
  const std::string name = StaleJournalName(1700000000, 0);
  EXPECT_EQ(name.size(), std::string(".dump.journal.20231114221320").size());
  EXPECT_TRUE(IsStaleJournal(name));
  EXPECT_TRUE(IsStaleJournal(StaleJournalName(1700000000, 2)));
  EXPECT_FALSE(IsStaleJournal(run_files::kJournal));
  EXPECT_FALSE(IsStaleJournal(".dump.journal.damaged"));
  EXPECT_FALSE(IsStaleJournal("dump.json"));
}

// dump-format 6.2
TEST(RunLayout, OrdinaryNamesStayAsTheyAre) {
  for (const std::string name :
       {"Functional.linear.0.forward.input.0", "Torch.cat.0.forward.kwargs.tensors.0",
        "Module.blk.fc.Linear.parameters_grad.weight", "Module.0.conv1.Conv2d.forward.0.input.0"}) {
    EXPECT_EQ(TensorFileName(name), name + ".pt");
  }
}

// dump-format 6.6
TEST(RunLayout, ForbiddenBytesBecomeUnderscores) {
  EXPECT_EQ(TensorFileName("Module.my block.<lambda>.a/b.\xc3\xbc"),
            "Module.my_block._lambda_.a_b.__.pt");
  EXPECT_EQ(TensorFileName(""), "_.pt");
  EXPECT_EQ(TensorFileName("../../etc"), "_.._.._etc.pt");
  EXPECT_EQ(TensorFileName(std::string_view("a\0b", 3)), "a_b.pt");
}

TEST(RunLayout, LongNamesAreCutAndStayDistinct) {
  const std::string at_limit(200, 'a');
  EXPECT_EQ(TensorFileName(at_limit), at_limit + ".pt");
  const std::string longer(300, 'a');
  const std::string cut = TensorFileName(longer);
  EXPECT_EQ(cut.size(), 180U + 1 + 16 + 3);
  EXPECT_EQ(cut.substr(0, 181), std::string(180, 'a') + ".");
  EXPECT_EQ(cut, TensorFileName(longer));
  EXPECT_NE(cut, TensorFileName(longer + "b"));
  EXPECT_EQ(cut.substr(181).find_first_not_of("0123456789abcdef"), 16U);
}

// dump-format 6.3: the key "0.1" and the position 0, 1 spell the same name.
TEST(TensorNames, CollisionsGetDupNumbers) {
  TensorNames names;
  EXPECT_EQ(names.Reserve("x.input.0.1"), "x.input.0.1.pt");
  EXPECT_EQ(names.Reserve("x.input.0.1"), "x.input.0.1.dup1.pt");
  EXPECT_EQ(names.Reserve("x.input.0.1"), "x.input.0.1.dup2.pt");
  EXPECT_EQ(names.Reserve("x y"), "x_y.pt");
  EXPECT_EQ(names.Reserve("x_y"), "x_y.dup1.pt");
}

TEST(TensorNames, ExtensionIsThatOfTheFramework) {
  EXPECT_EQ(TensorExtension("pytorch"), ".pt");
  for (const char* framework : {"mindspore", "mindtorch"}) {
    TensorNames names(TensorExtension(framework));
    EXPECT_EQ(names.Reserve("x"), "x.npy");
    EXPECT_EQ(names.Reserve("x"), "x.dup1.npy");
    EXPECT_EQ(names.Replace("g"), "g.npy");
  }
}

TEST(TensorNames, NamesThatLookNumberedAreNotTakenTwice) {
  TensorNames names;
  std::set<std::string> seen;
  for (const char* name : {"a.dup1", "a", "a", "a", "a.dup2", "a.dup1"}) {
    EXPECT_TRUE(seen.insert(names.Reserve(name)).second) << name;
  }
}

TEST(TensorNames, ReplacementKeepsItsNameAndReservesIt) {
  TensorNames names;
  EXPECT_EQ(names.Replace("g.weight"), "g.weight.pt");
  EXPECT_EQ(names.Replace("g.weight"), "g.weight.pt");
  EXPECT_EQ(names.Reserve("g.weight"), "g.weight.dup1.pt");
}

}  // namespace
}  // namespace plumbline::run_layout
