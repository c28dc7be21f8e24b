#include "watch/monitor_to_tensorboard.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/memory/bytes.h"
#include "base/text/protobuf_wire.h"

namespace plumbline {
namespace {

using Lines = std::vector<std::string>;

// "{step} {tag} {value}" of every scalar of the one event file in a directory.
Lines ScalarsIn(const std::string& directory) {
  const auto names = ListDirectory(directory);
  EXPECT_TRUE(names && names->size() == 1);
  if (!names || names->size() != 1) return {};
  const std::string bytes = *ReadFile(JoinPath(directory, names->front()));
  Lines scalars;
  ByteReader reader(std::as_bytes(std::span(bytes)));
  while (reader.remaining() > 0) {
    const uint64_t size = *reader.ReadU64();
    EXPECT_TRUE(reader.Skip(4));
    protobuf::MessageReader event(*reader.ReadBytes(size));
    EXPECT_TRUE(reader.Skip(4));
    uint64_t step = 0;
    while (!event.is_done()) {
      const protobuf::Field field = *event.Next();
      if (field.number == 2) step = field.value;
      if (field.number != 5) continue;
      protobuf::MessageReader summary = event.Inside(field);
      while (!summary.is_done()) {
        protobuf::MessageReader value = summary.Inside(*summary.Next());
        const std::string tag(value.Next()->text());
        float number = 0;
        std::memcpy(&number, value.Next()->bytes.data(), sizeof(number));
        scalars.push_back(fmt::format("{} {} {}", step, tag, number));
      }
    }
  }
  return scalars;
}

class MonitorToTensorboardTest : public ::testing::Test {
 protected:
  void Put(const std::string& directory, const std::string& file, const std::string& text) {
    ASSERT_TRUE(MakeDirectories(root_.Path("in/" + directory)));
    ASSERT_TRUE(WriteFileAtomically(root_.Path("in/" + directory + "/" + file), text, false));
  }
  Result<TensorboardReport> Run() {
    return MonitorToTensorboard(root_.Path("in"), root_.Path("out"), options_);
  }
  Lines Scalars(const std::string& place) { return ScalarsIn(root_.Path("out/" + place)); }

  testing::TestDirectory root_;
  TensorboardOptions options_;
};

constexpr const char* kDecember3 = "Dec03_21-34-40-rank0-aaaaaaaa";
constexpr const char* kDecember4 = "Dec04_00-00-00-rank0-bbbbbbbb";

TEST_F(MonitorToTensorboardTest, TagsNameStageMicroStepAndStatistic) {
  Put(kDecember3, "actv_0-1.csv",
      "vpp_stage,name,step,micro_step,norm,nans,shape\n1,fc.input,1,0,2.5,0,\"[2]\"\n"
      "1,fc.input,0,0,0.5,nan,\"[2]\"\n1,fc.input,0,1,1.5,,\"[2]\"\n");
  Put("Dec03_21-34-41-rank12-cccccccc", "param_0-0.csv",
      "vpp_stage,name,step,mean\n0,fc.weight,0,0.25\n");
  const auto report = Run();
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(Scalars("rank0/actv"),
            (Lines{"0 vp1:fc.input:micro0/norm 0.5", "0 vp1:fc.input:micro0/nans nan",
                   "0 vp1:fc.input:micro1/norm 1.5", "1 vp1:fc.input:micro0/norm 2.5",
                   "1 vp1:fc.input:micro0/nans 0"}));
  EXPECT_EQ(Scalars("rank12/param"), Lines{"0 vp0:fc.weight/mean 0.25"});
  EXPECT_EQ(report->scalars, 6U);
  EXPECT_EQ(report->event_files, 2U);
  EXPECT_TRUE(report->warnings.empty());
}

TEST_F(MonitorToTensorboardTest, OfAResumedTrainingTheLaterRowsCount) {
  Put(kDecember3, "grad_reduced_0-3.csv", "vpp_stage,name,step,norm\n0,w,0,1\n0,w,1,2\n0,w,2,3\n");
  Put(kDecember4, "grad_reduced_0-3.csv", "vpp_stage,name,step,norm\n0,w,1,7\n");
  const auto report = Run();
  ASSERT_TRUE(report);
  EXPECT_EQ(Scalars("rank0/grad_reduced"), (Lines{"0 vp0:w/norm 1", "1 vp0:w/norm 7"}));
  EXPECT_EQ(report->left_out, 2U);
}

TEST_F(MonitorToTensorboardTest, DirectoriesAndKindsAreChosen) {
  Put(kDecember3, "param_0-0.csv", "vpp_stage,name,step,norm\n0,w,0,1\n");
  Put(kDecember4, "param_1-1.csv", "vpp_stage,name,step,norm\n0,w,1,2\n");
  Put(kDecember4, "actv_1-1.csv", "vpp_stage,name,step,micro_step,norm\n0,w,1,0,2\n");
  options_.time_end = "Dec03_21-34-40";
  options_.kinds = {"param"};
  ASSERT_TRUE(Run());
  EXPECT_EQ(Scalars("rank0/param"), Lines{"0 vp0:w/norm 1"});
  EXPECT_EQ(KindOf(root_.Path("out/rank0/actv")), PathKind::kMissing);
  options_.time_start = "Dec03_21-34-41";
  EXPECT_EQ(Run().error().message(),
            "time_start(Dec03_21-34-41) greater than "
            "time_end(Dec03_21-34-40)");
  options_.time_end = "";
  const auto again = Run();
  ASSERT_TRUE(again);
  EXPECT_EQ(Scalars("rank0/param"), Lines{"1 vp0:w/norm 2"});
  ASSERT_EQ(again->warnings.size(), 1U);
  EXPECT_NE(again->warnings[0].find("existing event files of these ranks and kinds were replaced"),
            std::string::npos);
}

TEST_F(MonitorToTensorboardTest, WrongRequestsAreOneLine) {
  EXPECT_EQ(Run().error().code(), ErrorCode::kNotFound);
  Put(kDecember3, "stack_info.csv", "");
  EXPECT_NE(Run().error().message().find("no csv file of a known kind"), std::string::npos);
  options_.kinds = {"actv", "weights"};
  EXPECT_EQ(Run().error().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(Run().error().message().starts_with("data type(weights) is not supported"));
  options_.kinds = {};
  options_.time_start = "yesterday";
  EXPECT_NE(Run().error().message().find("\"yesterday\" is no time"), std::string::npos);
  EXPECT_EQ(KindOf(root_.Path("out")), PathKind::kMissing);
}

TEST_F(MonitorToTensorboardTest, DamageIsToldAndTheRestWritten) {
  Put(kDecember3, "other_0-0.csv", "vpp_stage,name,step,norm\n0,w,0,1\n0,w,x,1\n0,w,1,0.2");
  const auto report = Run();
  ASSERT_TRUE(report);
  EXPECT_EQ(Scalars("rank0/other"), Lines{"0 vp0:w/norm 1"});
  EXPECT_EQ(report->warnings.size(), 2U);
  EXPECT_EQ(report->damage, " in what could be read (1 file or directory damaged or missing)");
  Put(kDecember3, "actv_0-0.csv", "a,b\n");
  ASSERT_TRUE(MakeDirectories(root_.Path(std::string("in/") + kDecember3 + "/param_0-0.csv")));
  const auto again = Run();
  ASSERT_TRUE(again);
  EXPECT_EQ(Scalars("rank0/other"), Lines{"0 vp0:w/norm 1"});
  EXPECT_EQ(again->damage, " in what could be read (3 files or directories damaged or missing)");
  // Nothing that can be read is an error, and nothing of a part is left.
  Put(kDecember3, "other_0-0.csv", "a,b\n");
  EXPECT_NE(Run().error().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(ListDirectory(root_.Path("out/rank0/other"))->empty());
  EXPECT_TRUE(ListDirectory(root_.Path("out/rank0/actv"))->empty());
}

TEST_F(MonitorToTensorboardTest, LeftoversOfAKillGoAndRowsAreOnce) {
  Put(kDecember3, "other_0-0.csv", "vpp_stage,name,step,norm\n0,w,0,1\n0,w,0,77\n");
  for (const char* name : {".unfinished-events.1-0.tmp", "unfinished-events"}) {
    ASSERT_TRUE(MakeDirectories(root_.Path("out/rank0/other")));
    ASSERT_TRUE(WriteFileAtomically(root_.Path(std::string("out/rank0/other/") + name), "", false));
  }
  const auto report = Run();
  ASSERT_TRUE(report);
  EXPECT_EQ(Scalars("rank0/other"), Lines{"0 vp0:w/norm 1"});
  EXPECT_EQ(report->repeated, 1U);
  EXPECT_TRUE(report->warnings.empty());
  Put(kDecember3, "other_0-0.csv", "vpp_stage,name,step,norm\n");
  EXPECT_EQ(Run().error().code(), ErrorCode::kNotFound);
}

TEST_F(MonitorToTensorboardTest, TheUsualOutputIsBesideTheDirectories) {
  Put(kDecember3, "other_0-0.csv", "vpp_stage,name,step,norm\n0,w,0,1\n");
  const auto report = MonitorToTensorboard(root_.Path("in"), "", options_);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->path.starts_with(root_.Path("in/")));
  EXPECT_TRUE(report->path.ends_with("-csv2tensorboard_by_step"));
  EXPECT_EQ(ScalarsIn(report->path + "/rank0/other").size(), 1U);
}

}  // namespace
}  // namespace plumbline
