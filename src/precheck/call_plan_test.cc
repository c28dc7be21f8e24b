#include "precheck/call_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/file/test_directory.h"
#include "formats/pytorch/tensor_file.h"
#include "precheck/api_inventory.h"
#include "precheck/input_data.h"

namespace plumbline::precheck::call_plan_test {
namespace {

constexpr const char* kTensor =
    R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 2], "Max": 1.0, "Min": 0.0,)"
    R"( "Mean": 0.5, "Norm": 1.0, "requires_grad": true})";

std::string Entry(const std::string& name, const std::string& args = kTensor) {
  return fmt::format(R"("{}": {{"input_args": [{}], "input_kwargs": {{}}, "output": []}})", name,
                     args);
}

std::string Dump(const std::vector<std::string>& entries, const std::string& level = "L1") {
  return fmt::format(R"({{"task": "statistics", "level": "{}", "framework": "pytorch",)"
                     R"( "dump_data_dir": null, "data": {{{}}}}})",
                     level, fmt::join(entries, ", "));
}

class CallPlanTest : public ::testing::Test {
 protected:
  Result<CallPlan> Open(const std::string& text, const PlanOptions& options = {}) {
    std::ofstream(directory_.Path("dump.json")) << text;
    return CallPlan::Open(directory_.Path("dump.json"), options);
  }
  // The message of the error that opening `text` gives.
  std::string ErrorOf(const std::string& text, ErrorCode code, const PlanOptions& options = {}) {
    const auto plan = Open(text, options);
    if (plan) return "no error";
    EXPECT_EQ(plan.error().code(), code) << plan.error().message();
    return plan.error().message();
  }

  plumbline::testing::TestDirectory directory_;
};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(CallPlanTest, CallsOfApisAreListedInFileOrder) {
  const auto plan =
      Open(Dump({Entry("Torch.add.0.forward"), Entry("Module.a.A.forward.0"),
                 Entry("Cell.b.B.backward.0"), Entry("Optimizer.step.0.forward"),
                 Entry("Module.a.A.parameters_grad"), Entry("Torch.linalg.inv.3.forward"),
                 R"("Torch.add.0.backward": {"input": [], "output": []})",
                 R"("Torch.mul.0.backward": {"input": [], "output": []})"}));
  ASSERT_TRUE(plan) << plan.error().message();
  ASSERT_EQ(plan->size(), 2u);
  EXPECT_EQ(plan->call(0).name, "Torch.add.0");
  EXPECT_EQ(plan->call(0).api(), "add");
  EXPECT_FALSE(plan->call(0).backward.empty());
  EXPECT_EQ(plan->call(1).type(), "Torch");
  EXPECT_EQ(plan->call(1).api(), "linalg.inv");
  EXPECT_TRUE(plan->call(1).backward.empty());
  EXPECT_EQ(plan->framework(), "pytorch");
  EXPECT_FALSE(plan->uses_recorded_data());
  ASSERT_EQ(plan->warnings().size(), 1U);
  EXPECT_EQ(plan->warnings()[0],
            "1 backward without a forward in the recording is not checked, such as "
            "Torch.mul.0.backward");
}

TEST_F(CallPlanTest, NamesDecideWhatIsNotRun) {
  const std::pair<const char*, const char*> cases[] = {
      {"Torch.add.0", ""},
      {"Tensor.argwhere.0", ""},
      {"NPU.npu_rms_norm.0", ""},
      {"Aten.add.0", ""},
      {"Functional.dropout.0", ""},
      {"Distributed.all_reduce.0", "unsupported-type: calls of type Distributed"},
      {"MindSpeed.gmm.npu_gmm.0", "unsupported-type: calls of type MindSpeed"},
      {"VF.lstm.0", ""},
      {"Jit.add.0", "unsupported-type: calls of type Jit are not supported"},
      {"Torch.a.b.c.0", "unsupported-type: Torch.a.b.c.0 is no name"},
      {"Torch.0", "unsupported-type: Torch.0 is no name"},
      {"Torch.no_such_api.0", "not-in-inventory: no_such_api"},
      {"Torch.randn.0", "random: randn returns"},
      {"Tensor.uniform_.0", "random: uniform_"},
      {"Torch.empty_like.0", "filtered: empty_like"},
  };
  std::vector<std::string> entries;
  for (const auto& [name, skip] : cases) entries.push_back(Entry(name + std::string(".forward")));
  const auto plan = Open(Dump(entries));
  ASSERT_TRUE(plan) << plan.error().message();
  ASSERT_EQ(plan->size(), std::size(cases));
  for (size_t i = 0; i < plan->size(); ++i) {
    const std::string text = plan->call(i).skip ? plan->call(i).skip->Text() : "";
    EXPECT_EQ(text.substr(0, std::string(cases[i].second).size()), cases[i].second);
    EXPECT_EQ(text.empty(), cases[i].second[0] == '\0') << text;
    if (text.empty()) continue;
    EXPECT_EQ(plan->Prepare(i).error().Text(), text);
  }
}

TEST_F(CallPlanTest, TheBlackListWinsAndUnknownNamesAreListed) {
  const std::string dump = Dump({Entry("Torch.add.0.forward"), Entry("Torch.mul.0.forward"),
                                 Entry("Torch.matmul.0.forward")});
  const auto plan = Open(dump, {.white_list = {"add", "mul"}, .black_list = {"mul"}});
  ASSERT_TRUE(plan) << plan.error().message();
  ASSERT_EQ(plan->size(), 3u);
  EXPECT_FALSE(plan->call(0).skip);
  EXPECT_EQ(plan->call(1).skip->Text(), "filtered: mul is in black_list");
  EXPECT_EQ(plan->call(2).skip->Text(), "filtered: matmul is not in white_list");
  const std::string error =
      ErrorOf(dump, ErrorCode::kInvalidArgument, {.white_list = {"add", "nix", "nada"}});
  EXPECT_TRUE(Contains(error, "white_list: nix, nada are no APIs")) << error;
  // Communication is recorded, and cannot be checked again.
  EXPECT_TRUE(Contains(ErrorOf(dump, ErrorCode::kInvalidArgument, {.black_list = {"all_reduce"}}),
                       "black_list: all_reduce is no API"));
}

TEST_F(CallPlanTest, WhatIsNoRecordingOfCallsIsOneClearError) {
  const std::string bad = ErrorOf(Dump({Entry("Foo.bar.0.sideways")}), ErrorCode::kCorrupt);
  EXPECT_TRUE(Contains(bad, "dump.json") && Contains(bad, "Foo.bar.0.sideways")) << bad;
  const std::string l0 =
      ErrorOf(Dump({Entry("Module.a.A.forward.0")}, "L0"), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(Contains(l0, "level L0") && Contains(l0, "L1 or mix")) << l0;
  EXPECT_TRUE(Contains(ErrorOf("not json", ErrorCode::kCorrupt), "dump.json"));
  EXPECT_TRUE(Contains(ErrorOf("", ErrorCode::kCorrupt), "dump.json"));
  EXPECT_TRUE(Contains(ErrorOf(R"({"task": "statistics"})", ErrorCode::kCorrupt), "data"));
  EXPECT_TRUE(Contains(ErrorOf(Dump({Entry("x.0.debug")}, "debug"), ErrorCode::kInvalidArgument),
                       "level debug"));
  const std::string no_inputs =
      ErrorOf(Dump({R"("Torch.add.0.forward": {})"}), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(Contains(no_inputs, "without their arguments")) << no_inputs;
  const auto missing = CallPlan::Open(directory_.Path("absent.json"), {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
}

TEST_F(CallPlanTest, EveryRefusalOfAFileSaysWhatToDo) {
  for (const char* text :
       {"", "not json", "[]", R"({"task": "statistics"})", R"({"data": []})", R"({"data": {"a)",
        R"({"task": 3, "data": {}})", R"({"data": {}, "data": {}})"}) {
    const auto plan = Open(text);
    ASSERT_FALSE(plan) << text;
    const std::string& message = plan.error().message();
    const size_t advice = message.rfind(". ");
    ASSERT_NE(advice, std::string::npos) << message;
    EXPECT_TRUE(Contains(message.substr(advice), "record") ||
                Contains(message.substr(advice), "Record"))
        << message;
  }
}

// An entry with a tensor of this shape.
std::string OfShape(const std::string& name, const std::string& shape) {
  return Entry(name, fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.float32",)"
                                 R"( "shape": {}, "Max": 1, "Min": 0, "Mean": 0, "Norm": 1}})",
                                 shape));
}

// One entry that no recorder writes costs its call alone.
TEST_F(CallPlanTest, ADamagedEntryIsASkipOfItsCall) {
  const auto plan =
      Open(Dump({Entry("Torch.add.0.forward"), OfShape("Torch.add.1.forward", R"("[2, 2]")"),
                 OfShape("Torch.add.2.forward", "[-1]"), R"("Torch.add.3.forward": 7)",
                 R"("Torch.add.4.forward": [])",
                 Entry("Torch.add.5.forward",
                       R"({"type": "torch.Tensor", "shape": [2], "Max": 1, "Min": 0})"),
                 R"("Torch.add.6.forward": {"input_args": 5, "input_kwargs": {}, "output": []})"}));
  ASSERT_TRUE(plan) << plan.error().message();
  const char* const causes[] = {
      "",
      "Torch.add.1.forward: shape has the wrong type (expected a list, got a text)",
      "Torch.add.2.forward: shape holds a number that is no size (expected whole numbers from 0)",
      "Torch.add.3.forward: the entry is no object",
      "Torch.add.4.forward: the entry is no object",
      "input_args.0: ",
      "input_args: a number (expected a list)"};
  ASSERT_EQ(plan->size(), std::size(causes));
  for (size_t i = 0; i < std::size(causes); ++i) {
    const auto call = plan->Prepare(i);
    EXPECT_EQ(plan->call(i).name, fmt::format("Torch.add.{}", i));
    EXPECT_EQ(call.has_value(), i == 0) << i;
    if (call) continue;
    EXPECT_EQ(call.error().cause, SkipCause::kBadArgument) << call.error().Text();
    EXPECT_EQ(call.error().detail.find(causes[i]), 0U) << call.error().Text();
    if (!plan->call(i).skip) continue;
    EXPECT_TRUE(call.error().detail.ends_with(". Record that call again, or correct its entry"));
  }
}

TEST_F(CallPlanTest, ADamagedEntryIsLikeNoOtherAndMattersOnlyWhereItIsRead) {
  const auto plan = Open(Dump({Entry("Torch.add.0.forward"), R"("Torch.add.1.forward": 7)",
                               R"("Torch.add.2.forward": 7)", R"("Torch.randn.7.forward": null)",
                               Entry("Torch.add.8.forward"), R"("Module.a.A.forward.0": [])"}),
                         {.dedupe = true});
  ASSERT_TRUE(plan) << plan.error().message();
  ASSERT_EQ(plan->size(), 4U);  // the last one is as the first one
  EXPECT_EQ(plan->call(0).merged_calls, 1U);
  EXPECT_EQ(plan->call(3).skip->cause, SkipCause::kRandom);
  const std::string backward = R"("Torch.add.4.backward": [])";
  const std::string dump = Dump({Entry("Torch.add.4.forward"), backward});
  const auto forward = Open(dump)->Prepare(0);
  ASSERT_TRUE(forward) << forward.error().Text();
  ASSERT_TRUE(forward->backward_skip);
  EXPECT_EQ(forward->backward_skip->Text().find("bad-argument: Torch.add.4.backward: the entry"),
            0U);
  EXPECT_FALSE(Open(dump, {.forward_only = true})->Prepare(0)->backward_skip);
}

TEST_F(CallPlanTest, AnEmptyRecordingIsNoError) {
  const auto plan = Open(Dump({}));
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->size(), 0u);
  ASSERT_EQ(plan->warnings().size(), 1u);
}

TEST_F(CallPlanTest, ACutFileIsReadUpToTheCutOnlyWhenAsked) {
  const std::string dump = Dump({Entry("Torch.add.0.forward"), Entry("Torch.mul.0.forward")});
  const std::string cut = dump.substr(0, dump.size() - 40);
  const std::string refused = ErrorOf(cut, ErrorCode::kCorrupt);
  EXPECT_TRUE(Contains(refused, "dump.json"));
  EXPECT_TRUE(Contains(refused, fmt::format("(plumb recover {})", directory_.path())));
  EXPECT_FALSE(Contains(refused, "--salvage"));
  const auto plan = Open(cut, {.salvage = true});
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->size(), 1u);
  EXPECT_TRUE(Contains(plan->warnings().at(0), "is cut"));
}

TEST_F(CallPlanTest, RepeatedCallsAreMergedOnlyWhereTheyDifferInValues) {
  const auto tensor = [](const char* shape, double high, const char* md5) {
    return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": {},)"
                       R"( "Max": {}, "Min": 0, "Mean": {}, "Norm": 1, "md5": "{}"}})",
                       shape, high, high / 2, md5);
  };
  const std::string same = tensor("[2]", 1, "00000001"), other = tensor("[2]", 2, "00000002");
  const std::string longer = tensor("[3]", 1, "00000003");
  const auto plan =
      Open(Dump({Entry("Torch.add.0.forward", same), Entry("Torch.add.1.forward", other),
                 Entry("Torch.add.2.forward", longer),
                 Entry("Torch.cat.0.forward", "[" + same + "," + same + "]"),
                 Entry("Torch.cat.1.forward", "[" + same + "," + longer + "]"),
                 Entry("Torch.cat.2.forward", "[" + other + "," + same + "]"),
                 Entry("Torch.add.3.forward", same),
                 R"("Torch.add.3.backward": {"input": [], "output": []})"}),
           {.dedupe = true});
  ASSERT_TRUE(plan) << plan.error().message();
  std::vector<std::pair<std::string, uint64_t>> kept;
  for (size_t i = 0; i < plan->size(); ++i) {
    kept.emplace_back(plan->call(i).name, plan->call(i).merged_calls);
  }
  EXPECT_EQ(kept, (std::vector<std::pair<std::string, uint64_t>>{{"Torch.add.0", 1},
                                                                 {"Torch.add.2", 0},
                                                                 {"Torch.cat.0", 1},
                                                                 {"Torch.cat.1", 0},
                                                                 {"Torch.add.3", 0}}));
}

TEST_F(CallPlanTest, ExpensiveCallsComeFirst) {
  const auto plan = Open(Dump({Entry("Torch.add.0.forward"), Entry("Torch.randn.0.forward"),
                               Entry("Torch.matmul.0.forward"), Entry("Torch.mul.0.forward")}));
  EXPECT_EQ(plan->ByCost(), (std::vector<size_t>{2, 0, 3}));
}

TEST_F(CallPlanTest, TheSameNameAgainReplacesTheEntryBefore) {
  const auto plan =
      Open(Dump({Entry("Torch.add.0.forward", "1"), Entry("Torch.add.0.forward", "2")}));
  ASSERT_EQ(plan->size(), 1u);
  EXPECT_EQ(*plan->Prepare(0)->args[0].As<int64_t>(), 2);
  ASSERT_EQ(plan->warnings().size(), 1U);
  EXPECT_EQ(plan->warnings()[0],
            directory_.Path("dump.json") +
                ": 1 entry has a name that the file had before, such as Torch.add.0.forward "
                "(expected each once); the last of each name counts");
  // A damaged one counts only where it is the last.
  const std::string damaged = R"("Torch.add.0.forward": 3)";
  const std::string good = Entry("Torch.add.0.forward");
  EXPECT_FALSE(Open(Dump({damaged, good}))->call(0).skip);
  EXPECT_TRUE(Open(Dump({good, damaged}))->call(0).skip);
  EXPECT_TRUE(Contains(Open(Dump({good, damaged, good}))->warnings().at(0), "2 entries have"));
}

TEST_F(CallPlanTest, AFileThatChangesMeanwhileIsNotGuessedAt) {
  const auto plan = Open(Dump({Entry("Torch.add.0.forward")}));
  std::ofstream(directory_.Path("dump.json")) << "{}";
  const auto call = plan->Prepare(0);
  ASSERT_FALSE(call);
  EXPECT_TRUE(Contains(call.error().Text(), "missing-data")) << call.error().Text();
}

// The bytes that a call's tensor gets.
std::vector<std::byte> BytesOf(const PreparedCall& call, const TensorPlace& tensor) {
  std::vector<std::byte> memory(call.input_bytes);
  const OrSkip<void> filled = FillInputs(call, memory);
  EXPECT_TRUE(filled) << filled.error().Text();
  const auto bytes =
      static_cast<size_t>(*ElementCount(tensor.shape)) * InfoOf(tensor.dtype).size_bytes;
  const auto from = memory.begin() + static_cast<std::ptrdiff_t>(tensor.offset);
  return {from, from + static_cast<std::ptrdiff_t>(bytes)};
}

TEST_F(CallPlanTest, RecordingsOfUpstreamAreReadWithTheirTensors) {
  for (const char* release : {"upstream_1.2.2", "upstream_26.2.0"}) {
    const std::string root = fmt::format("{}/{}/l1_tensor", PLUMBLINE_TEST_DATA, release);
    const auto plan = CallPlan::Open(root + "/dump.json", {});
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_TRUE(plan->uses_recorded_data());
    ASSERT_GT(plan->size(), 5u);
    EXPECT_EQ(plan->call(0).name, "Functional.linear.0");
    const auto call = plan->Prepare(0);
    ASSERT_TRUE(call) << call.error().Text();
    ASSERT_TRUE(call->grads);
    const auto& tensor = *call->args[1].As<TensorPlace>();
    EXPECT_EQ(tensor.shape, (Shape{6, 4}));
    EXPECT_TRUE(tensor.requires_grad);
    const auto file =
        TensorFile::Open(root + "/dump_tensor_data/Functional.linear.0.forward.input.1.pt");
    std::vector<std::byte> expected(file->view().size_bytes());
    CopyContiguous(file->view(), expected);
    EXPECT_TRUE(BytesOf(*call, tensor) == expected);
    for (size_t i = 0; i < plan->size(); ++i) {
      if (plan->call(i).skip) continue;
      const auto each = plan->Prepare(i);
      EXPECT_TRUE(each) << plan->call(i).name << " " << each.error().Text();
    }
  }
}

TEST_F(CallPlanTest, EveryLevelAndTaskOfUpstreamIsTold) {
  for (const char* release : {"upstream_1.2.2", "upstream_26.2.0"}) {
    const std::string root = fmt::format("{}/{}/", PLUMBLINE_TEST_DATA, release);
    const auto mix = CallPlan::Open(root + "mix_statistics/dump.json", {});
    ASSERT_TRUE(mix) << mix.error().message();
    EXPECT_GT(mix->ByCost().size(), 3u);
    const auto modules = CallPlan::Open(root + "l0_statistics/dump.json", {});
    ASSERT_FALSE(modules);
    EXPECT_EQ(modules.error().code(), ErrorCode::kInvalidArgument);
  }
}

// A part of a recording, another order or other calls before it: the inputs stay the same.
TEST_F(CallPlanTest, InputsDoNotDependOnWhereACallStands) {
  const std::string two = std::string(kTensor) + ", " + kTensor;
  const std::string wanted = Entry("Torch.mul.3.forward", two);
  const auto inputs_of = [&](const std::vector<std::string>& entries, size_t place,
                             const PlanOptions& options) {
    const auto plan = Open(Dump(entries), options);
    EXPECT_EQ(plan->call(place).name, "Torch.mul.3");
    const auto call = plan->Prepare(place);
    return std::pair{BytesOf(*call, *call->args[0].As<TensorPlace>()),
                     BytesOf(*call, *call->args[1].As<TensorPlace>())};
  };
  const auto alone = inputs_of({wanted}, 0, {});
  EXPECT_TRUE(alone.first != alone.second);  // of one shape and one range
  EXPECT_TRUE(inputs_of({Entry("Torch.add.0.forward"), wanted}, 1, {}) == alone);
  EXPECT_TRUE(inputs_of({wanted, Entry("Torch.add.0.forward", two)}, 0, {.dedupe = true}) == alone);
  EXPECT_TRUE(inputs_of({wanted}, 0, {.seed = 7}) != alone);
}

class RecordedDataTest : public CallPlanTest {
 protected:
  // A recording of two calls with tensors in files; the first one's file is `name`, and of `dtype`
  // as the dump says.
  Result<CallPlan> OpenWith(const std::string& name, const std::string& dtype = "float32",
                            const std::string& shape = "[2, 3]") {
    std::filesystem::create_directories(directory_.Path("dump_tensor_data"));
    const auto tensor = [](const std::string& file, const std::string& type,
                           const std::string& sizes) {
      return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.{}", "shape": {},)"
                         R"( "Max": 1.0, "Min": 0.0, "data_name": "{}"}})",
                         type, sizes, file);
    };
    std::string text =
        Dump({Entry("Torch.add.0.forward", tensor(name, dtype, shape)),
              Entry("Torch.add.1.forward", tensor("sound.pt", "float32", "[2, 3]"))});
    const std::string null = R"("dump_data_dir": null)";
    text.replace(text.find(null), null.size(), R"("dump_data_dir": "/where/it/was/recorded")");
    Copy("torch_pt/float32.pt", "sound.pt");
    return Open(text);
  }
  void Copy(const std::string& from, const std::string& to) {
    std::filesystem::copy_file(std::string(PLUMBLINE_TEST_DATA "/") + from,
                               directory_.Path("dump_tensor_data/" + to),
                               std::filesystem::copy_options::overwrite_existing);
  }
};

TEST_F(RecordedDataTest, TensorsLieBesideTheDumpWhereverItIs) {
  const auto plan = OpenWith("array.npy");
  Copy("npy/float32.npy", "array.npy");
  for (size_t i = 0; i < 2; ++i) {
    const auto call = plan->Prepare(i);
    ASSERT_TRUE(call) << call.error().Text();
    EXPECT_EQ(call->args[0].As<TensorPlace>()->dtype, DType::kFloat32);
  }
}

TEST_F(RecordedDataTest, UnreadableTensorsCostTheirCallAlone) {
  for (const char* name : {"gone.pt", "hostile_system2.pt", "../dump.json", "text.txt", "cut.pt"}) {
    const auto plan = OpenWith(name);
    ASSERT_TRUE(plan) << plan.error().message();
    Copy("torch_pt/hostile_system2.pt", "hostile_system2.pt");
    Copy("torch_pt/float32.pt", "cut.pt");
    std::filesystem::resize_file(directory_.Path("dump_tensor_data/cut.pt"), 300);
    const auto call = plan->Prepare(0);
    ASSERT_FALSE(call) << name;
    EXPECT_EQ(call.error().cause, SkipCause::kMissingData) << call.error().Text();
    EXPECT_TRUE(plan->Prepare(1)) << name;
  }
}

// The file of another tensor would make another call of it.
TEST_F(RecordedDataTest, AFileOfAnotherTypeOrShapeCostsItsCall) {
  const auto skip_of = [&](const char* dtype, const char* shape) {
    const auto plan = OpenWith("a.pt", dtype, shape);
    Copy("torch_pt/float32.pt", "a.pt");
    const auto call = plan->Prepare(0);
    EXPECT_TRUE(plan->Prepare(1));
    return call ? std::string("none") : call.error().Text();
  };
  EXPECT_EQ(skip_of("float32", "[2, 3]"), "none");
  EXPECT_EQ(skip_of("some_new_float", "[2, 3]"), "none");
  EXPECT_EQ(skip_of("float32", "[3, 2]"),
            "missing-data: input_args.0: a.pt: holds the shape (2, 3) (expected (3, 2), as "
            "dump.json says)");
  EXPECT_EQ(
      skip_of("float16", "[2, 3]"),
      "missing-data: input_args.0: a.pt: holds elements of type float32 (expected float16, as "
      "dump.json says)");
  EXPECT_NE(skip_of("bfloat16", "[2, 3]"), "none");
}

// NumPy has no bfloat16: the call gets the type that was recorded all the same.
TEST_F(RecordedDataTest, AnArrayOfFloat32StandsForBFloat16) {
  const auto plan = OpenWith("array.npy", "bfloat16", "[2, 3]");
  Copy("npy/float32.npy", "array.npy");
  const auto call = plan->Prepare(0);
  ASSERT_TRUE(call) << call.error().Text();
  EXPECT_EQ(call->args[0].As<TensorPlace>()->dtype, DType::kBFloat16);
  std::vector<std::byte> memory(call->input_bytes);
  EXPECT_TRUE(FillInputs(*call, memory));
}

TEST_F(RecordedDataTest, ATensorThatVanishesMeanwhileIsMissing) {
  const auto plan = OpenWith("a.pt");
  Copy("torch_pt/float32.pt", "a.pt");
  const auto call = plan->Prepare(0);
  ASSERT_TRUE(call);
  Copy("torch_pt/float64.pt", "a.pt");
  std::vector<std::byte> memory(call->input_bytes);
  const OrSkip<void> changed = FillInputs(*call, memory);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().cause, SkipCause::kMissingData);
  std::filesystem::remove(directory_.Path("dump_tensor_data/a.pt"));
  EXPECT_FALSE(FillInputs(*call, memory));
}

TEST(ApiInventory, NamesOfCallsAreTakenApart) {
  EXPECT_EQ(ParseApiName("Torch.linalg.inv.12")->api, "linalg.inv");
  EXPECT_EQ(ParseApiName("Functional.conv2d.0")->type, "Functional");
  for (const char* name : {"Torch.add", "Torch.add.x", "Torch..0", "a.b.c.d.0", "", "Torch.add."}) {
    EXPECT_FALSE(ParseApiName(name)) << name;
  }
}

}  // namespace
}  // namespace plumbline::precheck::call_plan_test
