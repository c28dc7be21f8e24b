#include "formats/acl/acl_file_name.h"

#include <gtest/gtest.h>

namespace plumbline::acl {
namespace {

TEST(AclFileName, OrdinaryNames) {
  const auto name =
      ParseDumpFileName("Conv2D.Default_conv3-Conv2d_Conv2D-op12.2.7.1612439563338020");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->op_type, "Conv2D");
  EXPECT_EQ(name->op_name, "Default_conv3-Conv2d_Conv2D-op12");
  EXPECT_EQ(name->task_id, 2U);
  EXPECT_EQ(name->stream_id, 7U);
  EXPECT_EQ(name->timestamp, "1612439563338020");
  EXPECT_EQ(name->sort_time(), 1612439563338020U);
  EXPECT_FALSE(name->thread);
}

TEST(AclFileName, WithoutStreamAndWithShortTime) {
  const auto name = ParseDumpFileName("Pooling.pool1.1147.1589195081588018");
  ASSERT_TRUE(name);
  EXPECT_FALSE(name->stream_id);
  EXPECT_EQ(name->sort_time(), 1589195081588018U);
  EXPECT_EQ(ParseDumpFileName("Conv2D.a.2.7.161243956333802")->sort_time(), 0U);
}

TEST(AclFileName, Threads) {
  for (const char* text :
       {"MatMul.a.1.2.1612439563338020.4.5.6", "MatMul.a.1.2.1612439563338020.4.5.6.0",
        "MatMul.a.1.1612439563338020.4.5.6"}) {
    const auto name = ParseDumpFileName(text);
    ASSERT_TRUE(name && name->thread) << text;
    EXPECT_EQ(name->thread->task_type, 4U);
    EXPECT_EQ(name->thread->context_id, 5U);
    EXPECT_EQ(name->thread->thread_id, 6U);
    EXPECT_EQ(name->timestamp, "1612439563338020");
  }
  const auto with_one_more = ParseDumpFileName("MatMul.a.1.2.1612439563338020.4");
  ASSERT_TRUE(with_one_more);
  EXPECT_FALSE(with_one_more->thread);
}

TEST(AclFileName, OtherForms) {
  for (const char* text :
       {"", "a", "a.b.1", "a.b.c.1", ".b.1.2.3", "a..1.2.3", "a.b.1.2.3.4.5", "mapping.csv",
        "a.b.1.2.1612439563338020.input.0.npy", "a.b.1.2.3.4.5.6.7.8", "a.b.-1.2.3"}) {
    EXPECT_FALSE(ParseDumpFileName(text)) << text;
  }
}

TEST(AclFileName, Arrays) {
  const auto name = ParseArrayFileName("net.conv1.2.1612439563338020.npy");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->op_name, "net_conv1");
  EXPECT_EQ(name->output, 2);
  EXPECT_EQ(name->sort_time(), 1612439563338020U);
  EXPECT_EQ(ParseArrayFileName("a.0.161.npy")->sort_time(), 0U);
  for (const char* text : {"", "npy", "0.1.npy", "conv.npy", "a.x.1.npy", "a.0.x.npy", "a.0..npy",
                           "a b.0.1612439563338020.npy", "a.0.1612439563338020.npz"}) {
    EXPECT_FALSE(ParseArrayFileName(text)) << text;
  }
}

TEST(AclFileName, TimesForSortingHave16Digits) {
  EXPECT_EQ(SortTime("1612439563338020"), 1612439563338020U);
  for (const char* text : {"", "161243956333802", "16124395633380201", "161243956333802x"}) {
    EXPECT_EQ(SortTime(text), 0U) << text;
  }
}

TEST(AclFileName, OverflowRecords) {
  const char* text = "Opdebug.Node_OpDebug.7.10.1636595794731103";
  EXPECT_TRUE(IsOverflowFileName(text));
  EXPECT_EQ(ParseDumpFileName(text)->task_id, 7U);
  EXPECT_FALSE(IsOverflowFileName("MatMul.Node_OpDebug.7.10.1636595794731103"));
}

}  // namespace
}  // namespace plumbline::acl
