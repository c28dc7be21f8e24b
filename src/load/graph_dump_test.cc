#include "load/graph_dump.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/file/test_directory.h"
#include "formats/array/npy.h"

namespace plumbline::load {
namespace {

constexpr std::string_view kHeader =
    "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min "
    "Value,Avg Value,L2Norm Value\n";

class GraphDump : public ::testing::Test {
 protected:
  std::string Make(const std::string& directory) {
    std::filesystem::create_directories(root_.Path(directory));
    return root_.Path(directory);
  }
  void Write(const std::string& name, std::string_view text) {
    std::filesystem::create_directories(std::filesystem::path(root_.Path(name)).parent_path());
    std::ofstream(root_.Path(name), std::ios::binary) << text;
  }
  // A file of two floats.
  void WriteArray(const std::string& name) {
    const Shape sizes = {2};
    Write(name, *npy::MakeHeader(DType::kFloat32, sizes) + std::string(8, '\0'));
  }
  std::string Listed() const {
    std::string text;
    for (const GraphDirectory& each : ListGraphDirectories(root_.path())) {
      text += each.path.substr(root_.path().size() + 1) + "=" + std::to_string(each.rank) + "/" +
              std::to_string(each.step) + " ";
    }
    return text;
  }
  ErrorCode CodeOfCsv(std::string_view text) {
    Write("statistic.csv", text);
    const auto records = ReadGraphDump({root_.path()});
    return records ? ErrorCode::kInternal : records.error().code();
  }

  plumbline::testing::TestDirectory root_;
};

TEST(KernelFileName, IsReadFromTheRight) {
  const auto plain =
      ParseKernelFile("Conv2D.Conv2D-op12.0.7.1623124369613540.output.3.NC1HWC0.npy");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->op_type, "Conv2D");
  EXPECT_EQ(plain->op_name, "Conv2D-op12");
  EXPECT_EQ(plain->stream, "7");
  EXPECT_EQ(plain->timestamp, 1623124369613540U);
  EXPECT_TRUE(plain->is_output);
  EXPECT_EQ(plain->slot, 3U);
  EXPECT_EQ(plain->dtype, "");
  const auto typed = ParseKernelFile("Add.a.b-op1.1.2.3.input.0.DefaultFormat.BFloat16.npy");
  ASSERT_TRUE(typed);
  EXPECT_EQ(typed->op_name, "a.b-op1");
  EXPECT_EQ(typed->dtype, "BFloat16");
  EXPECT_FALSE(typed->is_output);
  for (const char* other : {"a.npy", "123.npy", "x_0.npy", "", ".npy", "Add.n.0.0.1.input.0.F.bin",
                            "Add.n.0.0.1.inputs.0.F.npy", "Add.n.0.0.x.input.0.F.npy",
                            "Add.0.0.1.input.0.F.npy", "Add..0.0.1.input.0.F.npy"}) {
    EXPECT_FALSE(ParseKernelFile(other)) << other;
  }
}

TEST_F(GraphDump, BothLayoutsSayRankAndStep) {
  const std::string file = "/Add.n.0.0.1.input.0.DefaultFormat.npy";
  WriteArray("rank_3/Net/0/12" + file);
  WriteArray("rank_3/Net/1/12" + file);
  WriteArray("rank_3/Net/0/constants" + file);
  EXPECT_EQ(Listed(), "rank_3/Net/0/12=3/12 rank_3/Net/1/12=3/12 ");
  std::filesystem::remove_all(root_.Path("rank_3"));
  WriteArray("20260101/5/model/1/0" + file);
  Write("20260101/6/model/1/2/statistic.csv", kHeader);
  WriteArray("20260101/last/7/1/0" + file);
  EXPECT_EQ(Listed(), "20260101/5/model/1/0=5/0 20260101/6/model/1/2=6/2 20260101/last/7/1/0=7/0 ");
}

TEST_F(GraphDump, DevicesMayHaveALevelOfSteps) {
  const std::string file = "/Add.n.0.0.1.input.0.DefaultFormat.npy";
  WriteArray("4/20260101010101/5/model/1/0" + file);
  WriteArray("7/20260101010102/5/model/1/0" + file);
  EXPECT_EQ(Listed(), "4/20260101010101/5/model/1/0=5/4 7/20260101010102/5/model/1/0=5/7 ");
  std::filesystem::remove_all(root_.Path("7"));
  // Kernels launched one by one, and collective ones below them.
  WriteArray("4/20260101010101/5" + file);
  Write("4/20260101010101/5/statistic.csv", kHeader);
  EXPECT_EQ(Listed(), "4/20260101010101/5=5/4 4/20260101010101/5/model/1/0=5/4 ");
  // A number in the name of the root is none.
  const auto below = ListGraphDirectories(root_.Path("4"));
  ASSERT_EQ(below.size(), 2U);
  EXPECT_EQ(below[0].step, 0);
}

TEST_F(GraphDump, OtherDirectoriesAreNone) {
  EXPECT_FALSE(IsGraphDump(root_.path()));
  EXPECT_FALSE(IsGraphDump(root_.Path("missing")));
  WriteArray("data/tag/step0/rank0/x_0.npy");
  Write("step0/rank0/dump.json", "{}");
  WriteArray("step0/rank0/dump_tensor_data/Add.n.0.0.1.input.0.DefaultFormat.npy");
  EXPECT_FALSE(IsGraphDump(root_.path()));
  EXPECT_EQ(ResolveGraphPath(root_.path()).error().code(), ErrorCode::kNotFound);
}

TEST_F(GraphDump, SeveralDirectoriesHaveOnePath) {
  const std::string file = "/Add.n.0.0.1.input.0.DefaultFormat.npy";
  WriteArray("rank_0/Net/0/4" + file);
  WriteArray("rank_0/Net/2/4" + file);
  const std::vector<std::string> both = {root_.Path("rank_0/Net/0/4"),
                                         root_.Path("rank_0/Net/2/4")};
  EXPECT_EQ(GraphPath(both), root_.Path("rank_0/Net/*/4"));
  EXPECT_EQ(*ResolveGraphPath(GraphPath(both)), both);
  EXPECT_EQ(*ResolveGraphPath(root_.path()), both);
  WriteArray("rank_0/Net/2/5" + file);
  EXPECT_EQ(ResolveGraphPath(root_.path()).error().code(), ErrorCode::kInvalidArgument);
}

TEST_F(GraphDump, RunsOfAKernelAreToldByTime) {
  Write("statistic.csv",
        std::string(kHeader) +
            "Add,net/Add-op0,0,0,20,input,0,8,float32,\"(2)\",3,1,2,3.16,\n"
            "Add,net/Add-op0,0,0,10,input,0,8,float32,\"(2)\",2,1,1.5,2.2,\n"
            "Add,net/Add-op0,0,0,11,output,0,8,float32,\"(2)\",nan,-inf,null,1e999,\n"
            "Mul,net/Mul-op0,0,0,15,output,0,8,bool,\"()\",True,False,-nan,0\n");
  const auto records = ReadGraphDump({root_.path()});
  ASSERT_TRUE(records) << records.error().message();
  EXPECT_FALSE(records->has_tensors);
  ASSERT_EQ(records->calls.size(), 3U);
  EXPECT_EQ(records->calls[0].name, "net_Add-op0.Add.0.forward");
  EXPECT_EQ(records->calls[1].name, "net_Mul-op0.Mul.0.forward");
  EXPECT_EQ(records->calls[2].name, "net_Add-op0.Add.1.forward");
  const auto* first = records->calls[0].Find("input_args")->Find("0")->As<TensorRecord>();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(std::get<double>(first->max), 2);
  EXPECT_EQ(first->shape, Shape{2});
  EXPECT_EQ(*first->data_name, "net_Add-op0.0.0.input.0");
  const auto* output = records->calls[0].Find("output")->Find("0")->As<TensorRecord>();
  EXPECT_TRUE(std::isnan(std::get<double>(output->max)));
  EXPECT_EQ(std::get<double>(output->min), -INFINITY);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(output->mean));
  EXPECT_EQ(std::get<double>(output->norm), INFINITY);
  const auto* truth = records->calls[1].Find("output")->Find("0")->As<TensorRecord>();
  EXPECT_EQ(std::get<bool>(truth->max), true);
  EXPECT_TRUE(truth->shape.empty());
}

TEST_F(GraphDump, ATableOfMoreThanTheTensorFilesIsWhatWasDumped) {
  const std::string one =
      std::string(kHeader) + "Add,Add-op0,0,0,10,input,0,8,float32,\"(2)\",2,1,1.5,2.2,\n";
  WriteArray("Add.Add-op0.0.0.10.input.0.DefaultFormat.npy");
  Write("statistic.csv", one);
  const auto complete = ReadGraphDump({root_.path()});
  ASSERT_TRUE(complete) << complete.error().message();
  EXPECT_TRUE(complete->has_tensors);
  EXPECT_TRUE(complete->problems.empty());
  Write("statistic.csv", one + "Add,Add-op0,0,0,11,output,0,8,float32,\"(2)\",3,1,2,3.16,\n");
  const auto dropped = ReadGraphDump({root_.path()});
  ASSERT_TRUE(dropped) << dropped.error().message();
  EXPECT_FALSE(dropped->has_tensors);
  ASSERT_EQ(dropped->calls.size(), 1U);
  EXPECT_NE(dropped->calls[0].Find("output"), nullptr);
  ASSERT_EQ(dropped->problems.size(), 1U);
  EXPECT_NE(dropped->problems[0].find("1 tensor file for 2 rows of statistic.csv"),
            std::string::npos)
      << dropped->problems[0];
  Write("statistic.csv", "x");  // damaged: the files stay what was dumped
  const auto damaged = ReadGraphDump({root_.path()});
  ASSERT_TRUE(damaged) << damaged.error().message();
  EXPECT_TRUE(damaged->has_tensors);
  EXPECT_EQ(damaged->problems.size(), 1U);
}

TEST_F(GraphDump, LongNamesAndDamagedFiles) {
  WriteArray("rank_0/n/0/0/4711.npy");
  Write("rank_0/n/0/0/mapping.csv",
        "4711.npy,Add.long,\"-op0.0.0.5.output.1.DefaultFormat.npy\n1.npy,of no file\n");
  Write("rank_0/n/0/0/Add.cut-op0.0.0.6.output.0.DefaultFormat.npy", "\x93NUMPY");
  Write("rank_0/n/0/0/odd.npy", "");
  const auto records = ReadGraphDump({root_.Path("rank_0/n/0/0")});
  ASSERT_TRUE(records) << records.error().message();
  ASSERT_EQ(records->calls.size(), 2U);
  EXPECT_EQ(records->calls[0].name, "long,\"-op0.Add.0.forward");
  const auto* mapped = records->calls[0].Find("output")->Find("1")->As<TensorRecord>();
  ASSERT_NE(mapped, nullptr);
  EXPECT_EQ(*mapped->data_name, "4711.npy");
  EXPECT_EQ(mapped->dtype_text, "float32");
  const auto* cut = records->calls[1].Find("output")->Find("0")->As<TensorRecord>();
  EXPECT_EQ(cut->dtype_text, kUnreadableDType);
  ASSERT_EQ(records->problems.size(), 2U);
  EXPECT_TRUE(records->problems[0].ends_with("mapping.csv: 1 of its 2 files not there"));
}

TEST_F(GraphDump, DirectoriesWithLongNamesAlone) {
  const std::string digits(32, '7'), digest = "0123456789abcdef0123456789abcdef";
  WriteArray("a/rank_0/n/0/0/" + digits + ".npy");
  EXPECT_FALSE(IsGraphDump(root_.Path("a")));
  Write("a/rank_0/n/0/0/mapping.csv", digits + ".npy,Add.k.0.0.5.output.0.DefaultFormat.npy\n");
  EXPECT_TRUE(IsGraphDump(root_.Path("a")));
  WriteArray("b/rank_0/n/0/0/" + digest + ".npy");
  Write("b/rank_0/n/0/0/mapping.csv", digest + ".npy,Add.k.0.0.5.output.0.npy\n");
  EXPECT_FALSE(IsGraphDump(root_.Path("b")));
  Write("b/rank_0/n/0/0/mapping.csv", digest + ".npy,Add.k.0.0.5.output.0.NCHW.npy\n");
  EXPECT_TRUE(IsGraphDump(root_.Path("b")));
}

TEST_F(GraphDump, ANameMayFillADirectoryEntry) {
  const std::string end = "-op0.0.0.5.output.0.DefaultFormat.npy";
  const std::string kernel(255 - end.size() - 4, 'k');
  WriteArray("rank_0/n/0/0/Add." + kernel + end);  // one byte more is a number and mapping.csv
  WriteArray("rank_0/n/0/0/12.npy");
  Write("rank_0/n/0/0/mapping.csv", "12.npy,Add.k" + kernel + end + "\n");
  const auto records = ReadGraphDump({root_.Path("rank_0/n/0/0")});
  ASSERT_TRUE(records) << records.error().message();
  ASSERT_EQ(records->calls.size(), 2U);
  for (const Call& call : records->calls) EXPECT_TRUE(call.name.ends_with("-op0.Add.0.forward"));
  EXPECT_TRUE(records->problems.empty());
}

TEST_F(GraphDump, DamagedTablesAreCorrupt) {
  EXPECT_EQ(CodeOfCsv(""), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOfCsv("a,b\n1,2\n"), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOfCsv(kHeader), ErrorCode::kNotFound);
  const std::string row = "Add,n,0,0,10,input,0,8,float32,\"(2)\",1,1,1,1,\n";
  EXPECT_EQ(CodeOfCsv(std::string(kHeader) + "Add,n,0,0,1"), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOfCsv(std::string(kHeader) + "Add,n,0,0,x,input,0,8,float32,\"(2)\",1,1,1,1,\n"),
            ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOfCsv(std::string(kHeader) + "Add,n,0,0,1,both,0,8,float32,\"(2)\",1,1,1,1,\n"),
            ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOfCsv(std::string(kHeader) + "Add,n,0,0,1,input,0,8,float32,2,1,1,1,1,\n"),
            ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOfCsv(std::string(kHeader) + row), ErrorCode::kInternal);  // reads
}

TEST_F(GraphDump, CallsAreVisitedOneByOneInTheOrderOfTheirFirstValue) {
  const auto row = [](std::string_view op, int time, std::string_view io, int slot) {
    return fmt::format("T,{},0,0,{},{},{},8,float32,\"(2)\",{},,,,\n", op, time, io, slot, time);
  };
  Write("rank_0/n/0/0/statistic.csv",
        "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,"
        "Min Value,Avg Value,L2Norm Value\n" +
            row("late", 9, "output", 0) + row("a/b.c", 1, "output", 0) +
            row("a/b.c", 5, "output", 0) + row("a/b.c", 1, "input", 1) +
            row("a/b.c", 1, "input", 0) + row("mid", 2, "input", 0));
  std::vector<std::string> seen;
  const auto records = VisitGraphDump({root_.Path("rank_0/n/0/0")}, [&](Call call, bool tensors) {
    EXPECT_FALSE(tensors);
    for (const auto& [part, values] : call.members) {
      for (const auto& [slot, value] : *values.As<ValueMap>()) {
        const auto& tensor = *value.As<TensorRecord>();
        EXPECT_EQ(tensor.shape, Shape{2});
        seen.push_back(fmt::format("{} {} {} {}", call.name, part, *tensor.data_name,
                                   std::get<double>(tensor.max)));
      }
    }
  });
  ASSERT_TRUE(records) << records.error().message();
  EXPECT_TRUE(records->calls.empty());
  EXPECT_EQ(seen, (std::vector<std::string>{"a_b_c.T.0.forward input_args a_b.c.0.0.input.0 1",
                                            "a_b_c.T.0.forward input_args a_b.c.0.0.input.1 1",
                                            "a_b_c.T.0.forward output a_b.c.0.0.output.0 1",
                                            "mid.T.0.forward input_args mid.0.0.input.0 2",
                                            "a_b_c.T.1.forward output a_b.c.0.0.output.0 5",
                                            "late.T.0.forward output late.0.0.output.0 9"}));
}

}  // namespace
}  // namespace plumbline::load
