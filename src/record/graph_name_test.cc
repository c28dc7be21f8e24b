#include "record/graph_name.h"

#include <gtest/gtest.h>

namespace plumbline {
namespace {

TEST(GraphName, NumberNamesTheDirectory) {
  const std::string name = GraphNamePrefix(2) + "a.npy";  // borrowed by what is parsed
  const GraphName third = ParseGraphName(name, 3);
  EXPECT_EQ(third.directory, 2U);
  EXPECT_EQ(third.name, "a.npy");
  EXPECT_EQ(ParseGraphName(GraphNamePrefix(0) + "a.npy", 3).directory, 0U);
}

TEST(GraphName, OtherColonsAreOfTheName) {
  for (const char* text : {"3:a.npy", "a:b.npy", ":a.npy", "-1:a.npy", ""}) {
    EXPECT_EQ(ParseGraphName(text, 3).directory, 0U) << text;
    EXPECT_EQ(ParseGraphName(text, 3).name, text);
  }
}

TEST(GraphName, FilesHaveNoSlashesAndDots) {
  EXPECT_EQ(MangledKernel("Default/net v1.0\\Conv2D-op1"), "Default_net_v1_0_Conv2D-op1");
}

}  // namespace
}  // namespace plumbline
