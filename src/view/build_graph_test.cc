#include "view/build_graph.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/file/test_directory.h"

namespace plumbline::view {
namespace {

TEST(BuildGraph, EmptyConstructIsUnsupported) {
  const testing::TestDirectory directory;
  for (const char* name : {"construct.json", "dump.json", "stack.json"}) {
    std::ofstream(directory.path() + "/" + name) << "{}";
  }
  const auto built = BuildGraph(directory.path(), {});
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(built.error().message().find("L0 or mix"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::view
