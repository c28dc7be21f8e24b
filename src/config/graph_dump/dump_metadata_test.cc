#include "config/graph_dump/dump_metadata.h"

#include <gtest/gtest.h>

#include "base/file/file.h"
#include "base/file/test_directory.h"

namespace plumbline::graph_dump {
namespace {

TEST(DumpMetadata, MissingFilesAreWrittenAndOthersStay) {
  const plumbline::testing::TestDirectory root;
  const std::string tree = root.Path("rank_3");
  ASSERT_TRUE(WriteFileAtomically(root.Path("table.json"), "{\"ranks\": 8}", false));
  ASSERT_TRUE(WriteDumpMetadata(tree, {"{}", "Ascend", "2.10.0", root.Path("table.json")}));
  EXPECT_EQ(*ReadFile(tree + "/.dump_metadata/data_dump.json"), "{}");
  EXPECT_EQ(*ReadFile(tree + "/.dump_metadata/config.json"),
            "{\"device_target\":\"Ascend\",\"ms_version\":\"2.10.0\"}");
  EXPECT_EQ(*ReadFile(tree + "/.dump_metadata/hccl.json"), "{\"ranks\": 8}");
  ASSERT_TRUE(WriteDumpMetadata(tree, {"other", "Ascend", "2.10.0", ""}));
  EXPECT_EQ(*ReadFile(tree + "/.dump_metadata/data_dump.json"), "{}");
  EXPECT_EQ(WriteDumpMetadata(tree, {"", "", "", root.Path("no_table.json")}).error().code(),
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace plumbline::graph_dump
