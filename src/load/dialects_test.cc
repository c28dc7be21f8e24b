// Every row of the table of dialects and of the tolerance of readers, through Run::Open
// (docs/formats/differences.md). What the text forms alone decide is tested beside the formats.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/file/test_directory.h"
#include "load/detect.h"
#include "plumbline/run.h"

namespace plumbline {
namespace {

constexpr const char* kTensor =
    R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 0.0,)"
    R"( "Mean": 0.5, "Norm": 1.0, "requires_grad": false})";

class Dialects : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root_.Path(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  // dump.json with these entries ("name": value, ...).
  void WriteData(const std::string& entries, const std::string& header = {}) {
    Write("dump.json", "{" + header + "\"data\": {" + entries + "}}");
  }
  Result<plumbline::Run> Open(bool salvage = false) {
    return plumbline::Run::Open(root_.path(), {.salvage = salvage});
  }
  // The first output of the first entry.
  static const TensorRecord* FirstOutput(const plumbline::Run& run) {
    const auto* list = run.calls().at(0).Find("output")->As<ValueList>();
    return list != nullptr && !list->empty() ? list->front().As<TensorRecord>() : nullptr;
  }
  static std::string Entry(const std::string& name, const std::string& output) {
    return "\"" + name + R"(": {"input_args": [], "input_kwargs": {}, "output": )" + output + "}";
  }
  static std::string Tensor(const std::string& extra) {
    return std::string(kTensor, std::string(kTensor).size() - 1) + ", " + extra + "}";
  }

  plumbline::testing::TestDirectory root_;
};

TEST_F(Dialects, RecomputeIsThereOrNot) {
  WriteData(R"("Torch.a.0.forward": {"input_args": [], "is_recompute": true, "output": []},)" +
            Entry("Torch.b.0.forward", "[]"));
  const auto run = Open();
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_NE(run->calls()[0].Find("is_recompute"), nullptr);
  EXPECT_EQ(run->calls()[1].Find("is_recompute"), nullptr);
}

TEST_F(Dialects, BothFormsOfParameterGradients) {
  WriteData(R"("Module.a.A.parameters_grad": {"w": [null]},)"
            R"("Module.a.A.parameters_grad.2": {"w": [)" +
            std::string(kTensor) + "]}");
  const auto run = Open();
  ASSERT_TRUE(run) << run.error().message();
  for (const Call& call : run->calls()) EXPECT_EQ(call.kind, CallKind::kParametersGrad);
}

TEST_F(Dialects, DigestsInAnyPlaceAndOfBothKinds) {
  WriteData(
      Entry("Torch.a.0.forward", "[" + Tensor(R"("md5": "0badc0de", "data_name": "a.pt")") + "]") +
      "," +
      Entry("Torch.b.0.forward",
            R"([{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2],)"
            R"( "requires_grad": false, "md5": "0x0123456789abcdef"}])"));
  const auto run = Open();
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_EQ(FirstOutput(*run)->digest, "0badc0de");
  EXPECT_EQ(FirstOutput(*run)->data_name, "a.pt");
  EXPECT_EQ(run->calls()[1].Find("output")->As<ValueList>()->front().As<TensorRecord>()->digest,
            "0x0123456789abcdef");
}

TEST_F(Dialects, IntegerStatisticsOfTheNewestRelease) {
  WriteData(Entry("Torch.a.0.forward",
                  R"([{"type": "torch.Tensor", "dtype": "torch.int64", "shape": [2], "Max": 7,)"
                  R"( "Min": -1, "Mean": null, "Norm": null, "requires_grad": false}])"));
  const auto run = Open();
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_EQ(std::get<int64_t>(FirstOutput(*run)->max), 7);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(FirstOutput(*run)->mean));
}

TEST_F(Dialects, DebugNamesAndPlaces) {
  const std::string header = R"("task": "tensor", "level": "debug", )";
  Write("debug.json", "{" + header + "\"data\": {\"x.0\": " + kTensor + ", \"x.0.debug\": [" +
                          kTensor + "], \"x_grad.0\": null}}");
  Write("stack.json", "damaged: of another recording, and not read");
  const auto run = Open();
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_TRUE(run->header().holds_saves());
  ASSERT_EQ(run->calls().size(), 3u);
  EXPECT_EQ(run->calls()[1].name, "x.0.debug");
  EXPECT_TRUE(run->loss().side_files.empty());
}

TEST_F(Dialects, ConstructOfMicroSteps) {
  WriteData(Entry("Torch.a.0.forward", "[]"));
  Write("construct.json",
        R"({"Torch.a.0.forward": ["Module.m.M.forward.0", 1], "Module.m.M.forward.0": null,)"
        R"( "megatron_micro_step_number": 1})");
  const auto run = Open();
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_EQ(run->ParentOf("Torch.a.0.forward"), "Module.m.M.forward.0");
  EXPECT_EQ(run->ParentOf("megatron_micro_step_number"), "");
  Write("construct.json", R"({"Torch.a.0.forward": ["Module.m.M.forward.0", 1, 2]})");
  const auto damaged = Open();
  ASSERT_TRUE(damaged);
  ASSERT_EQ(damaged->loss().side_files.size(), 1u);
  EXPECT_NE(damaged->loss().side_files[0].find("construct.json"), std::string::npos);
}

TEST_F(Dialects, UnknownKeysAreIgnored) {
  WriteData(R"("Torch.a.0.forward": {"output": [)" + Tensor(R"("later": {"x": [1]})") +
                R"(], "input_args": [], "more": 1})",
            R"("schema": {"version": [3]}, )");
  const auto run = Open();
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_EQ(std::get<double>(FirstOutput(*run)->max), 1.0);
}

TEST_F(Dialects, TaskIsInferred) {
  WriteData(Entry("Torch.a.0.forward", "[" + Tensor(R"("data_name": "a.pt")") + "]"));
  EXPECT_EQ(Open()->header().task, "tensor");
  WriteData(Entry("Torch.a.0.forward", std::string("[") + kTensor + "]"));
  EXPECT_EQ(Open()->header().task, "statistics");
}

TEST_F(Dialects, TextsTokensAndHugeNumbersAreStatistics) {
  for (const std::string text :
       {"NaN", "nan", "\"nan\"", "\"nan\\t\"", "Infinity", "-Infinity", "inf", "-inf", "\"inf\"",
        "\"-inf\"", "1e400", "-1e400", "\"1e400\""}) {
    std::string tensor = kTensor;
    tensor.replace(tensor.find("1.0"), 3, text);
    WriteData(Entry("Torch.a.0.forward", "[" + tensor + "]"));
    const auto run = Open();
    ASSERT_TRUE(run) << text << run.error().message();
    EXPECT_FALSE(std::isfinite(std::get<double>(FirstOutput(*run)->max))) << text;
  }
  std::string tensor = kTensor;
  tensor.replace(tensor.find("1.0"), 3, "\"3.5\"");
  WriteData(Entry("Torch.a.0.forward", "[" + tensor + "]"));
  EXPECT_EQ(std::get<double>(FirstOutput(*Open())->max), 3.5);
}

TEST_F(Dialects, ResultMayBeAnObjectAndElementsNull) {
  WriteData(Entry("Torch.a.0.forward", R"({"0": )" + std::string(kTensor) + R"(, "1": null})"));
  const auto run = Open();
  ASSERT_TRUE(run) << run.error().message();
  const Value* output = run->calls()[0].Find("output");
  ASSERT_NE(output->Find("0"), nullptr);
  EXPECT_NE(output->Find("0")->As<TensorRecord>(), nullptr);
  EXPECT_TRUE(output->Find("1")->is_null());
}

TEST_F(Dialects, LastOfRepeatedNamesWinsAndIsCounted) {
  std::string later = kTensor;
  later.replace(later.find("1.0"), 3, "9.0");
  WriteData(Entry("Torch.a.0.forward", std::string("[") + kTensor + "]") + "," +
            Entry("Torch.a.0.forward", "[" + later + "]"));
  const auto run = Open();
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_EQ(run->loss().duplicate_names, 1u);
  EXPECT_EQ(std::get<double>(FirstOutput(*run)->max), 9.0);
}

TEST_F(Dialects, ByteOrderMarkAndPlainUtf8) {
  Write("dump.json", "\xEF\xBB\xBF{\"data\": {\"Torch.\xC3\xBC.0.forward\": {\"output\": []}}}");
  const auto run = Open();
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_EQ(run->calls()[0].name, "Torch.\xC3\xBC.0.forward");
}

TEST_F(Dialects, LinksAreRefused) {
  Write("elsewhere/dump.json", R"({"data": {}})");
  std::filesystem::create_symlink(root_.Path("elsewhere/dump.json"), root_.Path("dump.json"));
  const auto run = Open();
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(run.error().message().find("symbolic link"), std::string::npos);
}

TEST_F(Dialects, MovedDirectoryFindsItsTensors) {
  WriteData(Entry("Torch.a.0.forward", "[]"),
            R"("dump_data_dir": "/of/another/machine/dump_tensor_data", )");
  std::filesystem::create_directories(root_.Path("dump_tensor_data"));
  EXPECT_EQ(Open()->TensorPath("x.pt"), root_.Path("dump_tensor_data/x.pt"));
}

TEST_F(Dialects, RanksOfEveryNamingInOneStep) {
  for (const char* name : {"rank", "rank3", "proc123"}) {
    Write(std::string("step0/") + name + "/dump.json", R"({"data": {}})");
  }
  const auto found = load::ListDumpJson(root_.path());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), 3u);
}

// Cut anywhere, exactly the entries that were complete before the cut are kept.
TEST_F(Dialects, HundredTruncationsKeepTheCompleteEntries) {
  std::string text = R"({"task": "statistics", "level": "L1", "data": {)";
  const size_t data_begin = text.size();
  std::vector<size_t> ends;
  for (int i = 0; i < 40; ++i) {
    if (i > 0) text += ",\n";
    text += Entry("Torch.a." + std::to_string(i) + ".forward",
                  std::string("[") + kTensor + ", null, [" + kTensor + "]]");
    ends.push_back(text.size());
  }
  text += "}}";
  std::mt19937 random(20240607);  // NOLINT: repeatable on purpose
  std::uniform_int_distribution<size_t> cuts(data_begin, text.size() - 1);
  for (int i = 0; i < 100; ++i) {
    const size_t cut = cuts(random);
    Write("dump.json", text.substr(0, cut));
    EXPECT_EQ(Open().error().code(), ErrorCode::kCorrupt);
    const auto run = Open(true);
    ASSERT_TRUE(run) << cut << run.error().message();
    const auto complete = std::upper_bound(ends.begin(), ends.end(), cut) - ends.begin();
    ASSERT_EQ(run->calls().size(), static_cast<size_t>(complete)) << cut;
    EXPECT_TRUE(run->loss().truncated);
    EXPECT_EQ(run->loss().byte_offset,
              complete == 0 ? data_begin : ends[static_cast<size_t>(complete) - 1]);
  }
}

}  // namespace
}  // namespace plumbline
