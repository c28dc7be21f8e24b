#include "load/operator_slices.h"

#include <gtest/gtest.h>

#include "base/file/file.h"
#include "base/file/test_directory.h"

namespace plumbline::load {
namespace {

using testing::TestDirectory;

TEST(OperatorSlices, NamesOfParts) {
  const auto slice = ParseSliceName("sub_graph15_conv2d_39_Conv2D_lxslice12");
  ASSERT_TRUE(slice);
  EXPECT_EQ(slice->whole, "sub_graph15_conv2d_39_Conv2D");
  EXPECT_EQ(slice->number, 12);
  for (const char* name : {"conv", "conv_lxslice", "conv_lxslice1_trans", "_lxslice1", ""}) {
    EXPECT_FALSE(ParseSliceName(name)) << name;
  }
}

TEST(OperatorSlices, NamesInTheModel) {
  EXPECT_EQ(NameInModel("p0_new_sub_graph15_sgt_graph_0_vars_conv_lxslice3"), "vars_conv");
  EXPECT_EQ(NameInModel("a_sgt_graph_0_b_sgt_graph_12_conv"), "conv");
  EXPECT_EQ(NameInModel("conv1"), "conv1");
  EXPECT_EQ(NameInModel("a_sgt_graph_7"), "a_sgt_graph_7");
  EXPECT_EQ(NameInModel("a_sgt_graph_"), "a_sgt_graph_");
  EXPECT_EQ(NameInModel("a_sgt_graph_x_conv"), "a_sgt_graph_x_conv");
}

// A directory of files without contents, read and joined.
OperatorDumps Joined(const TestDirectory& directory, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    EXPECT_TRUE(WriteFileAtomically(directory.Path(name), "x", false));
  }
  auto dumps = ReadOperatorDumps(directory.path());
  EXPECT_TRUE(dumps);
  JoinSlices(*dumps);
  return *std::move(dumps);
}

std::vector<int64_t> NumbersOf(const OperatorDump& dump) {
  std::vector<int64_t> numbers;
  for (const OperatorSlice& slice : dump.slices.files) numbers.push_back(slice.number);
  return numbers;
}

TEST(OperatorSlices, ThreadsOfTwoExecutions) {
  const TestDirectory directory;
  const OperatorDumps dumps =
      Joined(directory, {"Add.a.2.7.1612439563338020.4.9.10.0",
                         "Add.a.2.7.1612439563338021.4.9.2.0", "Add.a.2.7.1612439563338030.4.9.2.0",
                         "Add.a.2.7.1612439563338031.4.9.10.0", "Relu.b.3.7.1612439563338025"});
  ASSERT_EQ(dumps.files.size(), 3U);
  EXPECT_EQ(dumps.files[0].op_name, "a");
  EXPECT_TRUE(dumps.files[0].slices.are_joined);
  EXPECT_EQ(dumps.files[0].thread_id, std::nullopt);
  EXPECT_EQ(NumbersOf(dumps.files[0]), (std::vector<int64_t>{2, 10}));
  EXPECT_EQ(dumps.files[0].path, dumps.files[0].slices.files[0].path);
  EXPECT_TRUE(dumps.files[0].path.ends_with("021.4.9.2.0"));
  EXPECT_EQ(dumps.files[1].op_name, "b");
  EXPECT_TRUE(dumps.files[1].slices.files.empty());
  EXPECT_EQ(NumbersOf(dumps.files[2]), (std::vector<int64_t>{2, 10}));
}

TEST(OperatorSlices, PartsCutByHandAndGraphsOfTheSameOperators) {
  const TestDirectory directory;
  const OperatorDumps dumps =
      Joined(directory, {"Conv2D.g_sgt_graph_0_conv_lxslice0.2.9.1612439563338020.4.487.0.0",
                         "Conv2D.g_sgt_graph_0_conv_lxslice1.3.9.1612439563338021.4.488.0.0",
                         "Conv2D.g_sgt_graph_1_conv_lxslice0.2.9.1612439563338022.4.487.0.0"});
  ASSERT_EQ(dumps.files.size(), 2U);
  EXPECT_EQ(dumps.files[0].op_name, "conv");
  EXPECT_EQ(NumbersOf(dumps.files[0]), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(NumbersOf(dumps.files[1]), (std::vector<int64_t>{0}));
}

TEST(OperatorSlices, PartsKnowWhichOthersThereAre) {
  const TestDirectory directory;
  const std::vector<std::string> names = {
      "Add.a.2.7.1612439563338020.4.9.3.0", "Add.a.2.7.1612439563338021.4.9.0.0",
      "Add.a.2.7.1612439563338030.4.9.0.0", "Relu.b.3.7.1612439563338025"};
  const OperatorDumps joined = Joined(directory, names);
  ASSERT_EQ(joined.files.size(), 3U);
  EXPECT_EQ(*joined.files[0].slices.numbers, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(joined.files[1].slices.numbers, nullptr);
  EXPECT_EQ(*joined.files[2].slices.numbers, (std::vector<int64_t>{0}));
  auto apart = ReadOperatorDumps(directory.path());
  ASSERT_TRUE(apart);
  CountSlices(*apart);
  ASSERT_EQ(apart->files.size(), 4U);
  for (const size_t i : {size_t{0}, size_t{1}}) {
    EXPECT_EQ(*apart->files[i].slices.numbers, (std::vector<int64_t>{0, 3}));
    EXPECT_FALSE(apart->files[i].slices.are_joined);
    EXPECT_EQ(apart->files[i].slices.files.size(), 1U);
  }
  EXPECT_EQ(*apart->files[3].slices.numbers, (std::vector<int64_t>{0}));
}

TEST(OperatorSlices, OtherTasksWithThreadsAreNoParts) {
  const TestDirectory directory;
  const OperatorDumps dumps = Joined(
      directory, {"Add.a.2.7.1612439563338020.0.9.0.0", "Add.a.2.7.1612439563338021.0.9.1.0"});
  ASSERT_EQ(dumps.files.size(), 2U);
  EXPECT_TRUE(dumps.files[0].slices.files.empty());
  EXPECT_EQ(dumps.files[1].thread_id, 1);
}

}  // namespace
}  // namespace plumbline::load
