#include "pipeline/arrays/checkpoint_names.h"

#include <gtest/gtest.h>

namespace plumbline {
namespace {

using Names = std::vector<std::string>;

TEST(CheckpointNames, EqualNamesStayAsTheyAre) {
  const AlignedNames names = AlignNames({"module.a", "b"}, {"module.a", "b"});
  EXPECT_EQ(names.target, (Names{"module.a", "b"}));
  EXPECT_TRUE(names.notes.empty());
}

TEST(CheckpointNames, WrappersAreLeftOutWhereThatHelps) {
  const AlignedNames names =
      AlignNames({"module.fc.weight", "module.fc.module.bias"}, {"fc.weight", "fc.bias"});
  EXPECT_EQ(names.target, (Names{"fc.weight", "fc.bias"}));
  EXPECT_EQ(names.notes, Names{"\"module\" in names of the target is left out"});
  const AlignedNames compiled = AlignNames({"fc.weight"}, {"_orig_mod.fc.weight"});
  EXPECT_EQ(compiled.golden, Names{"fc.weight"});
}

TEST(CheckpointNames, ACommonBeginningOfOneSideIsLeftOut) {
  const AlignedNames names =
      AlignNames({"state.model.a.w", "state.model.b.w", "state.step"}, {"a.w", "b.w"});
  EXPECT_EQ(names.target, (Names{"a.w", "b.w", "state.step"}));
  EXPECT_EQ(names.notes, Names{"\"state.model.\" in names of the target is left out"});
}

TEST(CheckpointNames, NothingIsDoneThatMakesNamesEqualOnOneSide) {
  const AlignedNames names = AlignNames({"module.a", "a"}, {"a"});
  EXPECT_EQ(names.target, (Names{"module.a", "a"}));
  const AlignedNames prefix = AlignNames({"x.a", "x.b", "a"}, {"a", "b"});
  EXPECT_EQ(prefix.target, (Names{"x.a", "x.b", "a"}));
  EXPECT_TRUE(AlignNames({}, {"a"}).target.empty());
}

}  // namespace
}  // namespace plumbline
