#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/file/file.h"
#include "plumbline/compare.h"
#include "verdict/comparison_for_test.h"

namespace plumbline {

namespace {

const std::string kX = TensorJson(1.0, -1.0, 1.5);
const std::string kY = TensorJson(2.0, -2.0, 3.0);
const std::string kYWrong = TensorJson(2.5, -2.0, 3.2);
const std::string kZ = TensorJson(3.0, -3.0, 4.5);
const std::string kZWrong = TensorJson(3.9, -3.0, 5.0);

using CompareRunsTest = TwoDumpsTest;

std::string FirstLine(const Comparison& comparison) {
  const std::string text = SummaryText(comparison);
  return text.substr(0, text.find('\n'));
}

TEST_F(CompareRunsTest, EqualRunsHaveNoWrongCall) {
  for (DumpForTest* side : {&target_, &golden_}) side->Add("Torch.f.0.forward", kX, kY);
  const Comparison comparison = Compare();
  EXPECT_EQ(FirstLine(comparison), "no wrong call");
  EXPECT_EQ(comparison.counts.rows[static_cast<size_t>(Verdict::kSame)], 2u);
  EXPECT_TRUE(comparison.is_complete());
}

TEST_F(CompareRunsTest, FirstCallWithAgreeingInputsIsNamed) {
  target_.Add("Torch.f.0.forward", kX, kX).Add("Torch.g.0.forward", kX, kYWrong);
  target_.Add("Torch.h.0.forward", kYWrong, kZWrong);
  golden_.Add("Torch.f.0.forward", kX, kX).Add("Torch.g.0.forward", kX, kY);
  golden_.Add("Torch.h.0.forward", kY, kZ);
  const Comparison comparison = Compare();
  EXPECT_EQ(FirstLine(comparison), "first wrong call: Torch.g.0.forward");
  EXPECT_EQ(comparison.rows[3].reason, "exceeds-noise");
  EXPECT_EQ(comparison.rows[4].reason, "inherited");
  EXPECT_EQ(comparison.rows[5].reason, "inherited");
  EXPECT_EQ(comparison.rows[5].verdict, Verdict::kBroken);
}

TEST_F(CompareRunsTest, ModuleIsNotBlamedForItsChild) {
  const std::string module = "Module.m.M.forward.0";
  // Release 1.2.2 lists a module after its children; other recorders may list it before.
  for (const bool first : {false, true}) {
    DumpForTest target(directory_.Path("t"));
    DumpForTest golden(directory_.Path("g"));
    if (first) target.Add(module, kX, kYWrong);
    target.Add("Torch.g.0.forward", kX, kYWrong, module);
    if (!first) target.Add(module, kX, kYWrong);
    golden.Add("Torch.g.0.forward", kX, kY, module).Add(module, kX, kY);
    const Result<Comparison> comparison = CompareRuns(target.Write(), golden.Write());
    ASSERT_TRUE(comparison);
    ASSERT_TRUE(comparison->first_wrong_call);
    EXPECT_EQ(comparison->first_wrong_call->name, "Torch.g.0.forward");
    ASSERT_EQ(comparison->first_wrong_call->module_path.size(), 1u);
    EXPECT_EQ(comparison->first_wrong_call->module_path[0], module);
  }
}

TEST_F(CompareRunsTest, DifferingArgumentIsTheCulprit) {
  target_.Add("Torch.add.0.forward", kX + "," + ScalarJson("float", "1e-05"), kYWrong);
  golden_.Add("Torch.add.0.forward", kX + "," + ScalarJson("float", "1e-06"), kY);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->what, "argument differs: input.1 is 1e-05 (golden 1e-06)");
  EXPECT_EQ(comparison.rows[1].reason, "argument-differs");
}

TEST_F(CompareRunsTest, RoundingOfAnArgumentBeforeAnyTensorIsNoise) {
  target_.Add("Torch.full.0.forward", ScalarJson("float", "1.0000001"), kX);
  golden_.Add("Torch.full.0.forward", ScalarJson("float", "1.0"), kX);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.rows[0].verdict, Verdict::kWithinNoise);
}

TEST_F(CompareRunsTest, ParameterThatDiffersAlreadyIsSaid) {
  const std::string module = "Module.fc.Linear.forward.0";
  const auto add = [&](DumpForTest& side, const std::string& weight, const std::string& output) {
    side.Add("Functional.linear.0.forward", kX + "," + weight, output, module);
    side.AddEntry("\"" + module + R"(": {"input_args": [)" + kX + R"(], "output": [)" + output +
                  R"(], "parameters": {"weight": )" + weight + "}}");
  };
  add(target_, kZWrong, kYWrong);
  add(golden_, kZ, kY);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Functional.linear.0.forward");
  EXPECT_TRUE(comparison.first_wrong_call->enters_with_inputs);
  EXPECT_EQ(comparison.first_wrong_call->what.find(
                "inputs already differ: parameter Module.fc.Linear.forward.0.parameters.weight"),
            0u);
}

TEST_F(CompareRunsTest, RoundingIsWithinNoise) {
  target_.Add("Functional.softmax.0.forward", kX, TensorJson(2.0000002, -2.0, 3.0));
  golden_.Add("Functional.softmax.0.forward", kX, kY);
  const Comparison comparison = Compare();
  EXPECT_EQ(FirstLine(comparison), "no wrong call");
  EXPECT_EQ(comparison.rows[1].verdict, Verdict::kWithinNoise);
}

TEST_F(CompareRunsTest, BackwardInheritsFromItsForward) {
  target_.Add("Torch.f.0.forward", kX, kYWrong);
  golden_.Add("Torch.f.0.forward", kX, kY);
  const std::string backward = R"("Torch.f.0.backward": {"input": [)" + kX + R"(], "output": [)";
  target_.AddEntry(backward + kZWrong + "]}");
  golden_.AddEntry(backward + kZ + "]}");
  const Comparison comparison = Compare();
  EXPECT_EQ(comparison.first_wrong_call->name, "Torch.f.0.forward");
  EXPECT_EQ(comparison.rows[3].reason, "inherited");
}

TEST_F(CompareRunsTest, BackwardAloneCanBeWrong) {
  for (DumpForTest* side : {&target_, &golden_}) side->Add("Torch.f.0.forward", kX, kY);
  const std::string backward = R"("Torch.f.0.backward": {"input": [)" + kX + R"(], "output": [)";
  target_.AddEntry(backward + kZWrong + "]}");
  golden_.AddEntry(backward + kZ + "]}");
  EXPECT_EQ(FirstLine(Compare()), "first wrong call: Torch.f.0.backward");
}

TEST_F(CompareRunsTest, GradientsListedEarlyAreJudgedLast) {
  const std::string gradient = R"("Module.m.M.parameters_grad": {"weight": [)";
  target_.AddEntry(gradient + kZWrong + "]}");
  golden_.AddEntry(gradient + kZ + "]}");
  target_.Add("Torch.f.0.forward", kX, kYWrong);
  golden_.Add("Torch.f.0.forward", kX, kY);
  EXPECT_EQ(FirstLine(Compare()), "first wrong call: Torch.f.0.forward");
}

TEST_F(CompareRunsTest, NanAndZeroTargetsAreBroken) {
  const std::string nan = TensorJson(0, 0, 0);
  std::string text = nan;
  for (size_t at; (at = text.find(": 0,")) != std::string::npos;) text.replace(at, 4, ": NaN,");
  target_.Add("Torch.f.0.forward", kX, text).Add("Torch.g.0.forward", kX, nan);
  golden_.Add("Torch.f.0.forward", kX, kY).Add("Torch.g.0.forward", kX, kY);
  const Comparison comparison = Compare();
  EXPECT_EQ(comparison.rows[1].reason, "nonfinite-target");
  EXPECT_EQ(comparison.rows[3].reason, "zero-target");
  EXPECT_EQ(comparison.rows[3].verdict, Verdict::kBroken);
  EXPECT_EQ(FirstLine(comparison), "first wrong call: Torch.f.0.forward");
}

TEST_F(CompareRunsTest, ZeroThatFlowsOnIsInherited) {
  const std::string zero = TensorJson(0, 0, 0);
  target_.Add("Torch.f.0.forward", kX, zero).Add("Torch.g.0.forward", zero, zero);
  golden_.Add("Torch.f.0.forward", kX, kY).Add("Torch.g.0.forward", kY, kZ);
  const Comparison comparison = Compare();
  EXPECT_EQ(comparison.rows[1].reason, "zero-target");
  EXPECT_EQ(comparison.rows[2].reason, "inherited");
  EXPECT_EQ(comparison.rows[3].reason, "inherited");
}

TEST_F(CompareRunsTest, UnmatchedCallsForbidTheAllClear) {
  target_.Add("Torch.f.0.forward", kX, kY).Add("Torch.only.0.forward", kX, kYWrong);
  golden_.Add("Torch.f.0.forward", kX, kY).Add("Torch.gone.0.forward", kX, TensorJson(9, 0, 9));
  const Comparison comparison = Compare();
  EXPECT_EQ(comparison.counts.unmatched_target, 1u);
  EXPECT_EQ(comparison.counts.unmatched_golden, 1u);
  EXPECT_EQ(FirstLine(comparison).find("not judged completely: 1 target call without"), 0u);
}

TEST_F(CompareRunsTest, OtherShapeIsTheFirstWrongCall) {
  target_.Add("Torch.f.0.forward", kX, TensorJson(2, -2, 3, "[2, 2]"));
  golden_.Add("Torch.f.0.forward", kX, kY);
  const Comparison comparison = Compare();
  EXPECT_EQ(FirstLine(comparison), "first wrong call: Torch.f.0.forward");
  EXPECT_EQ(comparison.rows[0].reason, "shape-differs");
  EXPECT_EQ(comparison.rows[0].verdict, Verdict::kNotComparable);
}

TEST_F(CompareRunsTest, UninitialisedResultsAreNotJudged) {
  target_.Add("Torch.empty.0.forward", ScalarJson("int", "4"), kYWrong);
  golden_.Add("Torch.empty.0.forward", ScalarJson("int", "4"), kY);
  const Comparison comparison = Compare();
  EXPECT_EQ(comparison.rows[1].reason, "uninitialised");
  EXPECT_FALSE(comparison.first_wrong_call);
}

TEST_F(CompareRunsTest, DigestsDecideInDigestMode) {
  const std::string bits = R"(, "md5": "00000001")";
  const std::string other = R"(, "md5": "00000002")";
  target_.Add("Torch.f.0.forward", kX, TensorJson(2, -2, 3, "[4]", other));
  golden_.Add("Torch.f.0.forward", kX, TensorJson(2, -2, 3, "[4]", bits));
  const Comparison comparison = Compare();
  EXPECT_EQ(comparison.mode, CompareMode::kDigest);
  EXPECT_EQ(comparison.rows[1].result, "Different");
  EXPECT_EQ(comparison.rows[1].verdict, Verdict::kSuspicious);
  EXPECT_EQ(FirstLine(comparison), "first wrong call: Torch.f.0.forward");
}

TEST_F(CompareRunsTest, DigestsOnOneSideAreRefused) {
  target_.Add("Torch.f.0.forward", kX, TensorJson(2, -2, 3, "[4]", R"(, "md5": "00000001")"));
  golden_.Add("Torch.f.0.forward", kX, kY);
  const Result<Comparison> result = Try();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
}

TEST_F(CompareRunsTest, OtherTasksAreRefused) {
  target_.Add("Torch.f.0.forward", kX, kY);
  golden_.Add("Torch.f.0.forward", kX, kY);
  const auto code = [&](const char* target, const char* golden) {
    return CompareRuns(target_.Write(target), golden_.Write(golden)).error().code();
  };
  EXPECT_EQ(code("tensor", "statistics"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code("structure", "structure"), ErrorCode::kInvalidArgument);
}

TEST_F(CompareRunsTest, MissingTensorFilesMarkTheirRows) {
  const std::string name = R"(, "data_name": "Torch.f.0.forward.output.0.pt")";
  const std::string escape = R"(, "data_name": "../../secret.pt")";
  for (DumpForTest* side : {&target_, &golden_}) {
    side->Add("Torch.f.0.forward", TensorJson(1, 0, 1, "[4]", escape),
              TensorJson(2, -2, 3, "[4]", name));
  }
  const Result<Comparison> comparison =
      CompareRuns(target_.Write("tensor"), golden_.Write("tensor"));
  ASSERT_TRUE(comparison);
  EXPECT_EQ(comparison->counts.unreadable_files, 4u);
  EXPECT_EQ(comparison->rows[1].reason, "unreadable");
  EXPECT_EQ(comparison->rows[1].result, "None");
  EXPECT_EQ(FirstLine(*comparison),
            "not judged: no row could be compared; 4 unreadable tensor files");
}

TEST_F(CompareRunsTest, LinkedTensorFilesGiveTheSameRowsAsCopies) {
  const auto tensor = [](const std::string& name) {
    return TensorJson(2, -2, 3, "[4]", R"(, "data_name": ")" + name + R"(.pt")");
  };
  for (DumpForTest* side : {&target_, &golden_}) {
    side->Add("Torch.f.0.forward", tensor("a"), tensor("b"));
    side->Add("Torch.g.0.forward", tensor("c"), tensor("d"));
  }
  for (const std::string& side : {target_.Write("tensor"), golden_.Write("tensor")}) {
    const std::string files = side + "/dump_tensor_data/";
    ASSERT_TRUE(MakeDirectories(files));
    const bool is_target = side.ends_with("target");
    WritePt(files + "a.pt", {1, 2, 3, 4});
    WritePt(files + "b.pt", {1, 2, 3, is_target ? 5.0f : 4.0f});
    ASSERT_TRUE(LinkFile(files + "b.pt", files + "c.pt"));
    WritePt(files + "d.pt", {1, 2, 3, is_target ? 5.0f : 4.0f});
  }
  const Result<Comparison> result =
      CompareRuns(directory_.Path("target"), directory_.Path("golden"));
  ASSERT_TRUE(result);
  EXPECT_EQ(std::get<double>(result->rows[0].tensor->max_abs_error), 0.0);
  for (const size_t row : {size_t{1}, size_t{2}, size_t{3}}) {
    EXPECT_EQ(std::get<double>(result->rows[row].tensor->max_abs_error), 1.0);
    EXPECT_EQ(result->rows[row].tensor->mismatch_count, 1u);
  }
  EXPECT_EQ(FirstLine(*result), "first wrong call: Torch.f.0.forward");
  EXPECT_EQ(result->rows[3].reason, "inherited");
}

TEST_F(CompareRunsTest, EmptyDumpsAreNotAnAllClear) {
  EXPECT_EQ(FirstLine(Compare()).find("not judged"), 0u);
}

TEST_F(CompareRunsTest, TruncatedDumpNeedsSalvage) {
  golden_.Add("Torch.f.0.forward", kX, kY).Add("Torch.g.0.forward", kX, kY);
  target_.Add("Torch.f.0.forward", kX, kY).Add("Torch.g.0.forward", kX, kY);
  const std::string target = target_.Write();
  const std::string golden = golden_.Write();
  const std::string text = *ReadFile(target + "/dump.json");
  std::ofstream(target + "/dump.json") << text.substr(0, text.find("Torch.g") + 40);
  EXPECT_EQ(CompareRuns(target, golden).error().code(), ErrorCode::kCorrupt);
  CompareOptions options;
  options.salvage = true;
  const Result<Comparison> salvaged = CompareRuns(target, golden, options);
  ASSERT_TRUE(salvaged);
  EXPECT_EQ(salvaged->counts.calls, 1u);
  EXPECT_FALSE(salvaged->is_complete());
  EXPECT_EQ(salvaged->warnings.size(), 1u);
  const Result<Comparison> with_itself = CompareRuns(target, target, options);
  ASSERT_TRUE(with_itself);
  EXPECT_EQ(with_itself->warnings, salvaged->warnings);
}

TEST_F(CompareRunsTest, ResultsOfOneSecondDoNotOverwriteEachOther) {
  for (DumpForTest* side : {&target_, &golden_}) side->Add("Torch.f.0.forward", kX, kY);
  CompareOptions options;
  options.output_dir = directory_.Path("out");
  for (int i = 0; i < 3; ++i) {
    Comparison comparison = Compare();
    ASSERT_TRUE(WriteComparison(comparison, options));
    EXPECT_EQ(comparison.files.size(), 4u);
  }
  EXPECT_EQ(ListDirectory(options.output_dir)->size(), 12u);
}

TEST_F(CompareRunsTest, OutputPathThatIsAFileIsAnError) {
  for (DumpForTest* side : {&target_, &golden_}) side->Add("Torch.f.0.forward", kX, kY);
  Comparison comparison = Compare();
  CompareOptions options;
  options.output_dir = directory_.Path("file");
  std::ofstream(options.output_dir) << "x";
  EXPECT_FALSE(WriteComparison(comparison, options));
}

TEST_F(CompareRunsTest, ThreadCountDoesNotChangeTheAnswer) {
  target_.Add("Torch.f.0.forward", kX, kYWrong);
  golden_.Add("Torch.f.0.forward", kX, kY);
  CompareOptions options;
  options.threads = 1;
  const Result<Comparison> one = Try(options);
  options.threads = 3;
  const Result<Comparison> three = Try(options);
  EXPECT_EQ(SummaryJson(*one), SummaryJson(*three));
}

// As recorders write them that were asked for some statistics only.
std::string FewStatistics(double max) {
  return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], )"
                     R"("Max": {}, "Mean": {}, "requires_grad": false}})",
                     max, max / 4);
}

TEST_F(CompareRunsTest, WhatBothSidesRecordedIsCompared) {
  golden_.Add("Torch.exp.0.forward", TensorJson(1, -1, 2), TensorJson(3, 1, 5))
      .Add("Torch.abs.0.forward", TensorJson(3, 1, 5), TensorJson(3, 1, 5));
  target_.Add("Torch.exp.0.forward", FewStatistics(1), FewStatistics(3))
      .Add("Torch.abs.0.forward", FewStatistics(3), FewStatistics(3));
  const Comparison same = Compare();
  EXPECT_EQ(same.warnings, (std::vector<std::string>{"the target has no min and norm: only max and "
                                                     "mean were compared"}));
  EXPECT_TRUE(SummaryText(same).starts_with("no wrong call\n")) << SummaryText(same);
  EXPECT_EQ(same.counts.rows[static_cast<size_t>(Verdict::kSame)], 4U);
  EXPECT_FALSE(std::holds_alternative<std::monostate>(same.rows[0].golden->statistics[3]));
  DumpForTest wrong(directory_.Path("wrong"));
  wrong.Add("Torch.exp.0.forward", FewStatistics(1), FewStatistics(3))
      .Add("Torch.abs.0.forward", FewStatistics(3), FewStatistics(4));
  const auto other = CompareRuns(wrong.Write(), golden_.Write());
  ASSERT_TRUE(other && other->first_wrong_call);
  EXPECT_EQ(other->first_wrong_call->name, "Torch.abs.0.forward");
}

}  // namespace

// CompareRuns() on two debug.json: values given to PrecisionDebugger.save() and their gradients.

namespace {

const std::string kXWrong = TensorJson(1.4, -1.0, 1.8);

class CompareSaves : public ::testing::Test {
 protected:
  CompareSaves()
      : root_((std::filesystem::path(::testing::TempDir()) /
               ::testing::UnitTest::GetInstance()->current_test_info()->name())
                  .string()) {
    std::filesystem::remove_all(root_);
  }
  ~CompareSaves() override { std::filesystem::remove_all(root_); }

  // A rank directory with these entries ("name": value, ...); returns the directory.
  std::string Write(const std::string& side, const std::string& entries,
                    const std::string& level = "debug") {
    const std::string directory = root_ + "/" + side + "/rank";
    std::filesystem::create_directories(directory);
    std::ofstream(directory + (level == "debug" ? "/debug.json" : "/dump.json"))
        << fmt::format(R"({{"task": "statistics", "level": "{}", "framework": "pytorch", )"
                       R"("dump_data_dir": null, "data": {{{}}}}})",
                       level, entries);
    return directory;
  }
  Comparison Compare(const std::string& target, const std::string& golden) {
    Result<Comparison> result =
        CompareRuns(Write("target", target), Write("golden", golden), CompareOptions());
    EXPECT_TRUE(result) << (result ? "" : result.error().message());
    return result ? std::move(*result) : Comparison();
  }
  static std::string Entry(const std::string& name, const std::string& value) {
    return fmt::format("\"{}\": {}", name, value);
  }
  static std::string FirstLine(const Comparison& comparison) {
    const std::string text = SummaryText(comparison);
    return text.substr(0, text.find('\n'));
  }

  std::string root_;
};

TEST_F(CompareSaves, EqualValuesAreGoodAndTheFilesSayWhatTheyAre) {
  const std::string entries = Entry("x.0", kX) + ", " + Entry("x_grad.0", kY);
  Comparison comparison = Compare(entries, entries);
  EXPECT_EQ(FirstLine(comparison), "no wrong call");
  EXPECT_TRUE(comparison.of_saves);
  CompareOptions options;
  options.output_dir = root_ + "/out";
  ASSERT_TRUE(WriteComparison(comparison, options));
  ASSERT_EQ(comparison.files.size(), 4u);
  const std::string first = std::filesystem::path(comparison.files[0]).filename().string();
  EXPECT_TRUE(first.starts_with("debug_compare_result_")) << first;
  ASSERT_TRUE(WriteComparison(comparison, options));
  EXPECT_NE(comparison.files[4], comparison.files[0]);
}

TEST_F(CompareSaves, TheFirstWrongValueIsNamedWithItsPlace) {
  const std::string same = Entry("x.0", kX) + ", ";
  const Comparison comparison =
      Compare(same + Entry("y.0", fmt::format(R"({{"list": [{}, {}]}})", kX, kYWrong)),
              same + Entry("y.0", fmt::format(R"({{"list": [{}, {}]}})", kX, kY)));
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "y.0");
  EXPECT_EQ(comparison.first_wrong_call->item, "y.0.list.1");
  EXPECT_NE(comparison.first_wrong_call->what.find("max 2.5 (golden 2)"), std::string::npos);
}

TEST_F(CompareSaves, AWrongValueComesBeforeTheGradientOfAnEarlierOne) {
  const auto entries = [](const std::string& gradient, const std::string& later) {
    return Entry("x.0", kX) + ", " + Entry("x_grad.0", gradient) + ", " + Entry("y.0", later);
  };
  EXPECT_EQ(FirstLine(Compare(entries(kYWrong, kXWrong), entries(kY, kX))),
            "first wrong call: y.0");
  EXPECT_EQ(FirstLine(Compare(entries(kYWrong, kX), entries(kY, kX))),
            "first wrong call: x_grad.0");
}

TEST_F(CompareSaves, OfTwoWrongGradientsTheOneOfTheLaterValueComesFirst) {
  const auto entries = [](const std::string& a, const std::string& b) {
    return Entry("x.0", kX) + ", " + Entry("x_grad.0", a) + ", " + Entry("y.0", kX) + ", " +
           Entry("y_grad.0", b);
  };
  EXPECT_EQ(FirstLine(Compare(entries(kYWrong, kXWrong), entries(kY, kX))),
            "first wrong call: y_grad.0");
}

TEST_F(CompareSaves, NamesAreTheUsersAndSayNothingAboutAValue) {
  // As API names these would be uninitialised memory, a forward call and a parameter gradient.
  for (const std::string name : {"a.empty.x.0", "forward.0", "parameters_grad.0", "x_grad.0"}) {
    const Comparison comparison = Compare(Entry(name, kYWrong), Entry(name, kY));
    EXPECT_EQ(FirstLine(comparison), "first wrong call: " + name);
  }
}

TEST_F(CompareSaves, ValuesWithoutCounterpartAreRows) {
  const Comparison comparison = Compare(Entry("x.0", kX) + ", " + Entry("only.0", kY),
                                        Entry("x.0", kX) + ", " + Entry("x.1", kY));
  ASSERT_EQ(comparison.rows.size(), 3u);
  EXPECT_EQ(comparison.rows[1].reason, "no-golden");
  EXPECT_EQ(comparison.rows[2].reason, "no-target");
  EXPECT_EQ(comparison.counts.unmatched_target, 1u);
  EXPECT_EQ(comparison.counts.unmatched_golden, 1u);
  EXPECT_FALSE(comparison.is_complete());
  EXPECT_TRUE(FirstLine(comparison).starts_with("not judged completely")) << FirstLine(comparison);
}

TEST_F(CompareSaves, AGradientOnOneSideOnlyIsWrong) {
  const std::string x = Entry("x.0", kX) + ", ";
  const Comparison comparison = Compare(x + Entry("x_grad.0", "null"), x + Entry("x_grad.0", kY));
  EXPECT_EQ(FirstLine(comparison), "first wrong call: x_grad.0");
}

TEST_F(CompareSaves, NoGradientOnEitherSideIsNoJudgement) {
  const std::string entries = Entry("x.0", fmt::format("[{}, {}]", kX, ScalarJson("int", "3"))) +
                              ", " + Entry("x_grad.0", fmt::format("[{}, null]", kY));
  const Comparison comparison = Compare(entries, entries);
  EXPECT_EQ(FirstLine(comparison), "no wrong call");
  EXPECT_EQ(comparison.rows.back().reason, "both-null");
  EXPECT_EQ(comparison.rows.back().verdict, Verdict::kNotComparable);
  const std::string nulls = Entry("x_grad.0", "[null, null]");
  EXPECT_EQ(FirstLine(Compare(nulls, nulls)), "not judged: no row could be compared");
}

TEST_F(CompareSaves, NanZeroAndOtherShapesAreNotGood) {
  const std::string nan = TensorJson(std::nan(""), -1.0, 1.5);
  std::string text = nan;
  while (text.find("nan") != std::string::npos) text.replace(text.find("nan"), 3, "NaN");
  for (const std::string& wrong :
       {text, TensorJson(0.0, 0.0, 0.0), TensorJson(1.0, -1.0, 1.5, "[2, 2]"),
        ScalarJson("float", "1.0"), "[" + kX + "]"}) {
    EXPECT_EQ(FirstLine(Compare(Entry("x.0", wrong), Entry("x.0", kX))), "first wrong call: x.0")
        << wrong;
  }
}

TEST_F(CompareSaves, ScalarsAreCompared) {
  EXPECT_EQ(FirstLine(Compare(Entry("n.0", ScalarJson("float", "2.5")),
                              Entry("n.0", ScalarJson("float", "2.0")))),
            "first wrong call: n.0");
  EXPECT_EQ(FirstLine(Compare(Entry("n.0", ScalarJson("float", "2.5")),
                              Entry("n.0", ScalarJson("float", "2.5")))),
            "no wrong call");
}

TEST_F(CompareSaves, BothFormsOfNamesPair) {
  const Comparison comparison =
      Compare(Entry("x.0.debug", "[" + kXWrong + "]") + ", " + Entry("x_grad.0.debug", kY),
              Entry("x.0", "[" + kX + "]") + ", " + Entry("x_grad.0", kY));
  EXPECT_EQ(comparison.counts.calls, 2u);
  EXPECT_EQ(FirstLine(comparison), "first wrong call: x.0");
  EXPECT_EQ(comparison.rows[0].target->name, "x.0.0");
  const Comparison newer = Compare(Entry("x.0.debug", kXWrong), Entry("x.0.debug", kX));
  EXPECT_EQ(FirstLine(newer), "first wrong call: x.0.debug");
}

TEST_F(CompareSaves, EmptyCutAndUnfinishedRecordingsAreNotGood) {
  EXPECT_EQ(FirstLine(Compare("", "")), "not judged: the dumps hold nothing to compare");
  const std::string golden = Write("golden", Entry("x.0", kX));
  const std::string cut = Write("target", Entry("x.0", kX) + ", " + Entry("y.0", kY));
  std::filesystem::resize_file(cut + "/debug.json",
                               std::filesystem::file_size(cut + "/debug.json") - 30);
  EXPECT_EQ(CompareRuns(cut, golden).error().code(), ErrorCode::kCorrupt);
  CompareOptions salvage;
  salvage.salvage = true;
  EXPECT_FALSE(CompareRuns(cut, golden, salvage)->is_complete());

  const std::string killed = Write("target", Entry("x.0", kX));
  std::ofstream(killed + "/.dump.journal") << "newer";
  std::filesystem::last_write_time(
      killed + "/debug.json",
      std::filesystem::last_write_time(killed + "/.dump.journal") - std::chrono::seconds(5));
  const Result<Comparison> unfinished = CompareRuns(killed, golden);
  ASSERT_TRUE(unfinished) << unfinished.error().message();
  EXPECT_FALSE(unfinished->is_complete());
}

TEST_F(CompareSaves, CallsAreNoCounterpart) {
  const std::string calls = Write("calls", "", "L1");
  const std::string saves = Write("saves", Entry("x.0", kX));
  for (const auto& [target, golden] : {std::pair(calls, saves), std::pair(saves, calls)}) {
    const Result<Comparison> result = CompareRuns(target, golden);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(result.error().message().find("saved values"), std::string::npos);
  }
}

}  // namespace

}  // namespace plumbline
