#include "precheck/error_data.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/text/json.h"
#include "formats/pytorch/torch_pt.h"
#include "precheck/parts/part_data.h"

namespace plumbline::precheck::error_data_test {
namespace {

CallValue PlaceOf(DType dtype, Shape shape, size_t offset,
                  std::optional<DType> raised = std::nullopt) {
  return CallValue(TensorPlace{dtype, std::move(shape), offset, false, raised, {}});
}

CallValue ListOf(std::vector<CallValue> items) {
  return CallValue(CallSequence{Sequence::kList, std::move(items)});
}

// A call with nested arguments, keyword tensors and one gradient; memory of 4 x 64 bytes.
struct Saved {
  std::vector<std::byte> inputs = std::vector<std::byte>(256), results = inputs;
  CallToRun to_run;
  SideResult bench{.forward = CallValue(), .backward = std::nullopt}, device = bench;
  CallOutcome outcome;

  Saved() {
    const float values[] = {1.5F, -2.0F};
    std::memcpy(inputs.data(), values, sizeof(values));
    const uint16_t halves[] = {0x3c00, 0xc000};  // 1, -2
    std::memcpy(inputs.data() + 64, halves, sizeof(halves));
    std::memcpy(results.data(), values, sizeof(values));
    PreparedCall& call = to_run.call;
    call.name = "Torch.cat.3";
    call.args = {ListOf({CallValue(int64_t{1}), PlaceOf(DType::kFloat32, {2}, 0)}),
                 CallValue(CallSequence{Sequence::kSlice, {{}, {}, {}}}),
                 PlaceOf(DType::kFloat16, {2}, 64)};
    call.kwargs = {{"weight", PlaceOf(DType::kFloat32, {1, 2}, 0)}, {"dim", CallValue(int64_t{0})}};
    call.grads = std::vector<CallValue>{PlaceOf(DType::kFloat16, {2}, 64, DType::kFloat32),
                                        PlaceOf(DType::kFloat32, {2}, 0, DType::kFloat64)};
    bench.forward = ListOf({CallValue(), PlaceOf(DType::kFloat32, {2}, 0)});
    device.forward = bench.forward;
    device.backward = SideValue(ListOf({PlaceOf(DType::kFloat32, {2}, 0)}));
    outcome.name = call.name;
    outcome.forward.status = CheckStatus::kError;
  }

  [[nodiscard]] RanCall Ran() const {
    return {0,      &to_run, std::span(const_cast<std::byte*>(inputs.data()), inputs.size()),
            &bench, results, &device,
            results};
  }
};

std::vector<double> Elements(const std::string& path, DType dtype) {
  const auto file = torch_pt::PtFile::Open(path);
  EXPECT_TRUE(file) << path;
  if (!file || file->view().dtype != dtype) return {};
  std::vector<double> values;
  for (int64_t i = 0; i < file->view().element_count(); ++i) {
    double wide = 0;
    float narrow = 0;
    if (dtype == DType::kFloat64) {
      std::memcpy(&wide, file->view().data + i * 8, 8);
    } else {
      std::memcpy(&narrow, file->view().data + i * 4, 4);
      wide = narrow;
    }
    values.push_back(wide);
  }
  return values;
}

TEST(ErrorData, EveryTensorHasAFileAndNoneIsOverwritten) {
  const testing::TestDirectory dir;
  const Saved saved;
  const std::string directory = dir.Path("ut_error_data1");
  ASSERT_TRUE(SaveErrorData(directory, 7, saved.Ran(), saved.outcome));
  const std::vector<std::string> expected = {"Torch.cat.3.backward.input.0.pt",
                                             "Torch.cat.3.backward.input.1.pt",
                                             "Torch.cat.3.backward.output.device.0.pt",
                                             "Torch.cat.3.forward.input.1.pt",
                                             "Torch.cat.3.forward.input.3.pt",
                                             "Torch.cat.3.forward.input.weight.0.pt",
                                             "Torch.cat.3.forward.output.bench.1.pt",
                                             "Torch.cat.3.forward.output.device.1.pt",
                                             "Torch.cat.3.json"};
  EXPECT_EQ(ListDirectory(directory).value(), expected);
  const std::vector<double> values = {1.5, -2}, raised = {1, -2};
  EXPECT_EQ(Elements(JoinPath(directory, expected[0]), DType::kFloat32), raised);
  EXPECT_EQ(Elements(JoinPath(directory, expected[1]), DType::kFloat64), values);
  EXPECT_EQ(Elements(JoinPath(directory, expected[3]), DType::kFloat32), values);
  EXPECT_EQ(Elements(JoinPath(directory, expected[5]), DType::kFloat32), values);
  const auto json = json::Value::Parse(*ReadFile(JoinPath(directory, expected[8])));
  ASSERT_TRUE(json);
  EXPECT_EQ(json->Find("seed")->AsInteger(), 7);
  EXPECT_EQ(*json->Find("forward")->Find("status")->AsText(), "error");
}

TEST(ErrorData, ArgumentsThatWereChangedAreKept) {
  const testing::TestDirectory dir;
  Saved saved;
  saved.bench.arguments.emplace().changed = {{"0", CallValue()},
                                             {"out", PlaceOf(DType::kFloat32, {2}, 0)}};
  saved.device.arguments.emplace().kept = {{"out", PlaceOf(DType::kFloat32, {2}, 0)}};
  const std::string directory = dir.Path("data");
  ASSERT_TRUE(SaveErrorData(directory, 7, saved.Ran(), saved.outcome));
  std::vector<std::string> changed = ListDirectory(directory).value();
  std::erase_if(
      changed, [](const std::string& name) { return name.find(".changed.") == std::string::npos; });
  EXPECT_EQ(changed, std::vector<std::string>{"Torch.cat.3.forward.changed.bench.out.0.pt"});
}

TEST(ErrorData, AKeywordLeadsNowhereElse) {
  const testing::TestDirectory dir;
  Saved saved;
  saved.to_run.call.kwargs = {{"../../weight", PlaceOf(DType::kFloat32, {2}, 0)}};
  const std::string directory = dir.Path("data");
  ASSERT_TRUE(SaveErrorData(directory, 7, saved.Ran(), saved.outcome));
  EXPECT_EQ(ListDirectory(dir.Path("")).value(), std::vector<std::string>{"data"});
}

TEST(ErrorData, OfPartsComesTogether) {
  const testing::TestDirectory dir;
  const std::string stem = dir.Path("ut_error_data"), together = dir.Path("ut_error_data2026");
  const auto part = [&](uint64_t index, const std::string& output = "out") {
    return PartDirectory(stem, dir.Path(output), {index, 2}).value();
  };
  EXPECT_NE(part(0), part(0, "other"));
  for (const uint64_t index : {0U, 1U}) {
    ASSERT_TRUE(MakeDirectories(part(index)));
    const std::string name = "Torch.add." + std::to_string(index) + ".json";
    ASSERT_TRUE(WriteFileAtomically(JoinPath(part(index), name), "x", false));
    ASSERT_TRUE(WriteFileAtomically(JoinPath(part(index), ".a.pt.17-0.tmp"), "cut", false));
    ASSERT_TRUE(TakePartFiles(part(index), together));
  }
  EXPECT_EQ(ListDirectory(together).value(),
            (std::vector<std::string>{"Torch.add.0.json", "Torch.add.1.json"}));
  EXPECT_EQ(ListDirectory(dir.Path("")).value(), std::vector<std::string>{"ut_error_data2026"});
  EXPECT_EQ(TakePartFiles(part(0), together).error().code(), ErrorCode::kNotFound);
}

TEST(ErrorData, WhatIsWorthKeeping) {
  CallOutcome outcome;
  outcome.forward.status = CheckStatus::kPass;
  EXPECT_FALSE(IsWorthKeeping(outcome));
  outcome.backward.status = CheckStatus::kSkip;
  EXPECT_FALSE(IsWorthKeeping(outcome));
  outcome.backward.status = CheckStatus::kWarning;
  EXPECT_TRUE(IsWorthKeeping(outcome));
  outcome.backward.status = CheckStatus::kPass;
  outcome.forward.status = CheckStatus::kSkip;
  EXPECT_TRUE(IsWorthKeeping(outcome));
}

}  // namespace
}  // namespace plumbline::precheck::error_data_test
