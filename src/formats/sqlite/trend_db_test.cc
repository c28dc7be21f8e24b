#include "formats/sqlite/trend_db.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file/test_directory.h"
#include "formats/sqlite/query_for_test.h"

namespace plumbline::trend_db {
namespace {

using sqlite::Query;

enum : size_t { kForward, kBackward };

Form DumpForm() {
  Form form;
  form.metrics = {"forward", "backward"};
  form.statistics = {"norm", "max", "min", "mean"};
  form.statistics_of = {"norm,max,min,mean", "norm"};
  return form;
}

std::vector<Tag> OneTag(const Row& row) { return {{row.target, "index"}}; }

Row RowOf(int64_t step, size_t metric, const std::string& target) {
  Row row;
  row.step = step;
  row.metric = metric;
  row.target = target;
  row.values = {1.5, std::nullopt, -2.0, 1e9};
  return row;
}

TEST(TrendDb, TargetsAndTagsAreStoredOnce) {
  const testing::TestDirectory directory;
  const std::string path = directory.Path("x.db");
  Result<Writer> writer = Writer::Create(path, DumpForm(), &OneTag);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->Begin());
  EXPECT_TRUE(*writer->Add(RowOf(0, kForward, "a.b.c")));
  EXPECT_TRUE(*writer->Add(RowOf(1, kForward, "a.b.c")));
  EXPECT_TRUE(*writer->Add(RowOf(1, kBackward, "a.b.c")));
  EXPECT_FALSE(*writer->Add(RowOf(1, kBackward, "a.b.c")));
  ASSERT_TRUE(writer->Commit());
  EXPECT_EQ(KindOf(path), PathKind::kMissing);
  ASSERT_TRUE(writer->Finish({3, 0, 1}));
  EXPECT_EQ(Query(path, "SELECT * FROM monitoring_targets"),
            std::vector<std::string>{"1|a.b.c|0|0"});
  EXPECT_EQ(Query(path, "SELECT * FROM monitoring_tags"),
            (std::vector<std::string>{"1|a.b.c|index|1", "2|a.b.c|index|2"}));
  EXPECT_EQ(Query(path, "SELECT * FROM tag_target_mapping"),
            (std::vector<std::string>{"1|1", "2|1"}));
  EXPECT_EQ(Query(path, "SELECT * FROM trend_data WHERE metric_id = 2"),
            std::vector<std::string>{"0|1|1|2|1.5|null|-2.0|1000000000.0"});
  EXPECT_EQ(Query(path, "SELECT max_rank, min_step, max_step, forward, backward FROM global_stats"),
            std::vector<std::string>{"3|0|1|norm,max,min,mean|norm"});
}

TEST(TrendDb, ColumnsAreThoseOfTheForm) {
  const testing::TestDirectory directory;
  const std::string path = directory.Path("x.db");
  Result<Writer> writer = Writer::Create(path, {{"actv"}, {"norm"}, {"norm"}, false}, &OneTag);
  ASSERT_TRUE(writer && writer->Begin());
  Row row = RowOf(4, 0, "a");
  row.vpp_stage = 2;
  row.micro_step = 1;
  row.values = {0.5};
  ASSERT_TRUE(writer->Add(row));
  ASSERT_TRUE(writer->Commit() && writer->Finish({7, 4, 5}));
  EXPECT_EQ(Query(path, "SELECT * FROM monitoring_targets"), std::vector<std::string>{"1|a|2|1"});
  EXPECT_EQ(Query(path, "SELECT * FROM trend_data"), std::vector<std::string>{"0|4|1|1|0.5"});
  EXPECT_EQ(Query(path, "SELECT * FROM global_stats"), std::vector<std::string>{"4|5|7|norm"});
}

TEST(TrendDb, UnfinishedDatabaseLeavesNothing) {
  const testing::TestDirectory directory;
  {
    Result<Writer> writer = Writer::Create(directory.Path("x.db"), DumpForm(), &OneTag);
    ASSERT_TRUE(writer && writer->Begin() && writer->Add(RowOf(0, kForward, "a")));
  }
  EXPECT_TRUE(ListDirectory(directory.path())->empty());
}

TEST(TrendDb, MissingDirectoryIsNotFound) {
  const testing::TestDirectory directory;
  EXPECT_EQ(Writer::Create(directory.Path("no/x.db"), DumpForm(), &OneTag).error().code(),
            ErrorCode::kNotFound);
}

TEST(TrendDb, AnyTextIsATarget) {
  const testing::TestDirectory directory;
  const std::string path = directory.Path("x.db");
  Result<Writer> writer = Writer::Create(path, DumpForm(), &OneTag);
  ASSERT_TRUE(writer && writer->Begin());
  ASSERT_TRUE(writer->Add(RowOf(0, kForward, "'); DROP TABLE trend_data;--\n\xC3\xBC")));
  ASSERT_TRUE(writer->Commit() && writer->Finish({}));
  EXPECT_EQ(Query(path, "SELECT count(*) FROM trend_data"), std::vector<std::string>{"1"});
}

}  // namespace
}  // namespace plumbline::trend_db
