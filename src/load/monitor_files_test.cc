#include "load/monitor_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/file/file.h"
#include "base/file/test_directory.h"

namespace plumbline::load {
namespace {

using Lines = std::vector<std::string>;

void Make(const testing::TestDirectory& root, const std::string& name) {
  ASSERT_TRUE(MakeDirectories(root.Path(name)));
}

Lines NamesOf(const std::string& path) {
  Lines names;
  const auto directories = ListMonitorDirectories(path);
  for (const MonitorDirectory& directory : *directories) {
    names.push_back(fmt::format("{} {}", directory.rank, directory.name));
  }
  return names;
}

TEST(MonitorDirectories, ByRankTheLatestFirst) {
  const testing::TestDirectory root;
  for (const char* name :
       {"Dec03_21-34-40-rank1-3f9c1a2b", "Dec03_21-34-41-rank0-aaaaaaaa", "module_struct",
        "Dec04_01-00-00-rank0-bbbbbbbb", "Dec03_21-34-40-ranks-x", "Dec03_25-34-40-rank0-aaaaaaaa",
        "Foo03_21-34-40-rank0-x", "Dec03_21-34-40", "Dec03_21-34-40-12345678",
        "Dec03_21-34-40-short"}) {
    Make(root, name);
  }
  ASSERT_TRUE(WriteFileAtomically(root.Path("Dec05_00-00-00-rank7-cccccccc"), "", false));
  EXPECT_EQ(NamesOf(root.path()),
            (Lines{"0 Dec04_01-00-00-rank0-bbbbbbbb", "0 Dec03_21-34-41-rank0-aaaaaaaa",
                   "0 Dec03_21-34-40-12345678", "1 Dec03_21-34-40-rank1-3f9c1a2b"}));
  EXPECT_TRUE(HoldsMonitorDirectories(root.path()));
  EXPECT_FALSE(HoldsMonitorDirectories(root.Path("module_struct")));
  EXPECT_FALSE(HoldsMonitorDirectories(root.Path("none")));
}

TEST(MonitorDirectories, JanuaryIsBehindDecember) {
  const testing::TestDirectory root;
  Make(root, "Jan01_00-10-00-rank0-aaaaaaaa");
  Make(root, "Dec31_23-50-00-rank0-bbbbbbbb");
  EXPECT_EQ(NamesOf(root.path()).front(), "0 Jan01_00-10-00-rank0-aaaaaaaa");
  Make(root, "May05_00-00-00-rank0-cccccccc");  // then it is one year
  EXPECT_EQ(NamesOf(root.path()).front(), "0 Dec31_23-50-00-rank0-bbbbbbbb");
}

TEST(MonitorFiles, ByKindAndStep) {
  const testing::TestDirectory root;
  for (const char* name : {"actv_10-11.csv", "actv_2-3.csv", "actv_grad_2-3.csv", "stack_info.csv",
                           "actv_2.csv", "actv_2-3.txt", "names.json", "grad_reduced_0-0.csv"}) {
    ASSERT_TRUE(WriteFileAtomically(root.Path(name), "", false));
  }
  Lines found;
  const auto files = ListMonitorFiles(root.path());
  ASSERT_TRUE(files);
  for (const MonitorFile& file : *files) {
    found.push_back(fmt::format("{} {}", file.kind, file.first_step));
  }
  EXPECT_EQ(found, (Lines{"actv 2", "actv 10", "actv_grad 2", "grad_reduced 0"}));
}

struct Found {
  MonitorFileFacts facts;
  Lines rows, statistics;
};

Result<Found> ReadText(const std::string& text) {
  const testing::TestDirectory root;
  const std::string path = root.Path("actv_0-0.csv");
  EXPECT_TRUE(WriteFileAtomically(path, text, false));
  Found found;
  auto facts = VisitMonitorFile(
      path, "actv", [&](std::span<const std::string> names, MonitorRow& row) -> Status {
        found.statistics.assign(names.begin(), names.end());
        std::string line =
            fmt::format("{} {} {} {}", row.name, row.vpp_stage, row.step, row.micro_step);
        for (const auto& value : row.values) line += value ? fmt::format(" {}", *value) : " -";
        found.rows.push_back(line);
        return {};
      });
  if (!facts) return facts.error();
  found.facts = *facts;
  return found;
}

TEST(MonitorRows, OfTheUsualLayout) {
  const auto found = ReadText(
      "vpp_stage,name,step,micro_step,norm,nans,shape\n"
      "1,fc.input,3,2,0.5,0.0,\"[4, 4]\"\n"
      "0,fc.output,3.0,0,nan,1,\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->statistics, (Lines{"norm", "nans", "shape"}));
  EXPECT_EQ(found->rows, (Lines{"fc.input 1 3 2 0.5 0 -", "fc.output 0 3 0 nan 1 -"}));
  EXPECT_EQ(found->facts.rows, 2U);
  EXPECT_FALSE(found->facts.is_cut);
}

TEST(MonitorRows, WhatIsNoRowIsCountedAndTold) {
  const auto found =
      ReadText("vpp_stage,name,step,norm\n0,w,0,1\n0,w,one,1\n0,w\n\n0,w,-1,1\n0,w,1,2\n0,w,2,0.1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rows, (Lines{"w 0 0 0 1", "w 0 1 0 2"}));
  EXPECT_EQ(found->facts.left_out, 3U);
  EXPECT_EQ(found->facts.first_left_out,
            "line 3: its step, stage or micro step is no whole number from 0 on");
  EXPECT_TRUE(found->facts.is_cut);  // 0.1 might be the begin of 0.125
}

TEST(MonitorRows, CellsAreReadAsPythonDoes) {
  const auto found = ReadText(
      "vpp_stage,name,step,norm,max,dtype\n0,w,0, 1.5 "
      ",1e400,torch.float32\n0,w,1,tensor(1),-inf,\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rows, (Lines{"w 0 0 0 1.5 inf -", "w 0 1 0 - -inf -"}));
  EXPECT_EQ(found->facts.odd_cells, 1U);
  EXPECT_EQ(found->facts.first_odd_cell, "line 3: norm \"tensor(1)\"");
}

TEST(MonitorFiles, OfTheSecondFormHaveOneKindPerScope) {
  const testing::TestDirectory root;
  for (const char* name : {"rank_0", "rank_0_2", "rank_1", "rank_x"}) Make(root, name);
  const std::string rows =
      "vpp_stage,step,module_name,scope,micro_step,norm\r\n"
      "-1,4,fc.weight,unreduced,1,0.5\r\n1,4,1:fc.weight,reduced,2,1.5\r\n";
  ASSERT_TRUE(WriteFileAtomically(root.Path("rank_0/weight_grad_step4-5.csv"), rows, false));
  ASSERT_TRUE(WriteFileAtomically(root.Path("rank_0_2/module_step0-0.csv"), "", false));
  ASSERT_TRUE(WriteFileAtomically(root.Path("rank_1/graph_0-1.csv"), "", false));  // no monitor's
  EXPECT_EQ(NamesOf(root.path()), (Lines{"0 rank_0_2", "0 rank_0"}));
  const auto files = ListMonitorFiles(root.Path("rank_0"));
  ASSERT_TRUE(files && files->size() == 2);
  Lines found;
  for (const MonitorFile& file : *files) {
    EXPECT_EQ(file.first_step, 4);
    ASSERT_TRUE(VisitMonitorFile(file.path, file.kind, [&](auto, MonitorRow& row) -> Status {
      found.push_back(fmt::format("{} {} {} {} {}", file.kind, row.name, row.vpp_stage,
                                  row.micro_step, *row.values.at(0)));
      return {};
    }));
  }
  EXPECT_EQ(found, (Lines{"grad_reduced fc.weight 1 0 1.5", "grad_unreduced fc.weight 0 0 0.5"}));
}

TEST(MonitorFiles, WhatCannotBeReadIsCountedAndTold) {
  const testing::TestDirectory root;
  Make(root, "rank_0/param_step0-0.csv");
  for (const char* name : {"rank_1", "Dec03_21-34-40-rank2-3f9c1a2b", "other"}) {
    std::filesystem::create_symlink("nowhere", root.Path(name));
  }
  MonitorDamage damage;
  EXPECT_EQ(damage.text(), "");
  damage.TakeBrokenLinks(root.path());
  EXPECT_EQ(damage.places, 2U);
  MonitorDirectory directory;
  directory.path = root.Path("rank_0");
  const auto files = damage.FilesOf(directory);
  ASSERT_EQ(files.size(), 2U);  // param_origin and param_updated
  for (const MonitorFile& file : files) {  // one place, told once
    damage.Take(file.path, VisitMonitorFile(file.path, file.kind,
                                            [](auto, MonitorRow&) { return Status(); }));
  }
  directory.path = root.Path("gone");
  EXPECT_TRUE(damage.FilesOf(directory).empty());
  EXPECT_EQ(damage.sentences.size(), 4U);
  EXPECT_EQ(damage.text(), " in what could be read (4 files or directories damaged or missing)");
}

TEST(MonitorRows, MindSporeHasInputAndOutputInOneRow) {
  const auto found = ReadText(
      "vpp_stage,module_name,step,input.norm,input.max,output.norm,output.max\n"
      "0,fc1_0,2,1,2,3,4\n0,fc1_1,2,5,6,7,8\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->statistics, (Lines{"norm", "max"}));
  EXPECT_EQ(found->rows, (Lines{"fc1.input 0 2 0 1 2", "fc1.output 0 2 0 3 4",
                                "fc1.input 0 2 1 5 6", "fc1.output 0 2 1 7 8"}));
  const auto grads = ReadText("module_name,step,input_grad.norm,output_grad.norm\nfc_0,1,2,3\n");
  ASSERT_TRUE(grads);
  EXPECT_EQ(grads->rows, (Lines{"fc.input 0 1 0 2", "fc.output 0 1 0 3"}));
  const auto weights = ReadText("param_name,step,norm\nfc.weight,1,2\n");
  ASSERT_TRUE(weights);
  EXPECT_EQ(weights->rows, Lines{"fc.weight 0 1 0 2"});
}

TEST(MonitorRows, CommunicationUnderTheHeaderOfOthers) {
  const auto found = ReadText(
      "vpp_stage,name,step,norm,min,max\n"
      "all_reduce,2.5,0,-0.5,1.0,2.75,-0.25,1.5\n"
      "0,fc.weight,0,1,1,1\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rows, (Lines{"all_reduce.0 0 0 0 2.5 -0.5 1",
                                "all_reduce.1 0 0 0 2.75 -0.25 1.5", "fc.weight 0 0 0 1 1 1"}));
  EXPECT_EQ(found->facts.left_out, 0U);
}

TEST(MonitorRows, OtherFilesAreErrors) {
  for (const char* text : {"a,b,c\n1,2,3\n", "name,norm\nw,1\n", "step,norm\n1,1\n",
                           "module_name,step,input.norm,output.max,output.norm\nx_0,1,1,1,1\n",
                           "vpp_stage,name,step\n\"0,w"}) {
    const auto found = ReadText(text);
    if (found) {
      EXPECT_TRUE(found->facts.is_cut) << text;
      EXPECT_TRUE(found->rows.empty()) << text;
      continue;
    }
    EXPECT_EQ(found.error().code(), ErrorCode::kCorrupt) << text;
    EXPECT_NE(found.error().message().find("actv_0-0.csv"), std::string::npos);
  }
  EXPECT_TRUE(ReadText("")->facts.is_empty);
}

}  // namespace
}  // namespace plumbline::load
