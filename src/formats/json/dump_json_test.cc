#include "formats/json/dump_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "base/file/file.h"

namespace plumbline::dump_json {
namespace {

std::string DumpFixture(const std::string& name) {
  return ReadFile(PLUMBLINE_TEST_DATA "/" + name).value();
}

std::string TextOfDump(const DumpFile& file) {
  std::string out;
  DumpWriter writer(out);
  writer.Begin(file.header);
  for (const Call& call : file.calls) writer.Add(call);
  writer.End();
  return out;
}

// Files of the real 1.2.2, read and written again.
class Upstream122 : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] std::string File(const std::string& name) const {
    return DumpFixture("upstream_1.2.2/" + GetParam() + "/" + name);
  }
};

TEST_P(Upstream122, DumpIsWrittenByteForByte) {
  const std::string text = File("dump.json");
  const auto file = ParseDump(text, false);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_FALSE(file->calls.empty());
  EXPECT_EQ(TextOfDump(*file), text);
}

TEST_P(Upstream122, StackIsWrittenByteForByte) {
  const std::string text = File("stack.json");
  EXPECT_EQ(FormatStack(ParseStack(text).value()), text);
}

TEST_P(Upstream122, ConstructIsWrittenByteForByte) {
  const std::string text = File("construct.json");
  EXPECT_EQ(FormatConstruct(ParseCallTree(text).value()), text);
}

INSTANTIATE_TEST_SUITE_P(Cases, Upstream122,
                         ::testing::Values("mix_statistics", "mix_md5", "l0_statistics",
                                           "l1_tensor"),
                         [](const auto& tested) { return tested.param; });

TEST(DumpJson, NoEntriesIsTheSkeletonOfUpstream) {
  EXPECT_EQ(TextOfDump({.header = {"structure", "L1", "pytorch", ""}, .calls = {}, .loss = {}}),
            "{\n \"task\": \"structure\",\n \"level\": \"L1\",\n \"framework\": \"pytorch\",\n"
            " \"dump_data_dir\": null,\n \"data\": {}\n}");
  EXPECT_EQ(FormatStack({}), "{}");
  EXPECT_EQ(FormatConstruct({}), "{}");
}

TEST(DumpJson, EveryKindOfValueHasPythonsText) {
  Call call;
  call.name = "Torch.f.0.forward";
  call.members.emplace_back(
      "input_args", ValueList{Value(), true, int64_t{-3}, 1e16, BigInt{"-123456789012345678901"},
                              "\xc3\xa9", ValueList{}, ValueMap{}, std::nan("")});
  EXPECT_EQ(
      TextOfDump({.header = {"statistics", "L1", "pytorch", "./d"}, .calls = {call}, .loss = {}}),
      "{\n \"task\": \"statistics\",\n \"level\": \"L1\",\n \"framework\": \"pytorch\",\n"
      " \"dump_data_dir\": \"./d\",\n \"data\": {\n  \"Torch.f.0.forward\": {\n"
      "   \"input_args\": [\n    null,\n    true,\n    -3,\n    1e+16,\n"
      "    -123456789012345678901,\n    \"\\u00e9\",\n    [],\n    {},\n    NaN\n   ]\n"
      "  }\n }\n}");
}

TEST(DumpJson, TensorKeysFollowTheOrderOfUpstreamThenOurs) {
  TensorRecord tensor;
  tensor.type = "torch.Tensor";
  tensor.dtype_text = "torch.float32";
  tensor.shape = {2, 0};
  tensor.max = INFINITY;
  tensor.min = false;
  tensor.mean = int64_t{7};
  tensor.requires_grad = true;
  tensor.max_finite = 2.0;
  tensor.min_finite = -INFINITY;
  tensor.digest = "00000000";
  tensor.data_name = "x.pt";
  tensor.nan_count = 1;
  tensor.inf_count = 2;
  tensor.zero_count = 3;
  Call call;
  call.name = "c";
  call.members.emplace_back("", tensor);
  const std::string text =
      TextOfDump({.header = {"tensor", "debug", "pytorch", ""}, .calls = {call}, .loss = {}});
  EXPECT_NE(text.find("\"c\": {\n   \"type\": \"torch.Tensor\",\n   \"dtype\": \"torch.float32\",\n"
                      "   \"shape\": [\n    2,\n    0\n   ],\n   \"Max\": Infinity,\n"
                      "   \"Min\": false,\n   \"Mean\": 7,\n   \"Norm\": null,\n"
                      "   \"requires_grad\": true,\n   \"Max_except_inf_nan\": 2.0,\n"
                      "   \"Min_except_inf_nan\": -Infinity,\n   \"md5\": \"00000000\",\n"
                      "   \"data_name\": \"x.pt\",\n   \"nan_count\": 1,\n   \"inf_count\": 2,\n"
                      "   \"zero_count\": 3\n  }\n }\n}"),
            std::string::npos)
      << text;
  // And it comes back: a bare tensor entry of level debug.
  EXPECT_EQ(TextOfDump(ParseDump(text, false).value()), text);
}

TEST(DumpJson, ValuesNestedBeyondTheReadyBlanksAreIndented) {
  Value deep = int64_t{1};
  for (int i = 0; i < 100; ++i) deep = ValueList{deep};
  Call call;
  call.name = "c";
  call.members.emplace_back("output", deep);
  const std::string text =
      TextOfDump({.header = {"statistics", "L1", "pytorch", ""}, .calls = {call}, .loss = {}});
  EXPECT_NE(text.find("\n" + std::string(103, ' ') + "1\n" + std::string(102, ' ') + "]"),
            std::string::npos);
  EXPECT_EQ(TextOfDump(ParseDump(text, false).value()), text);
}

}  // namespace
}  // namespace plumbline::dump_json
