#include "base/file/input_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file/test_directory.h"

namespace plumbline {
namespace {

TEST(InputFiles, KnowsThemByAllTheirNames) {
  const testing::TestDirectory root;
  ASSERT_TRUE(MakeDirectories(root.Path("in/below")));
  for (const char* name : {"in/a", "in/below/b", "c", "other"}) {
    ASSERT_TRUE(WriteFileAtomically(root.Path(name), name, false));
  }
  ASSERT_EQ(::symlink("..", root.Path("in/below/up").c_str()), 0);
  ASSERT_EQ(::symlink("in/a", root.Path("soft").c_str()), 0);
  ASSERT_TRUE(LinkFile(root.Path("in/below/b"), root.Path("hard")));
  InputFiles inputs({root.Path("in"), root.Path("c"), "", root.Path("missing")});
  for (const char* name : {"in/a", "in/below/b", "in/below/up/a", "c", "soft", "hard"}) {
    const Status kept = inputs.CheckSpares(root.Path(name));
    ASSERT_FALSE(kept) << name;
    EXPECT_EQ(kept.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(kept.error().message().find("is one of the inputs"), std::string::npos);
  }
  for (const char* name : {"other", "in/new", "missing", "in", "no/such"}) {
    EXPECT_TRUE(inputs.CheckSpares(root.Path(name))) << name;
  }
}

}  // namespace
}  // namespace plumbline
